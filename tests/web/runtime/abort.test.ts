// A stop is seen within 50 ms, also in a prompt of 2,000 tokens and in a layer of a large model, and leaves the engine as it
// was before the call.
import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { LabCallOptions } from '../../../web/runtime/src/lab/lab_call.js';
import type { LoadOptions } from '../../../web/runtime/src/types.js';
import { isLong, report, SEED } from '../../soak/plan.js';
import { headlight, headlightLab } from '../built_package.js';
import { randomSource } from '../text/vocabularies.js';
import {
  type AbortPlan,
  abortsInDecode,
  abortsInPrefill,
  coreShare,
  LATE_MS,
  type Latencies,
  latenciesOf,
  MIDDLE,
} from './abort_latency.js';
import { randomModel, type Shape } from './random_model.js';

const { Engine } = headlight;
const { ModelLab } = headlightLab;

const RUNS = isLong ? 100 : 8;
/** Llama 3.2 1B's layers, few of them: how long one takes is what matters. */
const LARGE: Shape = {
  layers: 3,
  d: 2048,
  heads: 32,
  kv: 8,
  dqk: 64,
  dv: 64,
  ffn: 8192,
  vocab: 2048,
  ctx: 16384,
};

async function measure(name: string, shape: Shape, options: LoadOptions, promptTokens: number) {
  const path = await randomModel(name, shape, 'q4_0');
  const engine = await Engine.load(path, { module: 'simd', nCtx: 4096, ...options });
  rmSync(path);
  const plan: AbortPlan = { engine, promptTokens, runs: RUNS, pick: randomSource(SEED) };
  // The first run compiles.
  await engine.complete([5, 6, 7], { maxTokens: 3 }).result();
  const shareBefore = coreShare();
  const prefill = latenciesOf(await abortsInPrefill(plan));
  const decode = latenciesOf(await abortsInDecode(plan));
  const ms = ({ p50, p99, max }: Latencies) =>
    `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)}, max ${max.toFixed(1)} ms`;
  const runs = prefill.runs + decode.runs;
  const share = Math.min(shareBefore, coreShare());
  const late = Math.max(prefill.p50, decode.p50) * share > LATE_MS;
  report(`abort, ${name} model, ${engine.info.runtime.module}`, {
    runs,
    faults: runs,
    lost: late ? 1 : 0,
    promptTokens,
    coreShare: share.toFixed(2),
    prefill: ms(prefill),
    decode: ms(decode),
  });
  const alone = await engine
    .session()
    .complete([5, 6, 7], { temperature: 0, maxTokens: 5 })
    .result();
  const after = await engine.complete([5, 6, 7], { temperature: 0, maxTokens: 5 }).result();
  expect(after.tokens).toEqual(alone.tokens);
  await engine.dispose();
  return { late, max: Math.max(prefill.max, decode.max) * share };
}

describe('abort', () => {
  it.each([
    ['middle', MIDDLE, { threads: 1 }, 2000],
    ['middle', MIDDLE, { threads: 2 }, 2000],
    ['large', LARGE, { threads: 1 }, 200],
  ] as const)('%s model: seen at once', { timeout: 900_000 }, async (name, shape, options, n) => {
    const { late, max } = await measure(name, shape, options, n);
    expect(late).toBe(false);
    expect(max).toBeLessThan(4 * LATE_MS);
  });
});

it('forward: a stop ends the work itself, and the next request does not wait for the rest', async () => {
  const path = await randomModel('large', LARGE, 'q4_0');
  const engine = await Engine.load(path, { module: 'simd', threads: 1, nCtx: 512 });
  rmSync(path);
  const tokens = Array.from({ length: 160 }, (_, i) => 5 + (i % 900));
  const next = () => engine.complete([5, 6, 7], { temperature: 0, maxTokens: 5 }).result();
  const alone = await next();
  const begin = performance.now();
  await engine.forward(tokens, { logits: 'all' });
  const wholeMs = performance.now() - begin;
  const controller = new AbortController();
  const stopped = engine.forward(tokens, { logits: 'all', signal: controller.signal });
  setTimeout(() => controller.abort(), wholeMs / 20);
  await expect(stopped).rejects.toMatchObject({ code: 'Aborted' });
  const stoppedAt = performance.now();
  expect((await next()).tokens).toEqual(alone.tokens);
  // The whole would have taken 95 % of its time from there.
  expect(performance.now() - stoppedAt).toBeLessThan(wholeMs / 2);
  await engine.dispose();
});

describe('the lab', () => {
  it.each(['calibrate', 'evaluate'] as const)(
    '%s: a stop ends the work itself, and the next request does not wait for its piece',
    { timeout: 300_000 },
    async (what) => {
      const path = await randomModel(`lab-${what}`, { ...LARGE, layers: 6 }, 'q4_0');
      const engine = await Engine.load(path, { module: 'simd', threads: 1, nCtx: 512 });
      rmSync(path);
      const lab = new ModelLab(engine);
      const dialogues = [[{ role: 'user', content: 'a'.repeat(200) }]];
      const work = (options: LabCallOptions) =>
        what === 'calibrate'
          ? lab.calibrate({ dialogues, segmentTokens: 64, maxSegments: 2, ...options })
          : lab.original.evaluate({ dialogues, questions: [], ...options });
      // Of the first piece: a segment or a dialogue.
      const moments: number[] = [];
      await work({ onProgress: () => moments.push(performance.now()) });
      moments.push(performance.now());
      const pieceMs = (moments[1] ?? 0) - (moments[0] ?? 0);
      const controller = new AbortController();
      const stopped = work({
        signal: controller.signal,
        onProgress: () => setTimeout(() => controller.abort(), pieceMs / 20),
      });
      await expect(stopped).rejects.toMatchObject({ code: 'Aborted' });
      const start = performance.now();
      await engine.stats();
      const ms = performance.now() - start;
      report(`abort, ${what} of the lab, large model`, {
        ...{ runs: 1, faults: 1, lost: 0, coreShare: coreShare().toFixed(2) },
        ms: `${ms.toFixed(1)} ms of a piece of ${pieceMs.toFixed(0)} ms`,
      });
      expect(ms).toBeLessThan(pieceMs / 2);
      await engine.dispose();
    },
  );
});
