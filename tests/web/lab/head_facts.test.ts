// What the articles say that heads are, held against the package's kernels through HeadLab: weights are shares, a head is a
// slice, slices never interact, widths of values do not touch the weights.
import { describe, expect, test } from 'vitest';
import { flat, matmul, rowsOf, softmax } from '../../../web/pages/lab/hand/arithmetic.js';
import { normals } from '../../../web/pages/lab/hand/random.js';
import { layoutCost, PLAIN } from '../../../web/runtime/src/lab/public.js';
import { lab } from './started_lab.js';

interface Layout {
  nQHeads: number;
  nKvHeads: number;
  dQk: number;
  dV: number;
}
const nKv = 9;

function rows(layout: Layout, seed: number, n = nKv) {
  const { nQHeads, nKvHeads, dQk, dV } = layout;
  return {
    ...layout,
    q: normals(n * nQHeads * dQk, seed),
    k: normals(n * nKvHeads * dQk, seed + 1),
    v: normals(n * nKvHeads * dV, seed + 2),
  };
}
const layouts: Layout[] = [
  { nQHeads: 1, nKvHeads: 1, dQk: 8, dV: 8 },
  { nQHeads: 4, nKvHeads: 2, dQk: 48, dV: 64 },
  { nQHeads: 16, nKvHeads: 2, dQk: 16, dV: 5 },
];

/** v without the fields that weights() makes by itself. */
function withoutValues({ v: _v, dV: _dV, ...rest }: ReturnType<typeof rows>) {
  return rest;
}

describe.each(layouts)('$nQHeads query heads on $nKvHeads, d_qk $dQk, d_v $dV', (layout) => {
  test('weights are not negative and sum to 1; later tokens get exactly 0', async () => {
    const weights = rowsOf(await lab.weights(withoutValues(rows(layout, 1))), nKv);
    expect(weights).toHaveLength(nKv * layout.nQHeads);
    for (const [i, row] of weights.entries()) {
      const token = Math.floor(i / layout.nQHeads);
      expect(Math.min(...row)).toBeGreaterThanOrEqual(0);
      expect(Math.abs(row.reduce((a, b) => a + b, 0) - 1)).toBeLessThan(1e-6);
      expect(row.slice(token + 1).every((weight) => weight === 0)).toBe(true);
    }
  });

  test('a blend lies between the smallest and the largest value of each place', async () => {
    const { v, ...rest } = rows(layout, 2);
    const { out } = await lab.attend({ ...rest, v });
    const { nQHeads, nKvHeads, dV } = layout;
    for (const [i, value] of out.entries()) {
      const head = Math.floor(i / dV) % nQHeads;
      const kvHead = Math.floor(head / (nQHeads / nKvHeads));
      const column = Array.from(
        { length: nKv },
        (_, j) => v[(j * nKvHeads + kvHead) * dV + (i % dV)] ?? 0,
      );
      expect(value).toBeGreaterThanOrEqual(Math.min(...column) - 1e-5);
      expect(value).toBeLessThanOrEqual(Math.max(...column) + 1e-5);
    }
  });

  test('appended tokens change no earlier output, bit for bit', async () => {
    const all = rows(layout, 3);
    const { nQHeads, nKvHeads, dQk, dV } = layout;
    const n = 5;
    const part = {
      ...layout,
      q: all.q.slice(0, n * nQHeads * dQk),
      k: all.k.slice(0, n * nKvHeads * dQk),
      v: all.v.slice(0, n * nKvHeads * dV),
    };
    const [long, short] = [await lab.attend(all), await lab.attend(part)];
    expect([...long.out.slice(0, n * nQHeads * dV)]).toEqual([...short.out]);
  });

  test('one query at a time gives what all at once give', async () => {
    const all = rows(layout, 4);
    const together = await lab.attend(all);
    const width = layout.nQHeads * layout.dV;
    const last = await lab.attend({ ...all, q: all.q.slice(-layout.nQHeads * layout.dQk) });
    expect(last.kernel).toBe('decode');
    for (const [i, value] of last.out.entries())
      expect(Math.abs(value - (together.out[together.out.length - width + i] ?? 0))).toBeLessThan(
        1e-5,
      );
  });
});

test.each(['f32', 'f16', 'int8'] as const)(
  '%s cache: the calculator counts what the engine allocates',
  async (type) => {
    for (const layout of [...layouts, { nQHeads: 6, nKvHeads: 3, dQk: 24, dV: 33 }]) {
      const nTokens = 12;
      const { kvCacheBytes } = await lab.attend({
        ...rows(layout, 5, nTokens),
        kvCache: { k: type, v: type },
      });
      const shape = {
        ...PLAIN,
        nLayers: 1,
        dModel: 64,
        vocabSize: 0,
        tiedHead: true,
        dFf: 1,
        ...layout,
      };
      const cost = layoutCost(shape, { cacheK: type, cacheV: type });
      expect(cost.kvAllocatedBytesPerToken * nTokens).toBe(kvCacheBytes);
    }
  },
);

test('a wide head has one row of weights, whatever its width', async () => {
  const wide = { nQHeads: 1, nKvHeads: 1, dQk: 8192 };
  const weights = await lab.weights({ ...wide, q: normals(8192, 1), k: normals(3 * 8192, 2) });
  expect(weights).toHaveLength(3);
});

test("other slices do not reach a head: zeroing them leaves this head's output as it is, bit for bit", async () => {
  const layout = { nQHeads: 4, nKvHeads: 4, dQk: 16, dV: 8 };
  const all = rows(layout, 7);
  const only = (values: Float32Array, width: number) =>
    values.map((value, i) => (Math.floor(i / width) % 4 === 2 ? value : 0));
  const alone = { ...layout, q: only(all.q, 16), k: only(all.k, 16), v: only(all.v, 8) };
  const head = ({ out }: { out: Float32Array }) =>
    [...out].filter((_, i) => Math.floor(i / 8) % 4 === 2);
  expect(head(await lab.attend(alone))).toEqual(head(await lab.attend(all)));
});

test('the width of the values leaves the weights as they are: the same blend in the first places', async () => {
  const narrow = rows({ nQHeads: 2, nKvHeads: 1, dQk: 48, dV: 3 }, 8);
  const wide = new Float32Array(nKv * 64);
  for (let row = 0; row < nKv; row++) wide.set(narrow.v.slice(row * 3, row * 3 + 3), row * 64);
  const [a, b] = [await lab.attend(narrow), await lab.attend({ ...narrow, dV: 64, v: wide })];
  for (let row = 0; row < nKv * 2; row++)
    expect([...b.out.slice(row * 64, row * 64 + 3)]).toEqual([
      ...a.out.slice(row * 3, row * 3 + 3),
    ]);
});

test('the order of places inside a head means nothing: the same permutation of q and k', async () => {
  const layout = { nQHeads: 1, nKvHeads: 1, dQk: 16, dV: 4 };
  const all = rows(layout, 9);
  const permuted = (values: Float32Array) =>
    values.map((_, i) => values[i - (i % 16) + ((i * 5 + 3) % 16)] ?? 0);
  const [a, b] = [
    await lab.attend(all),
    await lab.attend({ ...all, q: permuted(all.q), k: permuted(all.k) }),
  ];
  for (const [i, value] of a.out.entries())
    expect(Math.abs(value - (b.out[i] ?? 0))).toBeLessThan(2e-6);
});

test('without positions and mask, shuffled tokens give shuffled outputs', async () => {
  const layout = { nQHeads: 2, nKvHeads: 2, dQk: 8, dV: 8 };
  const all = rows(layout, 10, 3);
  const order = [2, 0, 1];
  const shuffled = (values: Float32Array) =>
    Float32Array.from(order.flatMap((token) => [...values.slice(token * 16, token * 16 + 16)]));
  const [a, b] = [
    await lab.attend({ ...all, causal: false }),
    await lab.attend({
      ...layout,
      q: shuffled(all.q),
      k: shuffled(all.k),
      v: shuffled(all.v),
      causal: false,
    }),
  ];
  for (const [i, value] of shuffled(a.out).entries())
    expect(Math.abs(value - (b.out[i] ?? 0))).toBeLessThan(2e-6);
});

test('cutting KV heads by their mean changes nothing where the heads of a group are equal', async () => {
  const layout = { nQHeads: 4, nKvHeads: 4, dQk: 8, dV: 6 };
  const one = rows({ ...layout, nKvHeads: 1 }, 11);
  const repeated = (values: Float32Array, width: number) =>
    Float32Array.from(
      Array.from({ length: nKv }, (_, row) => [
        ...values.slice(row * width, (row + 1) * width),
      ]).flatMap((row) => [...row, ...row, ...row, ...row]),
    );
  const mha = { ...one, nKvHeads: 4, k: repeated(one.k, 8), v: repeated(one.v, 6) };
  const [a, b] = [await lab.attend(one), await lab.attend(mha)];
  for (const [i, value] of a.out.entries())
    expect(Math.abs(value - (b.out[i] ?? 0))).toBeLessThan(2e-6);
});

test('the kernels agree with the two lines of the definition in double precision', async () => {
  const { q, k, v } = rows({ nQHeads: 1, nKvHeads: 1, dQk: 5, dV: 3 }, 12);
  const [qs, ks, vs] = [rowsOf(q, 5), rowsOf(k, 5), rowsOf(v, 3)];
  const exact = qs.map((query, i) => {
    const scores = ks.slice(0, i + 1).map(
      (key) =>
        (matmul(
          [query],
          key.map((x) => [x]),
        )[0]?.[0] ?? 0) / Math.sqrt(5),
    );
    return matmul([softmax(scores)], vs)[0] ?? [];
  });
  for (const kernel of ['reference', 'tiled'] as const) {
    const { out } = await lab.attend({ nQHeads: 1, nKvHeads: 1, dQk: 5, dV: 3, q, k, v, kernel });
    const worst = Math.max(...[...out].map((value, i) => Math.abs(value - (flat(exact)[i] ?? 0))));
    expect(worst, kernel).toBeLessThan(2e-6);
  }
});
