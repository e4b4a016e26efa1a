// The third article's toy of a fixed replacement, by its own procedure: a head with a strong pull to the previous token and a
// weak look at content; its maps are averaged over 2,000 random inputs, and the average takes the head's place. All maps are
// the kernels': one input is one head of a wide layer.
import type { HeadLab } from 'headlight-wasm/lab';
import { normals } from '../hand/random.js';

export const toyTokens = 6;
export const toyWidth = 8;
export const toyMaps = 2000;
export const toyTrials = 200;
export const toySeeds = 20;
/** What the article's code adds to the previous token's score, and how it scales the content. */
const positionBonus = 6;
const contentScale = 0.5;
/** Heads of one call: the kernels take at most 1,024. */
const batch = 500;

export type ToyKind = 'previous' | 'content';

export interface ToyResult {
  /** [toyTokens][toyTokens] mean map. */
  mean: number[][];
  /** Largest standard deviation of an entry over the maps. */
  spread: number;
  /** Mean of |PV - AV| / |AV| over the trials. */
  error: number;
}

type Weights = HeadLab['weights'];

/** Queries and keys whose products are the article's scores: content, and a place each for "I am j" and "I follow j". */
function rowsOf(kind: ToyKind, inputs: Float32Array, w: Float32Array) {
  const n = inputs.length / (toyTokens * toyWidth);
  const d = toyWidth + toyTokens;
  const q = new Float32Array(toyTokens * n * d);
  const k = new Float32Array(toyTokens * n * d);
  for (let map = 0; map < n; map++) {
    for (let t = 0; t < toyTokens; t++) {
      const x = inputs.subarray((map * toyTokens + t) * toyWidth).subarray(0, toyWidth);
      const at = (t * n + map) * d;
      k.set(x, at);
      if (kind === 'previous') {
        q.set(
          x.map((value) => (contentScale * value) / Math.sqrt(toyWidth)),
          at,
        );
        k[at + toyWidth + t] = 1;
        if (t > 0) q[at + toyWidth + t - 1] = positionBonus;
      } else {
        // x W x^T / sqrt(d)
        for (let j = 0; j < toyWidth; j++) {
          let sum = 0;
          for (let i = 0; i < toyWidth; i++) sum += (x[i] ?? 0) * (w[i * toyWidth + j] ?? 0);
          q[at + j] = sum / Math.sqrt(toyWidth);
        }
      }
    }
  }
  return { nQHeads: n, nKvHeads: n, dQk: d, q, k, scale: 1 };
}

/** [maps][toyTokens * toyTokens] */
async function mapsOf(
  weights: Weights,
  kind: ToyKind,
  inputs: Float32Array,
  w: Float32Array,
): Promise<Float32Array[]> {
  const size = toyTokens * toyWidth;
  const maps: Float32Array[] = [];
  for (let start = 0; start * size < inputs.length; start += batch) {
    const some = inputs.subarray(start * size, (start + batch) * size);
    const rows = rowsOf(kind, some, w);
    const out = await weights(rows);
    const n = rows.nQHeads;
    for (let map = 0; map < n; map++) {
      const one = new Float32Array(toyTokens * toyTokens);
      for (let t = 0; t < toyTokens; t++) {
        const at = (t * n + map) * toyTokens;
        one.set(out.subarray(at, at + toyTokens), t * toyTokens);
      }
      maps.push(one);
    }
  }
  return maps;
}

/** |(A - P) V| / |A V| of one map. */
function errorOf(map: Float32Array, mean: Float64Array, values: Float32Array): number {
  let [wrong, whole] = [0, 0];
  for (let t = 0; t < toyTokens; t++) {
    for (let i = 0; i < toyWidth; i++) {
      let [real, difference] = [0, 0];
      for (let key = 0; key < toyTokens; key++) {
        const value = values[key * toyWidth + i] ?? 0;
        const weight = map[t * toyTokens + key] ?? 0;
        real += weight * value;
        difference += (weight - (mean[t * toyTokens + key] ?? 0)) * value;
      }
      whole += real * real;
      wrong += difference * difference;
    }
  }
  return Math.sqrt(wrong / whole);
}

export async function runToy(weights: Weights, kind: ToyKind, seed: number): Promise<ToyResult> {
  const size = toyTokens * toyWidth;
  const w = normals(toyWidth * toyWidth, 9000 + seed);
  const maps = await mapsOf(weights, kind, normals(toyMaps * size, 1000 + seed), w);
  const mean = new Float64Array(toyTokens * toyTokens);
  const squares = new Float64Array(toyTokens * toyTokens);
  for (const map of maps) {
    for (const [i, weight] of map.entries()) {
      mean[i] = (mean[i] ?? 0) + weight / maps.length;
      squares[i] = (squares[i] ?? 0) + (weight * weight) / maps.length;
    }
  }
  const deviations = squares.map((square, i) =>
    Math.sqrt(Math.max(0, square - (mean[i] ?? 0) * (mean[i] ?? 0))),
  );
  const trials = await mapsOf(weights, kind, normals(toyTrials * size, 3000 + seed), w);
  const values = normals(toyTrials * size, 5000 + seed);
  const errors = trials.map((map, i) =>
    errorOf(map, mean, values.subarray(i * size, (i + 1) * size)),
  );
  return {
    mean: Array.from({ length: toyTokens }, (_, t) =>
      Array.from(mean.subarray(t * toyTokens, (t + 1) * toyTokens)),
    ),
    spread: Math.max(...deviations),
    error: errors.reduce((a, b) => a + b, 0) / errors.length,
  };
}

export interface Many {
  mean: number;
  low: number;
  high: number;
}

export function overSeeds(values: readonly number[]): Many {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return { mean, low: Math.min(...values), high: Math.max(...values) };
}
