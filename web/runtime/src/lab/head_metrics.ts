// What kind of head it is, by its attention weights: numbers with stated formulas. A map is [n, n], row-major, causal: w[i][j]
// is the weight of key j in row i, rows sum to 1 (or to 1 less a learned sink's share). Row 0 sees only itself and says
// nothing: it is left out of every mean.
import { BadOptionError } from '../errors.js';

export interface HeadMetrics {
  /** mean_i w[i][i-1]: 1 for a head that always looks one token back. */
  previousToken: number;
  /** mean_i w[i][0]: 1 for a head that always looks at the first token. */
  firstToken: number;
  /** mean_i w[i][i]. */
  self: number;
  /** mean_i H(w[i]) / ln(i + 1), H the entropy of the row: 1 for the mean of all that came before. */
  uniform: number;
  /**
   * Mean over rows whose token occurred before, at positions j: the sum of w[i][j+1], the weight of what followed then. 1 for
   * an induction head. Undefined where no token comes twice.
   */
  induction: number | undefined;
  /** mean_i H(w[i]), in nats. */
  entropy: number;
  /** mean_i sum_j w[i][j] (i - j), in tokens. */
  distance: number;
}

/** Throws BadOptionError where `weights` is no square map of the tokens. */
export function headMetrics(weights: Float32Array, tokens: ArrayLike<number>): HeadMetrics {
  const n = tokens.length;
  checkMap(weights, n);
  const sums = { previousToken: 0, firstToken: 0, self: 0, uniform: 0, entropy: 0, distance: 0 };
  for (let i = 1; i < n; i++) {
    const row = weights.subarray(i * n, i * n + i + 1);
    const entropy = rowEntropy(row);
    sums.previousToken += row[i - 1] ?? 0;
    sums.firstToken += row[0] ?? 0;
    sums.self += row[i] ?? 0;
    sums.entropy += entropy;
    sums.uniform += entropy / Math.log(i + 1);
    sums.distance += rowDistance(row);
  }
  const nRows = Math.max(1, n - 1);
  return {
    previousToken: sums.previousToken / nRows,
    firstToken: sums.firstToken / nRows,
    self: sums.self / nRows,
    uniform: sums.uniform / nRows,
    induction: inductionShare(weights, tokens),
    entropy: sums.entropy / nRows,
    distance: sums.distance / nRows,
  };
}

/** H = - sum_j w_j ln w_j of one row, in nats. */
export function rowEntropy(row: ArrayLike<number>): number {
  let sum = 0;
  for (let j = 0; j < row.length; j++) {
    const weight = row[j] ?? 0;
    if (weight > 0) sum -= weight * Math.log(weight);
  }
  return sum;
}

/** sum_j w_j (i - j), i the row's own position: its last key's. */
export function rowDistance(row: ArrayLike<number>): number {
  let sum = 0;
  for (let j = 0; j < row.length; j++) sum += (row[j] ?? 0) * (row.length - 1 - j);
  return sum;
}

function inductionShare(weights: Float32Array, tokens: ArrayLike<number>): number | undefined {
  const n = tokens.length;
  let nRows = 0;
  let sum = 0;
  for (let i = 1; i < n; i++) {
    let isRepeated = false;
    for (let j = 0; j < i; j++) {
      if (tokens[j] !== tokens[i]) continue;
      isRepeated = true;
      sum += weights[i * n + j + 1] ?? 0;
    }
    if (isRepeated) nRows += 1;
  }
  return nRows === 0 ? undefined : sum / nRows;
}

/**
 * How much a head's map depends on the text: maps of several texts, all [n, n]. For every (i, j) the standard deviation of
 * w[i][j] over the texts, and of these the largest in each row, averaged over the rows from 1 on. 0 for a head that looks at
 * the same places whatever is written there; up to 0.5 for one that goes by content.
 */
export function contentSpread(maps: readonly Float32Array[], n: number): number {
  if (maps.length < 2)
    throw new BadOptionError(`contentSpread: ${maps.length} maps are given, at least 2 are needed`);
  for (const map of maps) checkMap(map, n);
  let sum = 0;
  for (let i = 1; i < n; i++) {
    let largest = 0;
    for (let j = 0; j <= i; j++) largest = Math.max(largest, deviation(maps, i * n + j));
    sum += largest;
  }
  return sum / Math.max(1, n - 1);
}

function deviation(maps: readonly Float32Array[], at: number): number {
  let mean = 0;
  for (const map of maps) mean += (map[at] ?? 0) / maps.length;
  let variance = 0;
  for (const map of maps) variance += ((map[at] ?? 0) - mean) ** 2 / maps.length;
  return Math.sqrt(variance);
}

function checkMap(weights: Float32Array, n: number): void {
  if (weights.length === n * n) return;
  throw new BadOptionError(
    `A map of ${n} tokens has ${n * n} weights, this one has ${weights.length}. Capture with rows: 'all'.`,
    { option: 'weights', value: String(weights.length), range: `${n} x ${n}` },
  );
}

export type HeadLabel = 'previous-token' | 'first-token sink' | 'induction' | 'uniform' | 'mixed';

/** A head is called what it does at least this much of. */
export const LABEL_THRESHOLDS = { share: 0.5, uniform: 0.9, spread: 0.1 } as const;

/**
 * The largest of previousToken, firstToken and induction, if it is at least 0.5; else uniform, if that is at least 0.9; else
 * mixed. Induction only counts where tokens come twice.
 */
export function headLabel(metrics: HeadMetrics): HeadLabel {
  const shares: [HeadLabel, number][] = [
    ['previous-token', metrics.previousToken],
    ['first-token sink', metrics.firstToken],
    ['induction', metrics.induction ?? 0],
  ];
  const [label, share] = shares.reduce((best, one) => (one[1] > best[1] ? one : best));
  if (share >= LABEL_THRESHOLDS.share) return label;
  return metrics.uniform >= LABEL_THRESHOLDS.uniform ? 'uniform' : 'mixed';
}

/** By contentSpread: at most 0.1 is a fixed pattern. */
export function headKind(spread: number): 'fixed pattern' | 'content-based' {
  return spread <= LABEL_THRESHOLDS.spread ? 'fixed pattern' : 'content-based';
}
