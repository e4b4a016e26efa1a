// The position schemes that the lab shows, by the module's own src/position: the articles' numbers and those of the schemes'
// authors, and what a caller cannot ask for.
import { describe, expect, test } from 'vitest';
import {
  alibiHeads,
  baseOf,
  changeByMoving,
  changeByShuffling,
  frequencies,
  placed,
  scoresByDistance,
  sinusoidRows,
  stretches,
  turnedPair,
  yarnBounds,
} from '../../../web/pages/lab/positions/compute.js';
import { ropeFacts, turnedError } from '../../../web/pages/lab/positions/facts.js';
import {
  readSetup,
  SCHEMES,
  type Scheme,
  schemeTexts,
} from '../../../web/pages/lab/positions/schemes.js';
import { articlePlaces, articleTheta } from '../../../web/pages/lab/positions/turn_view.js';
import { UrlState } from '../../../web/pages/lab/url_state.js';
import { headlightLab } from '../built_package.js';
import { lab } from './started_lab.js';

const setupOf = (search: string) => readSetup(new UrlState(search, () => {}));

describe('sinusoids (C27)', () => {
  test('position 0 adds 0, 1, 0, 1; an offset is one rotation of every pair, wherever it begins', async () => {
    const rows = await sinusoidRows(lab, [0, 1, 8, 100, 107], 64);
    expect(rows[0]).toEqual(Array.from({ length: 64 }, (_, i) => i % 2));
    expect(rows[1]?.[0]).toBeCloseTo(Math.sin(1), 6);
    expect(rows[1]?.[63]).toBeCloseTo(Math.cos(10_000 ** (-62 / 64)), 6);
    for (const [from, to] of [
      [1, 2],
      [3, 4],
    ] as const)
      expect(turnedError(rows[from] ?? [], rows[to] ?? [], 7)).toBeLessThan(3e-7);
    expect(turnedError(rows[1] ?? [], rows[2] ?? [], 8)).toBeGreaterThan(0.1);
  });
});

describe('RoPE (C29 to C31)', () => {
  test('a pair at (5, 3), (10, 8), (2, 0) with θ = 0.5: 0.540302 each time', async () => {
    const rows = await turnedPair(lab, articlePlaces, articleTheta);
    expect(rows.map(({ dot }) => dot.toFixed(4))).toEqual(['0.5403', '0.5403', '0.5403']);
    for (const { dot } of rows) expect(Math.abs(dot - 0.540302306)).toBeLessThan(1e-7);
    expect(rows[0]?.q[0]).toBeCloseTo(Math.cos(2.5), 6);
    const other = await turnedPair(lab, [[5, 4]], articleTheta);
    expect(other[0]?.dot).toBeCloseTo(Math.cos(0.5), 6);
  });

  test('48 elements of base 100,000: the angles that the first article’s family uses', async () => {
    const { frequencies: theta } = await lab.rope({ nRot: 48, freqBase: 1e5 });
    expect(theta).toHaveLength(24);
    expect(theta[0]).toBe(1);
    expect(theta[1]).toBeCloseTo(0.61896582, 8);
    expect(theta[11]).toBeCloseTo(5.10897e-3, 8);
    expect(theta[23]).toBeCloseTo(1.6156e-5, 9);
  });

  test('neighbours are paired, or halves; elements past nRot pass through', async () => {
    const rows = Float32Array.of(1, 0, 0, 0, 7);
    const positions = [1];
    const near = await lab.rope({ nRot: 4, rows, positions });
    expect([...near.rows].map((x) => x.toFixed(4))).toEqual([
      ...['0.5403', '0.8415', '0.0000', '0.0000', '7.0000'],
    ]);
    const halves = await lab.rope({ nRot: 4, style: 'half-split', rows, positions });
    expect([...halves.rows].map((x) => x.toFixed(4))).toEqual([
      ...['0.5403', '0.0000', '0.8415', '0.0000', '7.0000'],
    ]);
    // The caller's rows are not touched.
    expect([...rows]).toEqual([1, 0, 0, 0, 7]);
  });

  test.each(['', '?posp=half-split&posr=96', '?poss=yarn&posf=16', '?poss=ntk', '?poss=linear'])(
    'random vectors, %s: only the distance counts',
    async (search) => {
      const setup = { ...setupOf(search), vectors: 'random', reach: 40 } as const;
      expect(await changeByMoving(lab, setup)).toBeLessThan(2e-5);
      const scores = await scoresByDistance(lab, setup, 0);
      expect(new Set(scores.map((score) => score.toFixed(4))).size).toBeGreaterThan(35);
    },
  );
});

describe('longer contexts (C32 to C34)', () => {
  test('interpolation by s divides every angle by s: position s·p turns as p did', async () => {
    const all = await frequencies(lab, setupOf('?posf=4'));
    for (const x of stretches(all, 'linear')) expect(x).toBeCloseTo(4, 12);
    const rows = Float32Array.of(1, 2, 3, 4);
    const plain = await lab.rope({ nRot: 4, rows, positions: [3] });
    const far = await lab.rope({ nRot: 4, scaling: 'linear', factor: 4, rows, positions: [12] });
    expect([...far.rows]).toEqual([...plain.rows]);
  });

  test('NTK by 8 makes base 10,000 into 82,684.62 at 128 elements', async () => {
    const setup = setupOf('?poss=ntk');
    const all = await frequencies(lab, setup);
    expect(baseOf(all.byScaling.ntk).toFixed(2)).toBe('82684.62');
    expect(stretches(all, 'ntk')[0]).toBe(1);
    expect(stretches(all, 'ntk').at(-1)).toBeCloseTo(8, 9);
    expect(ropeFacts(setup, all)[0]).toContain('= 82,684.62.');
  });

  test('dynamic NTK by 2 at 8,192 of 4,096: base 30,527.74; at 4,096 nothing changes', async () => {
    const setup = setupOf('?poss=dynamic&posf=2&posc=8192');
    const all = await frequencies(lab, setup);
    expect(baseOf(all.byScaling.dynamic).toFixed(2)).toBe('30527.74');
    expect(ropeFacts(setup, all)[0]).toContain('base 30,527.74; up to 4,096 nothing changes');
    const within = await frequencies(lab, { ...setup, context: 4096 });
    expect([...within.byScaling.dynamic]).toEqual([...within.byScaling.none]);
  });

  test('YaRN by 16 at 128 elements of 4,096: kept up to pair 20, ÷ 16 from 46 on, temperature 1.27726', async () => {
    const setup = setupOf('?poss=yarn&posf=16');
    const all = await frequencies(lab, setup);
    expect(yarnBounds(all, 16)).toEqual({ low: 20, high: 46 });
    expect(all.magnitude.toFixed(5)).toBe('1.27726');
    const between = stretches(all, 'yarn').slice(21, 46);
    for (const x of between) expect(x > 1 && x < 16).toBe(true);
    expect(ropeFacts(setup, all)[0]).toMatch(/pairs 0 to 20 keep theirs, pairs from 46 on/);
    // Query and key are both larger by it: at distance 0 equal vectors score 1 without.
    const [score = 0] = await scoresByDistance(lab, { ...setup, reach: 8 }, 0);
    expect(score).toBeCloseTo(1.27726 ** 2, 4);
  });
});

describe('ALiBi (C35)', () => {
  test.each([
    [8, [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]],
    [16, [Math.SQRT1_2, 0.5]],
    [
      12,
      [...[1, 2, 3, 4, 5, 6, 7, 8].map((h) => 2 ** -h), Math.SQRT1_2, 0.353553, 0.176777, 0.088388],
    ],
    [1, [2 ** -8]],
  ])('%i heads: the paper’s slopes; nothing is taken on the diagonal', async (heads, slopes) => {
    const found = await alibiHeads(lab, heads, 20);
    expect(found).toHaveLength(heads);
    for (const [h, slope] of slopes.entries()) {
      expect(found[h]?.slope).toBeCloseTo(slope, 6);
      expect(found[h]?.bias[0]).toBeCloseTo(0, 12);
      expect(found[h]?.bias[20]).toBeCloseTo(-20 * slope, 4);
    }
  });
});

describe('the schemes’ table (C26, C28, C36)', () => {
  const setup = setupOf('');

  test('without positions shuffled words give the same outputs, shuffled; every scheme changes that', async () => {
    for (const scheme of SCHEMES) {
      const change = await changeByShuffling(lab, { ...setup, scheme });
      if (scheme === 'none') expect(change).toBeLessThan(1e-6);
      else expect(change, scheme).toBeGreaterThan(0.01);
    }
  });

  test('what is relative does not feel a move, what is absolute does', async () => {
    for (const scheme of SCHEMES) {
      const change = await changeByMoving(lab, { ...setup, scheme, reach: 64 });
      const { kind } = schemeTexts[scheme];
      if (kind.startsWith('absolute')) expect(change, scheme).toBeGreaterThan(0.05);
      else expect(change, scheme).toBeLessThan(1e-5);
    }
  });

  test('a learned table ends: the last row is there, the next is refused', async () => {
    const learned = { ...setup, scheme: 'learned' as Scheme, trained: 50 };
    const row = new Float32Array(setup.dQk);
    expect((await placed(lab, learned, row, [49])).some((x) => x !== 0)).toBe(true);
    await expect(placed(lab, learned, row, [50])).rejects.toThrow(/Position 50 has no row/);
    expect(await changeByMoving(lab, { ...learned, reach: 8 })).toBeUndefined();
  });
});

describe('what cannot be is refused by name', () => {
  const row = (width: number) => new Float32Array(width);
  test.each<[string, Parameters<typeof lab.rope>[0], string]>([
    ['an odd width', { nRot: 7 }, 'n_rot'],
    ['no width', { nRot: 0 }, 'nRot'],
    ['a base below 0', { nRot: 8, freqBase: -1 }, 'freqBase'],
    ['YaRN of no length', { nRot: 8, scaling: 'yarn', factor: 4 }, 'nCtxOriginal'],
    ['rows nowhere', { nRot: 8, rows: row(8) }, 'positions'],
    ['a part of a row', { nRot: 8, rows: row(9), positions: [0, 1] }, 'rows'],
    ['rows too narrow', { nRot: 8, rows: row(4), positions: [0] }, 'nRot'],
    ['behind the context', { nRot: 8, rows: row(8), positions: [9], nCtx: 4 }, 'positions'],
    ['between positions', { nRot: 8, rows: row(8), positions: [1.5] }, 'positions'],
    ['a huge table', { nRot: 1024, rows: row(1024), positions: [2 ** 20 - 1] }, 'nCtx * nRot / 2'],
  ])('%s', async (_, options, option) => {
    await expect(lab.rope(options)).rejects.toMatchObject({
      code: 'BadOption',
      details: { option },
    });
  });

  test('slopes of no heads; a module with threads', async () => {
    await expect(lab.alibiSlopes(0)).rejects.toMatchObject({ details: { option: 'nHeads' } });
    const many = await headlightLab.HeadLab.start({ module: 'simd', threads: 2 });
    await expect(many.alibiSlopes(8)).rejects.toMatchObject({ code: 'Unsupported' });
    await many.dispose();
  });
});
