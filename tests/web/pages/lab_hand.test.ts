// The numbers of the lab's section "One head by hand", in double precision and by the package's kernels: what the articles
// print, exactly.
import { describe, expect, test } from 'vitest';
import {
  brief,
  largestDifference,
  matmul,
  rowsOf,
  shown,
  softmax,
  softmaxText,
} from '../../../web/pages/lab/hand/arithmetic.js';
import { readNumber } from '../../../web/pages/lab/hand/matrix_view.js';
import { onlineValues } from '../../../web/pages/lab/hand/online.js';
import { onlineSteps } from '../../../web/pages/lab/hand/online_steps.js';
import { normals, scoreDeviation } from '../../../web/pages/lab/hand/random.js';
import { printedDeviations, threeScores } from '../../../web/pages/lab/hand/saturation.js';
import {
  articleScores,
  articleWidth,
  examples,
  gapFacts,
  printedWeights,
  roundedFirst,
} from '../../../web/pages/lab/hand/seven_rows.js';
import { headsArticle, slices } from '../../../web/pages/lab/hand/two_heads.js';
import { headlightLab } from '../built_package.js';
import { lab } from '../lab/started_lab.js';

const { HeadLab } = headlightLab;

const rounded = (values: readonly number[], digits = 4) =>
  values.map((value) => value.toFixed(digits)).join(' ');

/** Weights of one query with the given scores, by the kernels. */
async function kernelWeights(scores: readonly number[], scale: number): Promise<number[]> {
  const k = Float32Array.from(scores);
  return [
    ...(await lab.weights({ nQHeads: 1, nKvHeads: 1, dQk: 1, q: Float32Array.of(1), k, scale })),
  ];
}

describe('two heads', () => {
  const [q, ...keys] = headsArticle;
  const weightsOf = async (nHeads: number) =>
    rowsOf(
      await lab.weights({
        nQHeads: nHeads,
        nKvHeads: nHeads,
        dQk: 8 / nHeads,
        q: Float32Array.from(q),
        k: Float32Array.from(keys.flat()),
      }),
      2,
    );

  test('two slices: scores 6, 1 and 1, 5; weights 0.9241 / 0.0759 and 0.1192 / 0.8808', async () => {
    expect(slices(headsArticle, 2).map(({ scores }) => scores)).toEqual([
      [6, 1],
      [1, 5],
    ]);
    expect((await weightsOf(2)).map((row) => rounded(row))).toEqual([
      '0.9241 0.0759',
      '0.1192 0.8808',
    ]);
    expect([brief(Math.exp(2.5)), brief(Math.exp(2))]).toEqual(['12.1825', '7.3891']);
  });

  test('one wide head: scores 7 and 6, weights 0.5875 / 0.4125', async () => {
    expect(slices(headsArticle, 1)[0]?.scores).toEqual([7, 6]);
    expect((await weightsOf(1)).map((row) => rounded(row))).toEqual(['0.5875 0.4125']);
  });
});

describe('seven tokens', () => {
  const scale = 1 / Math.sqrt(articleWidth);

  test('scaled scores and weights, exact, by the kernels', async () => {
    expect(rounded(articleScores.map((score) => score * scale))).toBe(
      '1.2374 0.7955 0.5303 4.0659 3.6239 2.2097 0.9723',
    );
    expect(rounded(await kernelWeights(articleScores, scale))).toBe(
      '0.0300 0.0193 0.0148 0.5074 0.3262 0.0793 0.0230',
    );
  });

  test('the printed weights are those of scores rounded first, and sum to 0.999', () => {
    const weights = roundedFirst(articleScores, articleWidth);
    expect(rounded(weights)).toBe('0.0287 0.0192 0.0142 0.5207 0.3158 0.0779 0.0235');
    expect(printedWeights.reduce((a, b) => a + b, 0)).toBeCloseTo(0.999, 9);
    for (const [i, printed] of printedWeights.entries())
      expect(Math.abs(printed - (weights[i] ?? 0))).toBeLessThan(0.001);
  });

  test('not scaled: 0.9933 against 0.0067, 148 times', async () => {
    const weights = await kernelWeights(articleScores, 1);
    expect(rounded(weights.slice(3, 5))).toBe('0.9933 0.0067');
    expect((weights[3] ?? 0) / (weights[4] ?? 1)).toBeCloseTo(148.413, 2);
  });

  test('sentences: 148.41, 1.5557, and why 1.65 is printed', async () => {
    const [scaled, unscaled] = [
      await kernelWeights(articleScores, scale),
      await kernelWeights(articleScores, 1),
    ];
    const facts = gapFacts(articleScores, articleWidth, scaled, unscaled).join('\n');
    for (const part of [
      '148.41',
      '11.3137',
      '0.4419',
      '1.5557',
      '0.2499 scaled',
      '0.0066 unscaled',
      '1.65',
    ])
      expect(facts).toContain(part);
    expect(gapFacts([1, 2, 3, 4, 5, 6, 7], 128, scaled, unscaled).join()).not.toContain('article');
  });

  test('three equal needs get a third each', async () => {
    const weights = await kernelWeights(examples.three.scores, scale);
    expect(rounded(weights.slice(3, 6))).toBe('0.3333 0.3333 0.3333');
  });

  test('adding 1,000 to every score changes no bit', async () => {
    const shifted = articleScores.map((score) => score + 1000);
    expect(await kernelWeights(shifted, 1)).toEqual(await kernelWeights(articleScores, 1));
  });
});

describe('saturation', () => {
  test('softmax(2, 1, 0) and times eight, by the kernels', async () => {
    expect(rounded(await kernelWeights(threeScores, 1))).toBe('0.6652 0.2447 0.0900');
    expect(
      rounded(
        await kernelWeights(
          threeScores.map((score) => 8 * score),
          1,
        ),
      ),
    ).toBe('0.9997 0.0003 0.0000');
  });

  test.each(printedDeviations)(
    'd = $dQk: scores deviate by the root of d, as printed to 3 %',
    ({ dQk, printed }) => {
      const deviation = scoreDeviation(dQk, 4000, dQk);
      expect(Math.abs(deviation / Math.sqrt(dQk) - 1)).toBeLessThan(0.05);
      expect(Math.abs(Number(printed) / Math.sqrt(dQk) - 1)).toBeLessThan(0.03);
    },
  );

  test('normal numbers have mean 0 and variance 1, and are the same each time', () => {
    const values = normals(20_000, 3);
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length;
    expect(Math.abs(mean)).toBeLessThan(0.03);
    expect(Math.abs(variance - 1)).toBeLessThan(0.05);
    expect(normals(20_000, 3)).toEqual(values);
    expect(normals(8, 4)).not.toEqual(values.slice(0, 8));
  });
});

describe('online softmax', () => {
  const scores = articleScores.map((score) => score / Math.sqrt(articleWidth));
  const twoPass = matmul([softmax(scores)], onlineValues)[0] ?? [];

  test.each([1, 2, 3, 4, 5, 6, 7])('tiles of %i give the two-pass result', (tile) => {
    const steps = onlineSteps(scores, onlineValues, tile);
    expect(steps).toHaveLength(Math.ceil(7 / tile));
    expect(largestDifference([steps.at(-1)?.out ?? []], [twoPass])).toBeLessThan(1e-14);
  });

  test('each step is what the kernels give for the keys so far', async () => {
    for (const { end, out } of onlineSteps(scores, onlineValues, 2)) {
      for (const kernel of ['reference', 'tiled', 'decode'] as const) {
        const result = await lab.attend({
          nQHeads: 1,
          nKvHeads: 1,
          dQk: 1,
          dV: 2,
          q: Float32Array.of(1),
          k: Float32Array.from(scores.slice(0, end)),
          v: Float32Array.from(onlineValues.slice(0, end).flat()),
          kernel,
        });
        expect(largestDifference([[...result.out]], [out]), kernel).toBeLessThan(1e-6);
      }
    }
  });

  test('m, l and the factor of a larger maximum', () => {
    const [first, second] = onlineSteps([0, 1, 3], [[1], [2], [3]], 2);
    expect(first).toMatchObject({ m: 1, factor: 0, start: 0, end: 2 });
    expect(first?.l).toBeCloseTo(1 + Math.exp(-1), 12);
    expect(second).toMatchObject({ m: 3, start: 2, end: 3 });
    expect(second?.factor).toBeCloseTo(Math.exp(-2), 12);
    expect(second?.l).toBeCloseTo((1 + Math.exp(-1)) * Math.exp(-2) + 1, 12);
  });
});

describe('texts', () => {
  test('numbers as people read them', () => {
    expect([
      shown(2),
      shown(4.24264),
      shown(-0.5),
      shown(Number.NEGATIVE_INFINITY),
      shown(1.3e-14),
    ]).toEqual(['2', '4.2426', '−0.5000', '−∞', '1.3e−14']);
    expect([brief(2.5), brief(2), brief(0.44194)]).toEqual(['2.5', '2', '0.4419']);
  });

  test('large scores are explained with the maximum taken off', () => {
    expect(softmaxText([1000, 1000], 0)).toBe('exp(1000 − 1000) / (1 + 1) = 1 / 2 = 0.5000');
  });

  test('what is typed: numbers, with a comma or a real minus too; nothing else', () => {
    expect(['1.5', '1,5', '−2', ' 3 '].map(readNumber)).toEqual([1.5, 1.5, -2, 3]);
    expect(['', '-', 'x', '1e9', 'NaN', 'Infinity'].map(readNumber)).toEqual(
      Array(6).fill(undefined),
    );
  });
});

describe('HeadLab', () => {
  test('refuses what attend() refuses, and goes on', async () => {
    const row = {
      nQHeads: 1,
      nKvHeads: 1,
      dQk: 2,
      q: Float32Array.of(1),
      k: Float32Array.of(1, 2),
    };
    await expect(lab.weights(row)).rejects.toMatchObject({ code: 'BadOption' });
    expect(await kernelWeights([1, 1], 1)).toEqual([0.5, 0.5]);
  });

  test('grouped heads: weights of query head h are those of KV head h / group', async () => {
    const q = Float32Array.of(1, 1, 1, 1);
    const k = Float32Array.of(0, 0, Math.log(3), -Math.log(3));
    const weights = rowsOf(
      await lab.weights({ nQHeads: 4, nKvHeads: 2, dQk: 1, q, k, scale: 1 }),
      2,
    );
    expect(weights.map((row) => rounded(row, 2))).toEqual([
      '0.25 0.75',
      '0.25 0.75',
      '0.75 0.25',
      '0.75 0.25',
    ]);
  });

  test('a wrong option is refused by name; a disposed lab says so', async () => {
    await expect(HeadLab.start({ module: 'fast' as never })).rejects.toMatchObject({
      code: 'BadOption',
      details: { option: 'module' },
    });
    const other = await HeadLab.start();
    await other.dispose();
    await expect(
      other.weights({
        nQHeads: 1,
        nKvHeads: 1,
        dQk: 1,
        q: Float32Array.of(1),
        k: Float32Array.of(1),
      }),
    ).rejects.toThrow(/disposed/);
  });
});
