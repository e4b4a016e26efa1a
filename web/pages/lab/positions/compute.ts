// What the section on positions shows, by the kernels: rows with their positions applied, scores over distances, frequencies,
// slopes. No DOM.
import type { HeadLab } from 'headlight-wasm/lab';
import { normals } from '../hand/random.js';
import { ropeOptions, SCALINGS, type Scaling, type Setup } from './schemes.js';

type Kernels = Pick<HeadLab, 'attend' | 'rope' | 'sinusoids' | 'alibiSlopes'>;

const [querySeed, keySeed, tableSeed, wordSeed] = [11, 12, 13, 14];

/** A position that the scheme has no row for. */
export class NoPosition extends Error {}

function repeated(row: Float32Array, n: number): Float32Array {
  const rows = new Float32Array(row.length * n);
  for (let i = 0; i < n; i++) rows.set(row, i * row.length);
  return rows;
}

/** Rows [positions.length, dQk] with their positions added or turned in, as the scheme does it. */
export async function placed(
  lab: Kernels,
  setup: Setup,
  rows: Float32Array,
  positions: readonly number[],
): Promise<Float32Array> {
  const { scheme, trained, dQk } = setup;
  if (scheme === 'sinusoidal') return lab.sinusoids({ rows, positions });
  if (scheme === 'learned') return withLearned(rows, positions, trained, dQk);
  if (scheme !== 'rope') return rows;
  const options = ropeOptions(setup, setup.scaling);
  const needed = Math.max(...positions) + 1;
  // Tables are as long as the context that is said: for figures, no longer than the positions, where that changes nothing.
  const nCtx = setup.scaling === 'dynamic' ? Math.max(options.nCtx ?? 1, needed) : needed;
  return (await lab.rope({ ...options, nCtx, rows, positions })).rows;
}

/** A stand-in for a trained table: random rows. What matters here is that it ends. */
function withLearned(
  rows: Float32Array,
  positions: readonly number[],
  nRows: number,
  width: number,
): Float32Array {
  const missing = positions.find((pos) => pos >= nRows);
  if (missing !== undefined)
    throw new NoPosition(
      `Position ${missing.toLocaleString('en-GB')} has no row: the table ends at ${(nRows - 1).toLocaleString('en-GB')}. ` +
        'Headlight refuses such a context.',
    );
  return rows.map((x, i) => {
    const [row, place] = [Math.floor(i / width), i % width];
    return x + learnedValue(positions[row] ?? 0, place, width);
  });
}

const tables = new Map<string, Float32Array>();
function learnedValue(pos: number, place: number, width: number): number {
  const key = `${pos}/${width}`;
  let row = tables.get(key);
  if (row === undefined) {
    row = normals(width, tableSeed + 31 * pos).map((x) => x / 2);
    tables.set(key, row);
  }
  return row[place] ?? 0;
}

/** One query and one key: equal elements with q·k / √d = 1, or random ones. */
export function vectorsOf({ dQk, vectors }: Setup): { q: Float32Array; k: Float32Array } {
  if (vectors === 'random') return { q: normals(dQk, querySeed), k: normals(dQk, keySeed) };
  const equal = new Float32Array(dQk).fill(dQk ** -0.25);
  return { q: equal, k: equal };
}

/**
 * Scores of the same query and key at distances 0 to reach, both moved by `start`: [reach + 1]. For ALiBi of the head with the
 * slope given. Throws NoPosition where the scheme ends.
 */
export async function scoresByDistance(
  lab: Kernels,
  setup: Setup,
  start: number,
  slope?: number,
): Promise<number[]> {
  const { dQk, reach } = setup;
  const { q, k } = vectorsOf(setup);
  const n = reach + 1;
  const positions = Array.from({ length: n }, (_, i) => start + i);
  const { captured } = await lab.attend({
    ...{ nQHeads: 1, nKvHeads: 1, dQk, dV: 1, firstPosition: reach, capture: 'scores' },
    ...(slope === undefined ? {} : { alibiSlopes: Float32Array.of(slope) }),
    q: await placed(lab, setup, q.slice(), [start + reach]),
    k: await placed(lab, setup, repeated(k, n), positions),
    v: new Float32Array(n),
  });
  return [...(captured?.data ?? [])].reverse();
}

export async function slopeOf(lab: Kernels, { scheme, heads }: Setup): Promise<number | undefined> {
  return scheme === 'alibi' ? (await lab.alibiSlopes(heads))[0] : undefined;
}

/** Of lists of one length. */
export function largestChange(before: ArrayLike<number>, after: ArrayLike<number>): number {
  return Array.from(before).reduce(
    (largest, x, i) => Math.max(largest, Math.abs(x - (after[i] ?? 0))),
    0,
  );
}

/** The largest change of a score when query and key move together. undefined: the scheme ends before. */
export async function changeByMoving(lab: Kernels, setup: Setup): Promise<number | undefined> {
  const slope = await slopeOf(lab, setup);
  const here = await scoresByDistance(lab, setup, 0, slope);
  try {
    const there = await scoresByDistance(lab, setup, setup.moved, slope);
    return largestChange(here, there);
  } catch (error) {
    if (error instanceof NoPosition) return undefined;
    throw error;
  }
}

export const words = ['dog', 'bites', 'man'] as const;

/** Not the mirror image alone: a bias by distance, which is the same in both directions, cannot tell that. */
const otherOrders = [
  [0, 2, 1],
  [1, 0, 2],
  [1, 2, 0],
  [2, 0, 1],
  [2, 1, 0],
] as const;

/** The largest change of any word's output from "dog bites man" to the same words in another order, every word seeing all. */
export async function changeByShuffling(lab: Kernels, setup: Setup): Promise<number> {
  const { dQk } = setup;
  // So long that a word scores about 1 with itself: none looks at itself alone.
  const vectors = words.map((_, i) => normals(dQk, wordSeed + i).map((x) => x * dQk ** -0.25));
  const outputs = async (order: readonly number[]) => {
    const x = Float32Array.from(order.flatMap((i) => [...(vectors[i] ?? [])]));
    const positions = order.map((_, i) => i);
    const rows = await placed(lab, setup, x.slice(), positions);
    // What is added to embeddings is in the values too; what turns queries and keys is not.
    const v = setup.scheme === 'rope' ? x : rows;
    const slope = await slopeOf(lab, setup);
    const { out } = await lab.attend({
      ...{ nQHeads: 1, nKvHeads: 1, dQk, dV: dQk, q: rows, k: rows, v, causal: false },
      ...(slope === undefined ? {} : { alibiSlopes: Float32Array.of(slope) }),
    });
    return order.map((word, i) => ({ word, out: out.slice(i * dQk, (i + 1) * dQk) }));
  };
  const before = await outputs([0, 1, 2]);
  let largest = 0;
  for (const order of otherOrders) {
    for (const { word, out } of await outputs(order)) {
      largest = Math.max(largest, largestChange(out, before[word]?.out ?? []));
    }
  }
  return largest;
}

export interface Frequencies {
  byScaling: Record<Scaling, Float64Array>;
  /** YaRN's. */
  magnitude: number;
}

export async function frequencies(lab: Kernels, setup: Setup): Promise<Frequencies> {
  const results = await Promise.all(
    SCALINGS.map(async (scaling) => ({
      scaling,
      ...(await lab.rope(ropeOptions(setup, scaling))),
    })),
  );
  return {
    byScaling: Object.fromEntries(
      results.map(({ scaling, frequencies: list }) => [scaling, list]),
    ) as Frequencies['byScaling'],
    magnitude: results.find(({ scaling }) => scaling === 'yarn')?.magnitude ?? 1,
  };
}

/** How much longer each pair's wavelength became. */
export function stretches({ byScaling }: Frequencies, scaling: Scaling): number[] {
  return [...byScaling.none].map((plain, i) => plain / (byScaling[scaling][i] ?? 1));
}

/** The base whose pair 1 has this frequency: base^(-2 / n_rot). */
export function baseOf(list: Float64Array): number {
  const nRot = 2 * list.length;
  return list.length < 2 ? Number.NaN : (list[1] ?? 1) ** (-nRot / 2);
}

/** The last pair that YaRN leaves alone and the first that it wholly interpolates. -1 or n: there is none. */
export function yarnBounds(all: Frequencies, factor: number): { low: number; high: number } {
  const list = stretches(all, 'yarn');
  const isLeft = (x: number) => x < 1 + 1e-9;
  const isWhole = (x: number) => x > factor * (1 - 1e-9);
  const firstStretched = list.findIndex((x) => !isLeft(x));
  const firstWhole = list.findIndex(isWhole);
  return {
    low: (firstStretched < 0 ? list.length : firstStretched) - 1,
    high: firstWhole < 0 ? list.length : firstWhole,
  };
}

export interface PairRow {
  m: number;
  n: number;
  q: number[];
  k: number[];
  dot: number;
}

/** q = k = (1, 0), one pair turned by theta a position, at positions m and n. */
export async function turnedPair(
  lab: Kernels,
  places: readonly (readonly [number, number])[],
  theta: number,
): Promise<PairRow[]> {
  const positions = places.flat();
  const rows = repeated(Float32Array.of(1, 0), positions.length);
  const turned = (
    await lab.rope({ nRot: 2, scaling: 'linear', factor: 1 / theta, rows, positions })
  ).rows;
  return Promise.all(
    places.map(async ([m, n], i) => {
      const [q, k] = [turned.slice(4 * i, 4 * i + 2), turned.slice(4 * i + 2, 4 * i + 4)];
      const { captured } = await lab.attend({
        ...{ nQHeads: 1, nKvHeads: 1, dQk: 2, dV: 1, scale: 1, capture: 'scores' },
        ...{ q, k, v: Float32Array.of(0) },
      });
      return { m, n, q: [...q], k: [...k], dot: captured?.data[0] ?? 0 };
    }),
  );
}

export interface AlibiHead {
  slope: number;
  /** What a score loses at distances 0, 1, ...: by the kernel, from scores of 0. */
  bias: number[];
}

export async function alibiHeads(lab: Kernels, heads: number, reach: number): Promise<AlibiHead[]> {
  const slopes = await lab.alibiSlopes(heads);
  const n = reach + 1;
  const { captured } = await lab.attend({
    ...{ nQHeads: heads, nKvHeads: 1, dQk: 1, dV: 1, firstPosition: reach, capture: 'scores' },
    ...{ q: new Float32Array(heads), k: new Float32Array(n), v: new Float32Array(n) },
    alibiSlopes: slopes,
  });
  return [...slopes].map((slope, head) => ({
    slope,
    bias: [...(captured?.data.subarray(head * n, (head + 1) * n) ?? [])].reverse(),
  }));
}

/** PE(position) of a zero row. */
export async function sinusoidRows(
  lab: Kernels,
  positions: readonly number[],
  width: number,
): Promise<number[][]> {
  const all = await lab.sinusoids({ rows: new Float32Array(positions.length * width), positions });
  return positions.map((_, i) => [...all.subarray(i * width, (i + 1) * width)]);
}
