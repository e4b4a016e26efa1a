// Fewer keys than tokens, through the built package: no difference while everything fits, memory as planned, streams past the
// model's context, and errors that name the option.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type * as Headlight from '../../../web/runtime/src/index.js';
import { headlight } from '../built_package.js';

const model = fileURLToPath(new URL('../../../examples/models/default-q8_0.gguf', import.meta.url));
const CONTEXT = 512; // of the model
const TEXT = 'My cat is called Milo and I live in Torun. '.repeat(6);

const { Engine, inspectModel } = headlight;

/** What a session says, token by token with its logprobs. */
async function answer(eviction: Headlight.Eviction | undefined, nCtx: number, maxTokens: number) {
  const options = { nCtx, threads: 1, ...(eviction === undefined ? {} : { eviction }) };
  const engine = await Engine.load(model, options);
  const greedy = { temperature: 0, logprobs: 3, maxTokens, ignoreEndOfGeneration: true };
  const chunks: unknown[] = [];
  const run = engine.complete(TEXT, greedy);
  for await (const { tokens, logprobs } of run) chunks.push({ tokens, logprobs });
  const { usage } = await run.result();
  const { kvCacheBytes } = engine.info.memory;
  await engine.dispose();
  return { chunks, usage, kvCacheBytes };
}

describe('eviction', () => {
  const roomy: Headlight.Eviction[] = [
    { policy: 'none' },
    { policy: 'sinks', sinks: 4, window: 500 },
    { policy: 'h2o', budget: 400 },
    { policy: 'snapkv', budget: 400 },
  ];
  it.each(roomy)('$policy: with room for everything the same tokens and logprobs', async (e) => {
    const [with_, without] = [await answer(e, CONTEXT, 30), await answer(undefined, CONTEXT, 30)];
    expect(with_.chunks).toEqual(without.chunks);
  });

  const tight: [Headlight.Eviction, number][] = [
    [{ policy: 'h2o', budget: 40 }, 40 + 64],
    [{ policy: 'snapkv', budget: 40 }, CONTEXT],
  ];
  it.each(tight)('%j: other numbers than with all keys, in %i rows', async (eviction, rows) => {
    const kept = await answer(eviction, CONTEXT, 30);
    const whole = await answer(undefined, CONTEXT, 30);
    expect(kept.chunks).not.toEqual(whole.chunks);
    const rowBytes = whole.kvCacheBytes / CONTEXT;
    const bookkeeping = 6 * 2 * rows * 12; // a position and two sums of each row and head
    expect(kept.kvCacheBytes).toBe(rows * rowBytes + bookkeeping);
    expect(await answer(eviction, CONTEXT, 30)).toEqual(kept);
  });

  it("'sinks' streams past the model's context in bounded memory", async () => {
    const eviction: Headlight.Eviction = { policy: 'sinks', sinks: 4, window: 128 };
    const stream = await answer(eviction, 2 * CONTEXT, 600);
    expect(stream.usage).toMatchObject({ completionTokens: 600 });
    const whole = await inspectModel(model, { nCtx: CONTEXT });
    expect(stream.kvCacheBytes).toBe(whole.kvCacheBytes); // 256 rows for the first keys, 256 for the rest
    const longer = await inspectModel(model, { nCtx: 100_000, eviction });
    expect(longer.kvCacheBytes).toBe(whole.kvCacheBytes);
  });

  it.each([
    { policy: 'h2o', budget: 40 },
    { policy: 'snapkv', budget: 40 },
  ] as const)(
    '$policy: capture, save and restore are refused by name, and the session goes on',
    async (eviction) => {
      const engine = await Engine.load(model, { nCtx: CONTEXT, threads: 1, eviction });
      const plain = await Engine.load(model, { nCtx: CONTEXT, threads: 1 });
      const tokens = await engine.tokenize(TEXT);
      const expected = (await engine.forward(tokens)).logits;
      const refused = (option: string, remedy: RegExp) => ({
        code: 'Unsupported',
        details: { option },
        message: expect.stringMatching(remedy),
      });
      const noCapture = refused('capture', /use eviction 'none' or 'sinks'/);
      const noSave = refused(
        'eviction.policy',
        /keep the tokens.*or use eviction 'none' or 'sinks'/,
      );
      await expect(engine.forward(tokens, { capture: {} })).rejects.toMatchObject(noCapture);
      const run = engine.complete(tokens, { maxTokens: 1, capture: {} });
      await expect(run.result()).rejects.toMatchObject(noCapture);
      const session = engine.session();
      await session.complete(tokens, { maxTokens: 1 }).result();
      await expect(session.save()).rejects.toMatchObject(noSave);
      const saved = await plain.session().save();
      await expect(engine.restore(saved)).rejects.toMatchObject(noSave);
      expect((await engine.forward(tokens)).logits).toEqual(expected);
      await engine.dispose();
      await plain.dispose();
    },
  );

  const bad: [string, unknown, number][] = [
    ['policy', { policy: 'oldest' }, CONTEXT],
    ['policy', {}, CONTEXT],
    ['sinks', { policy: 'sinks', sinks: 33 }, CONTEXT],
    ['window', { policy: 'sinks', window: 0 }, CONTEXT],
    ['budget', { policy: 'h2o' }, CONTEXT],
    ['budget', { policy: 'sinks', budget: 5 }, CONTEXT],
    ['eviction.window', { policy: 'h2o', budget: 8, window: 9 }, CONTEXT],
    ['eviction.window', { policy: 'sinks', window: 510 }, CONTEXT],
    ['n_ctx', { policy: 'h2o', budget: 8 }, 2 * CONTEXT],
  ];
  it.each(bad)('%s: %j is refused by name', async (option, eviction, nCtx) => {
    const load = Engine.load(model, { nCtx, eviction } as never);
    await expect(load).rejects.toMatchObject({ code: 'BadOption', details: { option } });
  });
});
