// Statements of the articles about heads that the lab can show and that are held nowhere else: slices and their packing, what a
// head gives back, what W_O does, patterns as blends, pairs under a mask. Every number is the kernels' or the calculator's.
import { describe, expect, test } from 'vitest';
import { keyNotes } from '../../../web/pages/lab/bytes/notes.js';
import { branchSentences, tensorRows } from '../../../web/pages/lab/bytes/tensors.js';
import { rowsOf } from '../../../web/pages/lab/hand/arithmetic.js';
import { normals, scoreDeviation } from '../../../web/pages/lab/hand/random.js';
import { gapFacts, sevenTokens } from '../../../web/pages/lab/hand/seven_rows.js';
import {
  concurrency,
  layoutCost,
  layoutPreset,
  type ModelShape,
} from '../../../web/runtime/src/lab/public.js';
import { lab } from './started_lab.js';

function shapeOf(preset: string, row: number): ModelShape {
  const found = layoutPreset(preset).rows[row];
  if (!found) throw new Error(`${preset} has no row ${row}`);
  return found.shape;
}
const mha = shapeOf('heads', 1);

/** Elements [first, first + width) of rows of `stride`. */
function slice(values: Float32Array, stride: number, first: number, width: number) {
  return values.filter((_, i) => i % stride >= first && i % stride < first + width);
}

describe('heads are slices', () => {
  test('[2, 5, 64] in, [2, 5, 64] out; one packed call has the bits of a loop over its eight heads', async () => {
    const [n, nHeads, d] = [5, 8, 8];
    const width = nHeads * d;
    let nOut = 0;
    for (const sequence of [1, 2]) {
      const [q, k, v] = [0, 1, 2].map((i) => normals(n * width, 10 * sequence + i)) as [
        Float32Array,
        Float32Array,
        Float32Array,
      ];
      const common = { dQk: d, dV: d };
      const { out } = await lab.attend({ ...common, nQHeads: nHeads, nKvHeads: nHeads, q, k, v });
      nOut += out.length;
      for (let head = 0; head < nHeads; head++) {
        const own = (values: Float32Array) => slice(values, width, head * d, d);
        const rows = { nQHeads: 1, nKvHeads: 1, q: own(q), k: own(k), v: own(v) };
        const alone = await lab.attend({ ...common, ...rows });
        expect([...alone.out]).toEqual([...own(out)]);
      }
    }
    expect(nOut).toBe(2 * 5 * 64);
  });

  test('64 heads of 128 or 512 of 16: the same 8,192 places, weights and cache, and a warning below 64', () => {
    const thin = { ...mha, nQHeads: 512, nKvHeads: 512, dQk: 8192 / 512, dV: 8192 / 512 };
    expect(thin.dQk).toBe(16);
    const [wide, narrow] = [layoutCost(mha), layoutCost(thin)];
    expect(narrow.parameters).toBe(wide.parameters);
    expect(narrow.kvBytesPerTokenPerLayer).toBe(wide.kvBytesPerTokenPerLayer);
    expect(branchSentences(mha).join(' ')).toContain('64 × 128 = 8,192 places');
    expect(branchSentences(thin).join(' ')).toContain('512 × 16 = 8,192 places');
    expect(keyNotes(thin, narrow).join(' ')).toContain('Heads below 64 are thin');
    expect(keyNotes(mha, wide).join(' ')).not.toContain('thin');
  });

  test('heads exist in five of the ten steps of a block; the reshape is the same memory', () => {
    const sentences = branchSentences(shapeOf('llama70b', 1)).join(' ');
    expect(sentences).toContain(
      'five of a block’s ten steps: reshape, RoPE, cache write, attention, W_O',
    );
    const rows = tensorRows(shapeOf('llama70b', 1), 7);
    const of = (name: string) => rows.find((row) => row.name === name);
    for (const name of ['q', 'k', 'v'])
      expect(of(`${name} reshaped`)?.bytes).toBe(of(`${name} flat`)?.bytes);
    expect(of('concat')?.bytes).toBe(of('head outputs')?.bytes);
    // Neither the stream nor the normalised copy nor what W_O gives has an axis of heads.
    for (const name of ['x', 'x_norm', 'attn_out', 'x′'])
      expect(of(name)?.shape).toEqual([7, 8192]);
  });

  test('the model of the second article: 8,192 wide, 64 query and 8 KV heads of 128, 80 layers', () => {
    expect(shapeOf('llama70b', 1)).toMatchObject({
      ...{ dModel: 8192, nQHeads: 64, nKvHeads: 8, dQk: 128, dV: 128, nLayers: 80 },
    });
  });
});

describe('what a head gives back', () => {
  const layout = { nQHeads: 64, nKvHeads: 8, dQk: 128, dV: 128 };
  const n = 7;
  const rows = () => ({
    ...layout,
    q: normals(n * 64 * 128, 1),
    k: normals(n * 8 * 128, 2),
    v: normals(n * 8 * 128, 3),
  });

  test('128 numbers a token; its weights only where they are asked for', async () => {
    const plain = await lab.attend(rows());
    expect(plain.out).toHaveLength(n * 64 * 128);
    expect(plain.captured).toBeUndefined();
    const looked = await lab.attend({ ...rows(), capture: 'weights' });
    expect(looked.captured?.shape).toEqual([64, 7, 7]);
    expect([...looked.out]).toEqual([...plain.out]);
  });

  test.each([
    [64, 32_768],
    [8, 4096],
    [1, 512],
  ])(
    '%i KV heads: the cache takes %i bytes a token for keys and values, none for queries',
    async (nKvHeads, bytes) => {
      const some = { ...rows(), nKvHeads };
      const [k, v] = [normals(n * nKvHeads * 128, 2), normals(n * nKvHeads * 128, 3)];
      const kvCache = { k: 'f16', v: 'f16' } as const;
      const { kvCacheBytes } = await lab.attend({ ...some, k, v, kvCache });
      expect(kvCacheBytes).toBe(n * bytes);
    },
  );

  test('the order of places in the values is the order in the outputs, and nothing else', async () => {
    const all = rows();
    const permuted = (values: Float32Array) =>
      values.map((_, i) => values[i - (i % 128) + ((i * 5 + 3) % 128)] ?? 0);
    const [a, b] = [await lab.attend(all), await lab.attend({ ...all, v: permuted(all.v) })];
    expect([...b.out]).toEqual([...permuted(a.out)]);
  });
});

describe('patterns as blends', () => {
  const n = 5;
  const values = normals(n * 3, 4);
  const place = (pick: (row: number) => number) =>
    Float32Array.from({ length: n * n }, (_, i) => (pick(Math.floor(i / n)) === i % n ? 1 : 0));
  /** A score of 200 where the query of row i meets key pick(i), 0 elsewhere: e^-200 is 0 in f32. */
  const blended = async (pick: ((row: number) => number) | undefined) => {
    const rows = {
      ...{ nQHeads: 1, nKvHeads: 1, dQk: n, scale: 200 },
      q: pick ? place(pick) : new Float32Array(n * n),
      k: place((row) => row),
    };
    const { out } = await lab.attend({ ...rows, dV: 3, v: values });
    return { out: rowsOf(out, 3), weights: rowsOf(await lab.weights(rows), n) };
  };
  const value = (row: number) => [...values.subarray(row * 3, row * 3 + 3)];

  test.each<[string, (row: number) => number]>([
    ['previous token: V[i - 1], and V[0] first', (row) => Math.max(0, row - 1)],
    ['sink: V[0]', () => 0],
    ['induction over A B C A B: V of rows 0, 1, 2, 1, 2', (row) => [0, 1, 2, 1, 2][row] ?? 0],
    ['itself: V[i]', (row) => row],
  ])('%s, bit for bit', async (_, pick) => {
    const { out, weights } = await blended(pick);
    for (let row = 0; row < n; row++) {
      expect(out[row]).toEqual(value(pick(row)));
      expect(weights[row]?.indexOf(1)).toBe(pick(row));
    }
  });

  test('uniform: the mean of V[0..i], weights 1, .5, .33, .25, .2', async () => {
    const { out, weights } = await blended(undefined);
    expect(weights.map((row) => (row[0] ?? 0).toFixed(2))).toEqual(
      '1.00 0.50 0.33 0.25 0.20'.split(' '),
    );
    for (let row = 0; row < n; row++) {
      for (let i = 0; i < 3; i++) {
        let mean = 0;
        for (let key = 0; key <= row; key++) mean += (value(key)[i] ?? 0) / (row + 1);
        expect(Math.abs((out[row]?.[i] ?? 0) - mean)).toBeLessThan(1e-6);
      }
    }
  });
});

describe('masks', () => {
  const equal = (n: number) => ({
    ...{ nQHeads: 1, nKvHeads: 1, dQk: 1 },
    ...{ q: new Float32Array(n), k: new Float32Array(n) },
  });

  test('four tokens: zeros above the diagonal, every row sums to 1', async () => {
    const weights = rowsOf(await lab.weights(equal(4)), 4);
    const third = Math.fround(1 / 3);
    expect(weights).toEqual([
      [1, 0, 0, 0],
      [0.5, 0.5, 0, 0],
      [third, third, third, 0],
      [0.25, 0.25, 0.25, 0.25],
    ]);
  });

  test('pairs: twice the tokens are four times without a window and twice with one', async () => {
    const pairs = async (n: number, window: number) =>
      (await lab.weights({ ...equal(n), window })).filter((weight) => weight > 0).length;
    expect([await pairs(64, 0), await pairs(128, 0)]).toEqual([(64 * 65) / 2, (128 * 129) / 2]);
    // n w, less the triangle of the first rows.
    expect([await pairs(64, 8), await pairs(128, 8)]).toEqual([64 * 8 - 28, 128 * 8 - 28]);
    const notes = (nCtx: number) =>
      keyNotes(shapeOf('llama8b', 1), layoutCost(shapeOf('llama8b', 1), { nCtx })).join(' ');
    expect(notes(8192)).toContain('67.11 million numbers');
    expect(notes(16_384)).toContain('268.4 million numbers');
  });
});

describe('numbers in sentences', () => {
  test('“What is a quadratic equation?”: seven tokens, “?” at place 6', () => {
    expect(sevenTokens).toHaveLength(7);
    expect(sevenTokens.indexOf('?')).toBe(6);
  });

  test('raw scores of width 128 deviate by 11.3', () => {
    expect(Math.sqrt(128).toFixed(4)).toBe('11.3137');
    expect(Math.abs(scoreDeviation(128, 20_000, 3) - 11.3137)).toBeLessThan(0.02 * 11.3137);
  });

  test('a weight of 0.99 leaves p (1 - p) = 0.0099 to learn from, one of 0.5 leaves 0.25', async () => {
    const facts = async (odds: number) => {
      const scores = [Math.log(odds), 0];
      const row = { nQHeads: 1, nKvHeads: 1, dQk: 1, q: Float32Array.of(1) };
      const weights = [...(await lab.weights({ ...row, k: Float32Array.from(scores) }))];
      return gapFacts(scores, 1, weights, weights).join(' ');
    };
    expect(await facts(99)).toContain('p (1 − p) of the largest weight: 0.0099 scaled');
    expect(await facts(1)).toContain('p (1 − p) of the largest weight: 0.2500 scaled');
  });

  test('sixteen conversations take sixteen caches: 64, 16 and 2 GiB of the 8B model', () => {
    const gib = 2 ** 30;
    for (const [row, total] of [64, 16, 2].entries()) {
      const { kvBytesPerToken } = layoutCost(shapeOf('llama8b', row));
      const nFit = (memoryBytes: number) =>
        concurrency({
          ...{ memoryBytes, weightsBytes: 0, workspaceBytes: 0 },
          ...{ kvBytesPerToken, nTokens: 8192 },
        }).n;
      expect([nFit(total * gib), nFit(total * gib - 1)]).toEqual([16, 15]);
    }
  });

  test('a quarter of the routing width and a sixth of the value width are what 7.8 % and 8.1 % of the file are', () => {
    const [full, keys, values] = [0, 1, 6].map((row) => shapeOf('seedA1', row));
    const cut = (row: ModelShape | undefined, of: 'dQk' | 'dV') =>
      100 * (1 - (row?.[of] ?? 0) / (full?.[of] ?? 1));
    expect([cut(keys, 'dQk'), cut(keys, 'dV')]).toEqual([25, 0]);
    expect([cut(values, 'dQk'), cut(values, 'dV')]).toEqual([0, 15.625]);
    expect(layoutPreset('seedA1').note).toContain('It ships 48 / 64');
    expect(layoutPreset('seedA2').note).toMatch(
      /under 1 %, .*3\.5 times.*2\.2 % for 45 % more file/,
    );
  });
});
