// What a decoder's head layout and its surroundings are, as plain data, and every weight that follows from it. Counts only:
// no weights, no kernels. Used by the lab page and by `headlight layout`.
import { badOption, boolean, checkOptions, integer, oneOf, type Rules } from '../options.js';

/** What stands between attention blocks. 'hadamard': three diagonals around fixed Walsh-Hadamard transforms. */
export type FeedForwardKind = 'none' | 'gated' | 'plain' | 'hadamard';

export interface ModelShape {
  nLayers: number;
  dModel: number;
  nQHeads: number;
  nKvHeads: number;
  /** Width of a query and of a key. */
  dQk: number;
  /** Width of a value. */
  dV: number;
  vocabSize: number;
  /** The output head is the embedding, stored once. */
  tiedHead: boolean;
  feedForward: FeedForwardKind;
  /** Hidden width of a gated or plain feed-forward; 0 otherwise. */
  dFf: number;
  /** Norm vectors of width dModel in a block. */
  nNorms: number;
  /** A norm vector of width dQk for queries and one for keys. */
  qkNorm: boolean;
  /** An elementwise gate on the heads' outputs: one more matrix, dModel x nQHeads dV. */
  outputGate: boolean;
  /** A learned scalar on the block's output. */
  blockGate: boolean;
  /** Lanes of the residual stream with learned mixing (hyper-connections); 1: a plain residual stream. */
  nLanes: number;
  /** Blocks that predict a further token, each with a combining matrix 2 dModel -> dModel; used in training only. */
  nExtraBlocks: number;
  /** Sites of a hashed n-gram memory and slots of its tables; rows of all tables of a site are dModel wide together. */
  nMemorySites: number;
  nMemorySlots: number;
}

const MAX_COUNT = 1e6;
const MAX_WIDTH = 1e6;
const MAX_LAYERS = 10_000;

const RULES: Rules<ModelShape> = {
  nLayers: integer(1, MAX_LAYERS),
  dModel: integer(1, MAX_WIDTH),
  nQHeads: integer(1, MAX_COUNT),
  nKvHeads: integer(1, MAX_COUNT),
  dQk: integer(1, MAX_WIDTH),
  dV: integer(1, MAX_WIDTH),
  vocabSize: integer(0, 1e8),
  tiedHead: boolean,
  feedForward: oneOf('none', 'gated', 'plain', 'hadamard'),
  dFf: integer(0, MAX_WIDTH),
  nNorms: integer(0, 8),
  qkNorm: boolean,
  outputGate: boolean,
  blockGate: boolean,
  nLanes: integer(1, 64),
  nExtraBlocks: integer(0, MAX_LAYERS),
  nMemorySites: integer(0, MAX_LAYERS),
  nMemorySlots: integer(0, 1e9),
};

/** Throws BadOptionError with the name, the value and the range. */
export function checkShape(shape: ModelShape): void {
  checkOptions('layout', shape, RULES);
  for (const name of Object.keys(RULES) as (keyof ModelShape)[]) {
    if (shape[name] === undefined) throw badOption('layout', name, undefined, RULES[name].range);
  }
  if (shape.nQHeads % shape.nKvHeads !== 0) {
    const range = `a divisor of nQHeads = ${shape.nQHeads}`;
    throw badOption('layout', 'nKvHeads', shape.nKvHeads, range);
  }
}

/** A decoder without anything special: one norm before attention, one before a gated feed-forward. */
export const PLAIN = {
  feedForward: 'gated',
  nNorms: 2,
  qkNorm: false,
  outputGate: false,
  blockGate: false,
  nLanes: 1,
  nExtraBlocks: 0,
  nMemorySites: 0,
  nMemorySlots: 0,
} as const satisfies Partial<ModelShape>;

export interface WeightItem {
  name: string;
  /** The arithmetic with its numbers, for people. */
  formula: string;
  parameters: number;
  /** Matrices are quantised; vectors and diagonals stay as they are. */
  isMatrix: boolean;
  /** How often a decoded token multiplies by these weights: lookups and training-only parts do not count. */
  isUsedPerToken: boolean;
}

/** Smallest power of two that is at least n. */
function powerOfTwoAtLeast(n: number): number {
  return 2 ** Math.ceil(Math.log2(n));
}

type Term = readonly [name: string, factors: readonly number[], isMatrix?: boolean];

function product(factors: readonly number[]): number {
  return factors.reduce((a, b) => a * b, 1);
}

/** One block's weights. */
function blockTerms(shape: ModelShape): Term[] {
  const { dModel: d, nQHeads: h, nKvHeads: g, dQk, dV, dFf } = shape;
  const feedForward: Record<FeedForwardKind, Term[]> = {
    none: [],
    gated: [['feed-forward', [3, d, dFf], true]],
    plain: [['feed-forward', [2, d, dFf], true]],
    hadamard: [['feed-forward diagonals', [3, powerOfTwoAtLeast(d)]]],
  };
  const terms: Term[] = [
    ['W_q', [d, h, dQk], true],
    ['W_k', [d, g, dQk], true],
    ['W_v', [d, g, dV], true],
    ['W_o', [h, dV, d], true],
  ];
  if (shape.outputGate) terms.push(['output gate', [d, h, dV], true]);
  terms.push(...feedForward[shape.feedForward], ['norms', [shape.nNorms, d]]);
  if (shape.qkNorm) terms.push(['query and key norms', [2, dQk]]);
  if (shape.blockGate) terms.push(['block gates', [1]]);
  return terms;
}

function item(
  name: string,
  factors: readonly number[],
  isMatrix: boolean,
  used = true,
): WeightItem {
  const formula = factors.map((factor) => factor.toLocaleString('en-GB')).join(' × ');
  return { name, formula, parameters: product(factors), isMatrix, isUsedPerToken: used };
}

/** Hyper-connections of one layer, n lanes: the mixing matrix, its biases, three scales. */
function lanesPerLayer({ nLanes: n, dModel: d }: ModelShape): number {
  return n === 1 ? 0 : n * d * (2 * n + n * n) + 2 * n + n * n + 3;
}

/** Key and value projections of a memory site's rows side by side (their widths add up to dModel), four taps. */
function memoryProjections({ dModel: d }: ModelShape): number {
  return 2 * d * d + 4 * d;
}

/** Every weight, named. The sum of `parameters` is the size of the model. */
export function weightItems(shape: ModelShape): WeightItem[] {
  checkShape(shape);
  const { nLayers, nExtraBlocks, dModel: d, vocabSize } = shape;
  const items = [item('embedding', [vocabSize, d], true, shape.tiedHead)];
  if (!shape.tiedHead) items.push(item('output head', [vocabSize, d], true));
  for (const [name, factors, isMatrix = false] of blockTerms(shape)) {
    items.push(item(name, [nLayers, ...factors], isMatrix));
  }
  items.push(item('last norm', [d], false));
  if (shape.nLanes > 1) items.push(item('lane mixing', [nLayers, lanesPerLayer(shape)], true));
  if (nExtraBlocks > 0) {
    const block = blockTerms(shape).reduce((sum, [, factors]) => sum + product(factors), 0);
    const combine = 2 * d * d + 2 * d;
    items.push(item('further-token blocks', [nExtraBlocks, block + combine], true, false));
  }
  if (shape.nMemorySites > 0) {
    const { nMemorySites, nMemorySlots } = shape;
    items.push(item('n-gram tables', [nMemorySites, nMemorySlots, d], true, false));
    items.push(item('n-gram projections', [nMemorySites, memoryProjections(shape)], true));
  }
  return items.filter(({ parameters }) => parameters > 0);
}
