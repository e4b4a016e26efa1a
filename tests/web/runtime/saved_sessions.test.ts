// Forks and saved sessions with the real module: what goes on from them is what a run alone gives, and bytes from elsewhere
// are refused by what differs.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type * as Headlight from '../../../web/runtime/src/index.js';
import { headlight } from '../built_package.js';
import { hideKey } from '../gguf_edit.js';
import { chunksOf } from './runs.js';

const model = fileURLToPath(new URL('../../../examples/models/default-q8_0.gguf', import.meta.url));
const { Engine, sessionStore } = headlight;

const ONE_THREAD = { threads: 1, module: 'simd' } as const;
const GREEDY = { temperature: 0, logprobs: 2, ignoreEndOfGeneration: true };
const SAMPLED = { seed: 7, temperature: 1, maxTokens: 20, logprobs: 2 };

/** Ids and logprobs: equal only when the logits behind them are. */
async function figures(run: Headlight.Run) {
  const chunks = await chunksOf(run);
  return chunks.flatMap(({ logprobs = [] }) =>
    logprobs.map(({ token, logprob }) => [token, logprob]),
  );
}

describe('saved sessions', () => {
  let engine: InstanceType<typeof Engine>;
  let tokens: number[];
  beforeAll(async () => {
    engine = await Engine.load(model, ONE_THREAD);
    tokens = await engine.tokenize('Once upon a time there was a', { addSpecial: true });
  });
  afterAll(() => engine.dispose());

  it('an earlier message edited: what comes before the edit is kept, and the answer is that of a run alone', async () => {
    const ask = (content: string): Headlight.ChatMessage[] => [
      { role: 'user', content: 'Who are you?' },
      { role: 'assistant', content: 'I am a tiny language model.' },
      { role: 'user', content },
      { role: 'assistant', content: 'Four.' },
      { role: 'user', content: 'And then?' },
    ];
    const [before, edited] = [ask('What is two and two?'), ask('What is two and three?')];
    const session = engine.session();
    await session.chat(before, { ...GREEDY, maxTokens: 4 }).result();
    const run = session.chat(edited, { ...GREEDY, maxTokens: 12 });
    const found = await figures(run);
    expect(found).toEqual(
      await figures(engine.session().chat(edited, { ...GREEDY, maxTokens: 12 })),
    );
    const { promptTokens, reusedTokens } = (await run.result()).usage;
    // All up to the edited word, which is within the third message, and nothing behind it.
    const head = await engine.session().chat(edited.slice(0, 2), { maxTokens: 1 }).result();
    expect(reusedTokens).toBeGreaterThan(head.usage.promptTokens - 4);
    expect(reusedTokens).toBeLessThan(promptTokens - 8);
  });

  it('a fork and a restored session go on as the first, bit for bit, and apart from it', async () => {
    const first = engine.session();
    const begun = await first.complete(tokens, { ...GREEDY, maxTokens: 9 }).result();
    const history = [...tokens, ...begun.tokens];
    const fork = await first.fork();
    const restored = await engine.restore(await first.save());
    await first.complete([...history, 5, 6], { ...GREEDY, maxTokens: 5 }).result();

    const alone = await figures(engine.session().complete(history, SAMPLED));
    expect(alone).toHaveLength(20);
    for (const session of [fork, restored]) {
      const run = session.complete(history, SAMPLED);
      expect(await figures(run)).toEqual(alone);
      expect((await run.result()).usage.reusedTokens).toBe(history.length - 1);
    }
  });

  it('truncate and go on is as if what was cut had never been', async () => {
    const session = engine.session();
    await session.complete([...tokens, 9, 8, 7], { ...GREEDY, maxTokens: 9 }).result();
    await session.truncate(tokens.length);
    const alone = await figures(engine.session().complete(tokens, SAMPLED));
    expect(await figures(session.complete(tokens, SAMPLED))).toEqual(alone);
  });

  it('is about kvBytesPerToken for a token, and goes to another engine of the same model', async () => {
    const session = engine.session();
    const { usage } = await session.complete(tokens, { ...GREEDY, maxTokens: 30 }).result();
    const saved = await session.save();
    const { kvBytesPerToken } = engine.info.memory;
    const nRows = usage.contextTokens - 1;
    expect(saved.length).toBe(nRows * kvBytesPerToken + 4 * usage.contextTokens + 48);
    const other = await Engine.load(readFileSync(model), { threads: 2, module: 'simd', nCtx: 100 });
    expect((await (await other.restore(saved)).stats()).contextTokens).toBe(usage.contextTokens);
    await other.dispose();
  });

  it.each([
    ['cache type', model, { kvCache: { k: 'f16' } }, 'BadOption'],
    ['activations', model, { activations: 'f32' }, 'BadOption'],
    ['model', hideKey(readFileSync(model), 'tokenizer.chat_template'), {}, 'BadOption'],
    ['', model, { nCtx: 20 }, 'ContextFull'],
  ] as const)('of another %s is refused', async (differs, source, options, code) => {
    const session = engine.session();
    await session.complete(tokens, { ...GREEDY, maxTokens: 30 }).result();
    const saved = await session.save();
    const other = await Engine.load(source, { ...ONE_THREAD, ...options });
    const error = await other.restore(saved).catch((e) => e);
    expect(error).toMatchObject({ code });
    if (differs !== '') expect(error.details).toMatchObject({ differs });
    expect(
      (await other.complete(tokens, { ...GREEDY, maxTokens: 2 }).result()).tokens,
    ).toHaveLength(2);
    await other.dispose();
  });

  it('damaged at any place is an IntegrityError', async () => {
    const session = engine.session();
    await session.complete(tokens, { ...GREEDY, maxTokens: 3 }).result();
    const saved = await session.save();
    for (const at of [0, 9, 20, 40, 60, 1000, saved.length - 1]) {
      const damaged = saved.slice();
      damaged[at] = (damaged[at] ?? 0) ^ 1;
      await expect(engine.restore(damaged)).rejects.toMatchObject({ code: 'Integrity' });
    }
    await expect(engine.restore(saved.subarray(0, 100))).rejects.toMatchObject({
      code: 'Integrity',
    });
    await expect(engine.restore(new Uint8Array())).rejects.toMatchObject({ code: 'Integrity' });
  });

  it('a hundred forks that are closed again leave memory as it is', async () => {
    const session = engine.session();
    await session.complete(tokens, { ...GREEDY, maxTokens: 3 }).result();
    const bytes = async () => {
      const forks = [];
      for (let i = 0; i < 4; i++) forks.push(await session.fork());
      for (const fork of forks) await fork.close();
      return (await engine.stats()).wasmBytes;
    };
    const before = await bytes();
    for (let i = 0; i < 25; i++) await bytes();
    expect(await bytes()).toBe(before);
  });

  it('Node has no place to keep them by name', async () => {
    await expect(sessionStore.put('a', new Uint8Array(1))).rejects.toMatchObject({ code: 'Quota' });
    expect(await sessionStore.list()).toEqual([]);
  });
});
