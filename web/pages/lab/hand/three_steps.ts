// The three-token example, step by step: what each number is, the arithmetic that makes it, and which numbers it is made of.
// No DOM.
import {
  dotText,
  type Matrix,
  matmul,
  shown,
  softmax,
  softmaxText,
  transpose,
} from './arithmetic.js';

export const tokens = ['the', 'cat', 'sat'] as const;

export interface Inputs {
  /** [3, 4] */
  x: Matrix;
  /** [4, 2] each */
  wq: Matrix;
  wk: Matrix;
  wv: Matrix;
  isScaled: boolean;
  isCausal: boolean;
  /** QK-norm: each query and key divided by its root mean square. */
  isNormed: boolean;
  /** The last token is padding: a key that no token may look at. */
  isPadded: boolean;
  /** A learned sink of score 0: an exp(0) more in every row's sum, which belongs to no token. */
  hasSink: boolean;
}

/** Scores of a row's softmax that belong to no token. */
export const sinkScores = ({ hasSink }: Inputs): readonly number[] => (hasSink ? [0] : []);

/** As the models with QK-norm have it: a row of zeros stays one. */
const normEpsilon = 1e-6;

function rootMeanSquare(row: readonly number[]): number {
  return Math.sqrt(row.reduce((sum, x) => sum + x * x, 0) / row.length + normEpsilon);
}

/** RMSNorm with weights of 1. */
function normed(a: Matrix): number[][] {
  return a.map((row) => row.map((x) => x / rootMeanSquare(row)));
}

const isPadding = ({ isPadded }: Inputs, j: number) => isPadded && j === tokens.length - 1;

function isHidden(inputs: Inputs, i: number, j: number): boolean {
  return (inputs.isCausal && j > i) || isPadding(inputs, j);
}

/** The third article's numbers. */
export const articleMatrices = {
  x: [
    [1, 0, 1, 0],
    [0, 2, 0, 1],
    [1, 1, 0, 1],
  ],
  wq: [
    [1, 0],
    [0, 1],
    [1, 0],
    [0, 1],
  ],
  wk: [
    [0, 1],
    [1, 0],
    [0, 1],
    [1, 0],
  ],
  wv: [
    [1, 0],
    [0, 2],
    [0, 1],
    [1, 0],
  ],
} as const;

export type InputName = keyof typeof articleMatrices;
export type StepName =
  | 'q'
  | 'k'
  | 'v'
  | 'qNormed'
  | 'kNormed'
  | 'scores'
  | 'scaled'
  | 'masked'
  | 'weights'
  | 'out';
export type MatrixName = InputName | StepName;

/** Without QK-norm qNormed and kNormed are q and k. */
export type Steps = Record<StepName, number[][]>;

export function scaleOf({ wq, isScaled }: Inputs): number {
  return isScaled ? 1 / Math.sqrt(wq[0]?.length ?? 1) : 1;
}

export function computeSteps(inputs: Inputs): Steps {
  const { x, wq, wk, wv } = inputs;
  const [q, k, v] = [matmul(x, wq), matmul(x, wk), matmul(x, wv)];
  const [qNormed, kNormed] = inputs.isNormed ? [normed(q), normed(k)] : [q, k];
  const scores = matmul(qNormed, transpose(kNormed));
  const scale = scaleOf(inputs);
  const scaled = scores.map((row) => row.map((s) => s * scale));
  const masked = scaled.map((row, i) =>
    row.map((s, j) => (isHidden(inputs, i, j) ? Number.NEGATIVE_INFINITY : s)),
  );
  const weights = masked.map((row) => softmax([...row, ...sinkScores(inputs)]).slice(0, 3));
  return { q, k, v, qNormed, kNormed, scores, scaled, masked, weights, out: matmul(weights, v) };
}

/** A cell, or with an undefined index all cells of that row or column. */
export interface Source {
  matrix: MatrixName;
  row?: number;
  column?: number;
}

export interface Explanation {
  /** "Q[0][0]": row and column from 0, as in the article. */
  name: string;
  text: string;
  sources: Source[];
}

type Explainer = (i: number, j: number, inputs: Inputs, steps: Steps) => Omit<Explanation, 'name'>;

function column(a: Matrix, j: number): number[] {
  return a.map((row) => row[j] ?? 0);
}

function projection(weight: 'wq' | 'wk' | 'wv'): Explainer {
  return (i, j, inputs) => ({
    text: dotText(inputs.x[i] ?? [], column(inputs[weight], j)),
    sources: [
      { matrix: 'x', row: i },
      { matrix: weight, column: j },
    ],
  });
}

function normalisation(matrix: 'q' | 'k'): Explainer {
  return (i, j, { isNormed }, { [matrix]: rows }) => {
    const row = rows[i] ?? [];
    const x = shown(row[j] ?? 0);
    const root = rootMeanSquare(row);
    const squares = row.map((value) => `${value < 0 ? `(${shown(value)})` : shown(value)}²`);
    return {
      text: isNormed
        ? `${x} / √((${squares.join(' + ')}) / ${row.length}) = ${x} / ${shown(root)} = ${shown((row[j] ?? 0) / root)}`
        : `${x}, not normalised`,
      sources: [{ matrix, row: i }],
    };
  };
}

/** What the sink keeps of a row's budget. */
function restText({ hasSink }: Inputs, weights: readonly number[]): string {
  if (!hasSink) return '';
  const sum = weights.reduce((a, b) => a + b, 0);
  return `; the row sums to ${shown(sum)}, the sink keeps ${shown(1 - sum)}`;
}

const explainers: Record<StepName, Explainer> = {
  q: projection('wq'),
  k: projection('wk'),
  v: projection('wv'),
  qNormed: normalisation('q'),
  kNormed: normalisation('k'),
  scores: (i, j, { isNormed }, { qNormed, kNormed }) => ({
    text: dotText(qNormed[i] ?? [], kNormed[j] ?? []),
    sources: [
      { matrix: isNormed ? 'qNormed' : 'q', row: i },
      { matrix: isNormed ? 'kNormed' : 'k', row: j },
    ],
  }),
  scaled: (i, j, inputs, { scores, scaled }) => {
    const width = inputs.wq[0]?.length ?? 1;
    const [from, to] = [shown(scores[i]?.[j] ?? 0), shown(scaled[i]?.[j] ?? 0)];
    return {
      text: inputs.isScaled
        ? `${from} / √${width} = ${from} / ${Math.sqrt(width).toFixed(4)} = ${to}`
        : `${from}, not scaled`,
      sources: [{ matrix: 'scores', row: i, column: j }],
    };
  },
  masked: (i, j, inputs, { scaled }) => ({
    text: isPadding(inputs, j)
      ? `“${tokens[j]}” is padding: −∞`
      : isHidden(inputs, i, j)
        ? `“${tokens[j]}” comes after “${tokens[i]}”: −∞`
        : `${shown(scaled[i]?.[j] ?? 0)}: “${tokens[i]}” may look at “${tokens[j]}”`,
    sources: [{ matrix: 'scaled', row: i, column: j }],
  }),
  weights: (i, j, inputs, { masked, weights }) => ({
    text: softmaxText(masked[i] ?? [], j, sinkScores(inputs)) + restText(inputs, weights[i] ?? []),
    sources: [{ matrix: 'masked', row: i }],
  }),
  out: (i, j, _, { weights, v }) => ({
    text: dotText(weights[i] ?? [], column(v, j)),
    sources: [
      { matrix: 'weights', row: i },
      { matrix: 'v', column: j },
    ],
  }),
};

export const symbols: Record<MatrixName, string> = {
  x: 'X',
  wq: 'W_Q',
  wk: 'W_K',
  wv: 'W_V',
  q: 'Q',
  k: 'K',
  v: 'V',
  qNormed: 'Q/rms',
  kNormed: 'K/rms',
  scores: 'S',
  scaled: 'S/√d',
  masked: 'S/√d + M',
  weights: 'A',
  out: 'out',
};

export function explain(name: StepName, row: number, col: number, inputs: Inputs): Explanation {
  const { text, sources } = explainers[name](row, col, inputs, computeSteps(inputs));
  return { name: `${symbols[name]}[${row}][${col}]`, text, sources };
}
