// The three tokens of the lab's section "One head by hand", in double precision and by the package's kernels: what the
// article prints, exactly.
import { describe, expect, test } from 'vitest';
import {
  dotText,
  flat,
  largestDifference,
  matmul,
  rowsOf,
} from '../../../web/pages/lab/hand/arithmetic.js';
import {
  articleMatrices,
  computeSteps,
  explain,
  type Inputs,
} from '../../../web/pages/lab/hand/three_steps.js';
import { lab } from '../lab/started_lab.js';

const inputs: Inputs = {
  ...articleMatrices,
  isScaled: true,
  isCausal: true,
  isNormed: false,
  isPadded: false,
  hasSink: false,
};
const rounded = (values: readonly number[], digits = 4) =>
  values.map((value) => value.toFixed(digits)).join(' ');

describe('three tokens', () => {
  const steps = computeSteps(inputs);

  test('projections and scores', () => {
    expect(steps.q).toEqual([
      [2, 0],
      [0, 3],
      [1, 2],
    ]);
    expect(steps.k).toEqual([
      [0, 2],
      [3, 0],
      [2, 1],
    ]);
    expect(steps.v).toEqual([
      [1, 1],
      [1, 4],
      [2, 2],
    ]);
    expect(steps.scores).toEqual([
      [0, 6, 4],
      [6, 0, 3],
      [4, 3, 4],
    ]);
  });

  test('scaled by the root of two, then masked', () => {
    expect(rounded(steps.scaled.flat(), 2)).toBe('0.00 4.24 2.83 4.24 0.00 2.12 2.83 2.12 2.83');
    const never = Number.NEGATIVE_INFINITY;
    expect(steps.masked.map((row) => row.map((s) => s === never))).toEqual([
      [false, true, true],
      [false, false, true],
      [false, false, false],
    ]);
  });

  test('weights and outputs, by the kernels too', async () => {
    expect(steps.weights.map((row) => rounded(row))).toEqual([
      '1.0000 0.0000 0.0000',
      '0.9858 0.0142 0.0000',
      '0.4011 0.1978 0.4011',
    ]);
    expect(steps.out.map((row) => rounded(row))).toEqual([
      '1.0000 1.0000',
      '1.0000 1.0425',
      '1.4011 1.9944',
    ]);
    const common = { nQHeads: 1, nKvHeads: 1, dQk: 2, q: flat(steps.q), k: flat(steps.k) };
    const weights = rowsOf(await lab.weights(common), 3);
    const { out } = await lab.attend({ ...common, dV: 2, v: flat(steps.v) });
    expect(largestDifference(weights, steps.weights)).toBeLessThan(2e-7);
    expect(largestDifference(rowsOf(out, 2), steps.out)).toBeLessThan(1e-6);
    for (const [i, row] of weights.entries()) {
      expect(row.slice(i + 1).every((weight) => weight === 0)).toBe(true);
      expect(Math.abs(row.reduce((a, b) => a + b, 0) - 1)).toBeLessThan(1e-6);
    }
  });

  test('without the mask, and without the scale, by the kernels too', async () => {
    for (const change of [{ isCausal: false }, { isScaled: false }]) {
      const other = computeSteps({ ...inputs, ...change });
      expect(largestDifference(other.weights, steps.weights)).toBeGreaterThan(0.01);
      const weights = await lab.weights({
        nQHeads: 1,
        nKvHeads: 1,
        dQk: 2,
        q: flat(other.q),
        k: flat(other.k),
        causal: change.isCausal ?? true,
        ...(change.isScaled === false ? { scale: 1 } : {}),
      });
      expect(largestDifference(rowsOf(weights, 3), other.weights)).toBeLessThan(2e-7);
    }
  });

  test('padding is seen by nobody, a learned sink keeps part of each row; by the kernels too', async () => {
    const changes = [
      { isCausal: false, isPadded: true, hasSink: false },
      { isCausal: true, isPadded: false, hasSink: true },
      { isCausal: true, isPadded: true, hasSink: true },
    ];
    for (const change of changes) {
      const other = computeSteps({ ...inputs, ...change });
      const weights = rowsOf(
        await lab.weights({
          nQHeads: 1,
          nKvHeads: 1,
          dQk: 2,
          q: flat(other.q),
          k: flat(other.k),
          causal: change.isCausal,
          ...(change.isPadded ? { mask: Uint8Array.of(1, 1, 0) } : {}),
          ...(change.hasSink ? { sinkLogits: Float32Array.of(0) } : {}),
        }),
        3,
      );
      expect(largestDifference(weights, other.weights)).toBeLessThan(2e-7);
      for (const row of weights) {
        if (change.isPadded) expect(row[2]).toBe(0);
        const sum = row.reduce((a, b) => a + b, 0);
        if (change.hasSink) expect(sum).toBeLessThan(0.995);
        else expect(sum).toBeCloseTo(1, 6);
      }
    }
    const withSink = { ...inputs, hasSink: true };
    expect(computeSteps(withSink).weights.map((row) => rounded(row))).toEqual([
      '0.5000 0.0000 0.0000',
      '0.9721 0.0140 0.0000',
      '0.3918 0.1932 0.3918',
    ]);
    expect(explain('weights', 2, 0, withSink).text).toBe(
      'exp(2.83) / (16.92 + 8.342 + 16.92 + 1) = 16.92 / 43.18 = 0.3918; ' +
        'the row sums to 0.9768, the sink keeps 0.0232',
    );
    expect(explain('masked', 2, 2, { ...inputs, isPadded: true }).text).toBe(
      '“sat” is padding: −∞',
    );
  });

  test('QK-norm: no score exceeds d_qk, and tenfold inputs change nothing; by the kernels too', async () => {
    const normed = { ...inputs, isNormed: true };
    const other = computeSteps(normed);
    expect(other.qNormed.map((row) => rounded(row))).toEqual([
      '1.4142 0.0000',
      '0.0000 1.4142',
      '0.6325 1.2649',
    ]);
    expect(other.scores.map((row) => rounded(row))).toEqual([
      '0.0000 2.0000 1.7889',
      '2.0000 0.0000 0.8944',
      '1.7889 0.8944 1.6000',
    ]);
    expect(other.weights.map((row) => rounded(row))).toEqual([
      '1.0000 0.0000 0.0000',
      '0.8044 0.1956 0.0000',
      '0.4156 0.2208 0.3636',
    ]);
    const tenfold = articleMatrices.x.map((row) => row.map((value) => 10 * value));
    const plain = computeSteps({ ...inputs, x: tenfold });
    const large = computeSteps({ ...normed, x: tenfold });
    // 100 times the scores: one weight takes all. With the norm nothing changes but what ε did.
    expect(plain.weights[1]?.[0]).toBeGreaterThan(0.999999);
    expect(largestDifference(large.weights, other.weights)).toBeLessThan(1e-6);
    const weights = await lab.weights({
      ...{ nQHeads: 1, nKvHeads: 1, dQk: 2 },
      q: flat(other.qNormed),
      k: flat(other.kNormed),
    });
    expect(largestDifference(rowsOf(weights, 3), other.weights)).toBeLessThan(2e-7);
    const zero = computeSteps({ ...normed, x: [[0, 0, 0, 0], ...articleMatrices.x.slice(1)] });
    expect(zero.qNormed[0]).toEqual([0, 0]);
    expect(explain('qNormed', 2, 0, normed).text).toBe(
      '1 / √((1² + 2²) / 2) = 1 / 1.5811 = 0.6325',
    );
    expect(explain('scores', 2, 0, normed)).toMatchObject({
      text: '0.6325·0 + 1.2649·1.4142 = 1.7889',
      sources: [
        { matrix: 'qNormed', row: 2 },
        { matrix: 'kNormed', row: 0 },
      ],
    });
  });

  test('each number says its own arithmetic', () => {
    const text = (...args: [Parameters<typeof explain>[0], number, number]) =>
      explain(...args, inputs).text;
    expect(text('q', 0, 0)).toBe('1·1 + 0·0 + 1·1 + 0·0 = 2');
    expect(text('scores', 0, 1)).toBe('2·3 + 0·0 = 6');
    expect(text('scaled', 0, 1)).toBe('6 / √2 = 6 / 1.4142 = 4.2426');
    expect(text('masked', 0, 1)).toBe('“cat” comes after “the”: −∞');
    expect(text('weights', 2, 0)).toBe(
      'exp(2.83) / (16.92 + 8.342 + 16.92) = 16.92 / 42.18 = 0.4011',
    );
    expect(text('weights', 0, 2)).toBe('exp(−∞) = 0: exactly zero');
    expect(text('out', 2, 0)).toBe('0.4011·1 + 0.1978·1 + 0.4011·2 = 1.4011');
    expect(explain('out', 2, 1, inputs)).toMatchObject({
      name: 'out[2][1]',
      sources: [
        { matrix: 'weights', row: 2 },
        { matrix: 'v', column: 1 },
      ],
    });
  });

  test('a dot product: [1,2]·[3,4] = 11', () => {
    expect(dotText([1, 2], [3, 4])).toBe('1·3 + 2·4 = 11');
    expect(matmul([[1, 2]], [[3], [4]])).toEqual([[11]]);
  });
});
