// A load that is stopped, wherever it is: told within 50 ms, when the worker and its memory are gone. tests/soak/browser has the
// same in real browsers, with the store.
import { readFileSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelSource } from '../../../web/runtime/src/types.js';
import { isLong, repeat, report, SEED } from '../../soak/plan.js';
import { headlight } from '../built_package.js';
import { FaultServer } from '../store/fault_server.js';
import { randomSource } from '../text/vocabularies.js';
import { areLate, coreShare, latenciesOf, MIDDLE, msOf } from './abort_latency.js';
import { randomModel } from './random_model.js';

const { Engine } = headlight;

const SHARE = 0.012;
const LEAST = isLong ? 20 : 10;
const OPTIONS = { module: 'simd', threads: 1, nCtx: 512 } as const;
/** Weights, tokenizer and module of one load that nobody has ended. */
const ONE_LOAD_BYTES = 30e6;

const server = new FaultServer();
let path: string;
let bytes: Uint8Array;
beforeAll(async () => {
  path = await randomModel('abort-load', MIDDLE, 'q4_0');
  bytes = new Uint8Array(readFileSync(path));
  await server.start();
});
afterAll(async () => {
  await server.stop();
  rmSync(path);
});

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Milliseconds; undefined where the load was done before. */
async function stopped(source: ModelSource, share: number, waitMs: number) {
  const controller = new AbortController();
  let reach = () => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const loading = Engine.load(source, {
    ...OPTIONS,
    signal: controller.signal,
    onProgress: ({ loadedBytes, totalBytes }) =>
      share > 0 && loadedBytes >= share * (totalBytes ?? Infinity) && reach(),
  });
  const code = loading.then(
    (engine) => engine.dispose().then(() => 'loaded'),
    (error) => error.code,
  );
  if (share === 0) reach();
  await Promise.race([reached, code]);
  await pause(waitMs);
  const start = performance.now();
  controller.abort();
  const ended = await code;
  if (ended === 'loaded') return undefined;
  expect(ended).toBe('Aborted');
  return performance.now() - start;
}

const answer = async (source: ModelSource) => {
  const start = performance.now();
  const engine = await Engine.load(source, OPTIONS);
  const { tokens } = await engine.complete([5, 6, 7], { temperature: 0, maxTokens: 5 }).result();
  await engine.dispose();
  return { tokens, ms: performance.now() - start };
};

describe('a load that is stopped', () => {
  it.each<[string, () => ModelSource, 'stall' | undefined]>([
    ['a path', () => path, undefined],
    ['a file of the page', () => new Blob([bytes as Uint8Array<ArrayBuffer>]), undefined],
    ['bytes', () => bytes, undefined],
    ['a fast server', () => server.serve('/m.gguf', { bytes }), undefined],
    [
      'a server that stalls',
      () => server.serve('/m.gguf', { bytes }, { kind: 'stall', afterBytes: bytes.length / 2 }),
      'stall',
    ],
  ])(
    '%s: seen at once, and the worker is gone',
    { timeout: 600_000 },
    async (name, source, fault) => {
      const pick = randomSource(SEED);
      const before = await answer(fault === 'stall' ? path : source());
      const found: number[] = [];
      let rss = 0;
      const wanted = await repeat(SHARE, LEAST, async (i) => {
        // Half of them anywhere, from the start of the worker on; half while weights are packed.
        const isPacking = i % 2 === 0;
        const share = isPacking ? (1 + pick(fault === 'stall' ? 45 : 95)) / 100 : 0;
        const ms = await stopped(source(), share, isPacking ? pick(5) : pick(before.ms));
        if (ms !== undefined) found.push(ms);
        if (i === LEAST / 2 - 1) rss = process.memoryUsage.rss();
      });
      const grownBytes = process.memoryUsage.rss() - rss;
      const latencies = latenciesOf(found);
      const { runs } = latencies;
      const share = coreShare();
      const late = areLate(latencies, share);
      report(`abort, load from ${name}, Node`, {
        ...{ runs, faults: runs, lost: late ? 1 : 0, coreShare: share.toFixed(2), grownBytes },
        ...msOf(latencies),
      });
      expect(late).toBe(false);
      expect(runs).toBeGreaterThan(wanted / 3);
      // Fewer than those that came after the first few.
      expect(grownBytes).toBeLessThan((ONE_LOAD_BYTES * LEAST) / 4);
      expect((await answer(fault === 'stall' ? path : source())).tokens).toEqual(before.tokens);
    },
  );
});
