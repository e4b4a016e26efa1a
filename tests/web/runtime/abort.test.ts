// A stop is seen within 50 ms, also in a prompt of 2,000 tokens and in a layer of a large model, and leaves the engine as it
// was before the call.
import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { LabCallOptions } from '../../../web/runtime/src/lab/lab_call.js';
import type { LoadOptions } from '../../../web/runtime/src/types.js';
import { isLong, repeat, report, SEED } from '../../soak/plan.js';
import { headlight, headlightLab } from '../built_package.js';
import { randomSource } from '../text/vocabularies.js';
import {
  type AbortPlan,
  abortInDecode,
  abortInPrefill,
  areLate,
  coreShare,
  LATE_MS,
  latenciesOf,
  MIDDLE,
  msOf,
} from './abort_latency.js';
import { randomModel, type Shape } from './random_model.js';

const { Engine } = headlight;
const { ModelLab } = headlightLab;

const SHARE = 0.02;
const LEAST = isLong ? 25 : 8;
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

/** All of it; a token takes longer than the promise. */
const WHOLE: Shape = { ...LARGE, layers: 16, vocab: 128_256 };

interface Case {
  name: string;
  shape: Shape;
  type: string;
  options: LoadOptions;
  promptTokens: number;
  below: number;
}

async function measure({ name, shape, type, options, promptTokens, below }: Case) {
  const path = await randomModel(name, shape, type);
  const engine = await Engine.load(path, { module: 'simd', nCtx: 4096, ...options });
  rmSync(path);
  const plan: AbortPlan = { engine, promptTokens, below, pick: randomSource(SEED) };
  // The first run compiles.
  await engine.complete([5, 6, 7], { maxTokens: 3 }).result();
  const nTimed = 8;
  const begun = performance.now();
  await engine.complete([5, 6, 7, 8], { maxTokens: nTimed, ignoreEndOfGeneration: true }).result();
  const tokenMs = (performance.now() - begun) / nTimed;
  const shareBefore = coreShare();
  const found = { prefill: [] as number[], decode: [] as number[] };
  const wanted = await repeat(SHARE, LEAST, async () => {
    found.prefill.push(...(await abortInPrefill(plan)));
    found.decode.push(...(await abortInDecode(plan)));
  });
  const prefill = latenciesOf(found.prefill);
  const decode = latenciesOf(found.decode);
  const runs = prefill.runs + decode.runs;
  const share = Math.min(shareBefore, coreShare());
  const late = areLate(prefill, share) || areLate(decode, share);
  report(`abort, ${name} model, ${engine.info.runtime.module}`, {
    runs,
    faults: runs,
    lost: late ? 1 : 0,
    promptTokens,
    coreShare: share.toFixed(2),
    tokenMs: Math.round(tokenMs),
    ...msOf(prefill, 'prefill_'),
    ...msOf(decode, 'decode_'),
  });
  expect(prefill.runs).toBeGreaterThan(wanted / 2);
  expect(decode.runs).toBeGreaterThan(wanted / 2);
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
  const middle = { name: 'middle', shape: MIDDLE, promptTokens: 2000, below: 0.9 };
  const large = { name: 'large', shape: LARGE, promptTokens: 200, below: 0.9 };
  const whole = { ...large, name: 'whole large', shape: WHOLE, below: 0.2 };
  it.each<Case>([
    { ...middle, type: 'q4_0', options: { threads: 1 } },
    { ...middle, type: 'q4_0', options: { threads: 2 } },
    { ...large, type: 'q4_0', options: { threads: 1 } },
    // 1.3 GB.
    ...(isLong ? [{ ...whole, type: 'q8_0', options: { threads: 1, nCtx: 512 } }] : []),
  ])('$name model, $options: seen at once', { timeout: 900_000 }, async (wanted) => {
    const { late, max } = await measure(wanted);
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
