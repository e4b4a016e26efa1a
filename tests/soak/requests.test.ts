// Thousands of requests of every kind over one engine: the memory of the module and of the process stays where it is.
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import type * as Headlight from '../../web/runtime/src/index.js';
import { headlight } from '../web/built_package.js';
import { randomSource } from '../web/text/vocabularies.js';
import { isLong, repeat, report, SEED, timeFor } from './plan.js';

const model = fileURLToPath(new URL('../../examples/models/default-q8_0.gguf', import.meta.url));
const { Engine } = headlight;

const SHARE = 0.06;
const LEAST = isLong ? 2000 : 150;
/** By then everything has been compiled and has grown to what it needs. */
const WARM = LEAST / 5;
/** What the process may grow by in all: the worker's heap is collected at its own time. */
const SPARE_BYTES = 48 << 20;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

async function request(
  engine: InstanceType<typeof Engine>,
  session: Headlight.EngineSession,
  pick: (n: number) => number,
): Promise<number> {
  const prompt = Array.from({ length: 1 + pick(40) }, () => 3 + pick(2000));
  const options = { maxTokens: 1 + pick(8), seed: pick(100), ignoreEndOfGeneration: true };
  switch (pick(8)) {
    case 0: {
      const messages = [{ role: 'user', content: `What is ${pick(50)} and ${pick(50)}?` }];
      await engine.chat(messages, { ...options, stop: ['.'] }).result();
      return 0;
    }
    case 1: {
      const run = engine.complete(prompt, options);
      for await (const _ of run) break;
      await run.result();
      return 1;
    }
    case 2: {
      const fork = await session.fork();
      await fork.complete(prompt, options).result();
      await fork.close();
      return 0;
    }
    case 3:
      await (await engine.restore(await session.save())).close();
      return 0;
    case 4:
      await engine.forward(prompt.slice(0, 8), { logits: 'all' });
      return 0;
    case 5:
      await engine.restore(new Uint8Array(pick(100))).catch(() => {});
      return 1;
    case 6:
      await engine.tokenize('Once upon a time '.repeat(1 + pick(20)));
      return 0;
    default:
      await session.complete(prompt, options).result();
      return 0;
  }
}

it('thousands of requests leave memory as it is', { timeout: timeFor(SHARE).timeout }, async () => {
  const engine = await Engine.load(model, { threads: 1, module: 'simd' });
  const session = engine.session();
  const pick = randomSource(SEED);
  const memory = async () => {
    collectGarbage();
    const { wasmBytes } = await engine.stats();
    return { wasmBytes, rss: process.memoryUsage.rss() };
  };
  let warm = await memory();
  let faults = 0;
  const runs = await repeat(SHARE, LEAST, async (i) => {
    if (i === WARM) warm = await memory();
    faults += await request(engine, session, pick);
  });
  const after = await memory();
  await engine.dispose();
  const grownBytes = after.rss - warm.rss;
  const lost = after.wasmBytes === warm.wasmBytes && grownBytes < SPARE_BYTES ? 0 : 1;
  report('requests', { runs, faults, lost, wasmBytes: after.wasmBytes, grownBytes });
  expect(after.wasmBytes).toBe(warm.wasmBytes);
  expect(grownBytes).toBeLessThan(SPARE_BYTES);
});
