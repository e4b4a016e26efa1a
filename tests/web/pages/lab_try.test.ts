// "Run it in this tab": what is measured, how layouts take turns, and what is said of the winner.
import { describe, expect, test } from 'vitest';
import {
  nRounds,
  promptTokens,
  rowsFor,
  type TryRow,
  tryLayouts,
  winner,
} from '../../../web/pages/lab/bytes/try_layout.js';
import { headlightLab } from '../built_package.js';
import { lab } from '../lab/started_lab.js';

const { relativeRms, spread } = headlightLab;

const layouts = [
  { label: 'a', widths: { nQHeads: 4, nKvHeads: 2, dQk: 48, dV: 64 } },
  { label: 'b', widths: { nQHeads: 4, nKvHeads: 4, dQk: 64, dV: 64 } },
];
const never = new AbortController().signal;

describe('with the kernels', () => {
  test('every layout in every cache format: bytes, times, and errors that grow as bits shrink', async () => {
    const { nKv, rows } = await tryLayouts({
      layouts,
      attend: (options) => lab.attend(options),
      signal: never,
      onRound: () => {},
    });
    expect(rows.map(({ label, cache }) => `${label} ${cache}`)).toEqual([
      ...['a f32', 'a f16', 'a int8'],
      ...['b f32', 'b f16', 'b int8'],
    ]);
    // 2 KV heads of 48 + 64 numbers, with a scale of two bytes a row for int8.
    expect(rows.slice(0, 3).map(({ cacheBytes }) => cacheBytes / nKv)).toEqual([896, 448, 232]);
    for (const { decode, prefill } of rows) {
      expect(decode.low).toBeLessThanOrEqual(decode.median);
      expect(decode.median).toBeLessThanOrEqual(decode.high);
      expect(prefill.high).toBeGreaterThan(0);
    }
    for (const at of [0, 3]) {
      const [f32 = 1, f16 = 0, int8 = 0] = rows.slice(at, at + 3).map(({ error }) => error);
      expect(f32).toBe(0);
      expect(f16).toBeGreaterThan(0);
      expect(f16).toBeLessThan(1e-3);
      expect(int8).toBeGreaterThan(f16);
      expect(int8).toBeLessThan(0.05);
    }
  });
});

test('layouts and formats take turns, round by round, after one that only warms up', async () => {
  const calls: string[] = [];

  const rounds: number[] = [];
  const { rows } = await tryLayouts({
    layouts,
    attend: async ({ nKvHeads, kvCache, q, nQHeads, dQk }) => {
      calls.push(`${nKvHeads} ${kvCache?.k} ${q.length / (nQHeads * dQk)}`);
      // The first six pairs are the warm-up.
      const milliseconds = calls.length <= 12 ? 100 : 1;
      return { out: new Float32Array(1), kvCacheBytes: 1, milliseconds, kernel: 'x' };
    },
    signal: never,
    onRound: (round) => rounds.push(round),
  });
  const round = ['f32', 'f16', 'int8'];
  const one = [2, 4].flatMap((heads) =>
    round.flatMap((cache) => [`${heads} ${cache} 1`, `${heads} ${cache} ${promptTokens}`]),
  );
  expect(calls).toEqual(
    Array(nRounds + 1)
      .fill(one)
      .flat(),
  );
  expect(rounds).toEqual([1, 2, 3, 4, 5]);
  expect(rows.map(({ decode }) => decode.high)).toEqual(Array(6).fill(1));
});

test('a stop ends it before the next call', async () => {
  const controller = new AbortController();
  let calls = 0;
  const running = tryLayouts({
    layouts,
    attend: async () => {
      calls += 1;
      controller.abort();
      return { out: new Float32Array(1), kvCacheBytes: 1, milliseconds: 1, kernel: 'x' };
    },
    signal: controller.signal,
    onRound: () => {},
  });
  await expect(running).rejects.toMatchObject({ name: 'AbortError' });
  expect(calls).toBe(2);
});

test('wide layouts get fewer rows, never fewer than the prompt', () => {
  const wide = (nKvHeads: number) => [
    { widths: { nQHeads: nKvHeads, nKvHeads, dQk: 128, dV: 128 } },
  ];
  expect(rowsFor(layouts)).toBe(1024);
  expect(rowsFor(wide(64))).toBe(244);
  expect(rowsFor(wide(1024))).toBe(promptTokens);
});

test('median, spread, relative error', () => {
  expect(spread([3, 1, 2, 9, 4])).toEqual({ median: 3, low: 1, high: 9 });
  expect(relativeRms(Float32Array.of(3, 5), Float32Array.of(3, 4))).toBeCloseTo(0.2, 6);
  expect(relativeRms(Float32Array.of(0), Float32Array.of(0))).toBe(0);
});

test('a winner only where no round overlaps', () => {
  const row = (label: string, low: number, high: number): TryRow => {
    const times = { median: (low + high) / 2, low, high };
    return { label, cache: 'f32', cacheBytes: 1, decode: times, prefill: times, error: 0 };
  };
  expect(winner([row('a', 4, 4), row('b', 1, 3)], 'f32')).toBe(
    'f32: b is 2.00 times as fast for one token, in every round.',
  );
  expect(winner([row('a', 1, 3), row('b', 2, 6)], 'f32')).toMatch(
    /^f32: a is 2\.00 .*no safe winner/,
  );
  expect(winner([row('a', 1, 3)], 'f32')).toBe('');
});
