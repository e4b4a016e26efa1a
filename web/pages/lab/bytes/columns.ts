// The columns of a preset's table: what we compute, what the article prints beside it, and why the two differ where they do.
import type { ModelShape, WeightType } from 'headlight-wasm/lab';
import type { ComputedRow } from './rows.js';
import { binaryBytes, largeNumber } from './units.js';

export interface TableCell {
  /** Ours, exact. */
  value: string;
  /** The article's, as printed. */
  printed?: string | undefined;
  /** Why they differ, where they do. */
  why?: string | undefined;
}

export interface Column {
  title: string;
  cell(row: ComputedRow): TableCell;
  /** The article's own measurement: not computed here. */
  isTheirs?: boolean;
}

function signed(value: number, digits: number): string {
  const text = Math.abs(value).toFixed(digits);
  return `${value < 0 ? '−' : '+'}${text} %`;
}

const losses: Column[] = [
  {
    title: 'File at 16 bits',
    cell: ({ cost, printed }) => ({
      value: `${(cost.fileBytes / 1e6).toFixed(3)} MB`,
      printed: printed.megabytes && `${printed.megabytes} MB`,
    }),
  },
  {
    title: 'Change of the file',
    cell: ({ fileChange, printed }) =>
      printed.fileChange === undefined
        ? { value: '' }
        : {
            value: signed(fileChange, 2),
            printed: `${fileChange < 0 ? '−' : '+'}${printed.fileChange} %`,
          },
  },
  {
    title: 'Loss',
    isTheirs: true,
    cell: ({ printed }) => ({ value: printed.loss?.toFixed(3) ?? '' }),
  },
  {
    title: 'Change of the loss',
    cell: ({ lossChange, printed }) => {
      if (lossChange === undefined || printed.lossChange === undefined) return { value: '' };
      const theirs = Number(printed.lossChange.replace('−', '-'));
      const differs = Math.abs(theirs - lossChange) > 0.05;
      return {
        value: signed(lossChange, 2),
        printed: `${theirs < 0 ? '' : '+'}${printed.lossChange} %`,
        why: differs ? 'the article’s losses are rounded to three decimals' : undefined,
      };
    },
  },
  { title: 'Cache a token', cell: ({ cost }) => ({ value: binaryBytes(cost.kvBytesPerToken) }) },
];

const nTokens8k = 8192;
const nTokens128k = 131_072;

function cacheCell(bytes: number, printed: string | undefined): TableCell {
  const value = binaryBytes(bytes);
  if (printed === undefined) return { value };
  // The articles stay in the unit of the table's first row: 0.125 GiB is 128 MiB.
  const unit = printed.slice(printed.lastIndexOf(' ') + 1);
  const exact = bytes / (unit === 'GiB' ? 2 ** 30 : 1024);
  const theirs = Number(printed.replaceAll(',', '').split(' ')[0]);
  const differs = Math.abs(theirs - exact) > 1e-9;
  return {
    value: `${exact.toLocaleString('en-GB', { maximumFractionDigits: 4 })} ${unit}`,
    printed,
    why: differs ? 'printed with two decimals' : undefined,
  };
}

const caches: Column[] = [
  { title: 'KV heads', cell: ({ shape }) => ({ value: String(shape.nKvHeads) }) },
  {
    title: 'Cache a token',
    cell: ({ cost, printed }) => cacheCell(cost.kvBytesPerToken, printed.kvPerToken),
  },
  {
    title: 'At 8,192 tokens',
    cell: ({ cost, printed }) => cacheCell(cost.kvBytesPerToken * nTokens8k, printed.kvAt8k),
  },
  {
    title: 'At 131,072 tokens',
    cell: ({ cost, printed }) => cacheCell(cost.kvBytesPerToken * nTokens128k, printed.kvAt128k),
  },
  {
    title: 'Attention weights, one layer',
    cell: ({ shape }) => ({ value: attentionWeights(shape).toLocaleString('en-GB') }),
  },
  { title: 'Parameters', cell: ({ cost }) => ({ value: largeNumber(cost.parameters) }) },
];

/** W_q, W_k, W_v and W_o of one layer. */
function attentionWeights({ dModel, nQHeads, nKvHeads, dQk, dV }: ModelShape): number {
  return dModel * (nQHeads + nKvHeads) * (dQk + dV);
}

/** The second article's prompt. */
const nArticleTokens = 7;

const heads: Column[] = [
  { title: 'Query heads', cell: ({ shape }) => ({ value: String(shape.nQHeads) }) },
  { title: 'KV heads', cell: ({ shape }) => ({ value: String(shape.nKvHeads) }) },
  {
    title: 'Distributions a token',
    cell: ({ shape }) => ({ value: String(shape.nQHeads) }),
  },
  {
    title: 'Multiply-adds of the scores, 7 tokens',
    cell: ({ shape: { nQHeads, dQk } }) => ({
      value: (nArticleTokens ** 2 * nQHeads * dQk).toLocaleString('en-GB'),
    }),
  },
  {
    title: 'Cache a token and layer',
    cell: ({ cost, printed }) => ({
      value: `${cost.kvBytesPerTokenPerLayer.toLocaleString('en-GB')} B`,
      printed: printed.kvPerTokenPerLayer && `${printed.kvPerTokenPerLayer} B`,
    }),
  },
  {
    title: 'Weights against the first row',
    cell: ({ parameterChange, printed }) => ({
      value: parameterChange === 0 ? 'identical' : `${binaryBytes(-parameterChange * 2)} smaller`,
      printed: printed.parametersVsFirst,
      why: parameterChange === 0 ? undefined : 'the article writes MB for MiB',
    }),
  },
];

const nWalkTokens = 5;

const walk: Column[] = [
  {
    title: 'W_k and W_v, each',
    cell: ({ shape: { dModel, nKvHeads, dQk } }) => ({ value: `[${dModel}, ${nKvHeads * dQk}]` }),
  },
  {
    title: 'Keys as cached, 5 tokens',
    cell: ({ shape: { nKvHeads, dQk } }) => ({ value: `[${nKvHeads}, ${nWalkTokens}, ${dQk}]` }),
  },
  {
    title: 'Numbers cached a token',
    cell: ({ cost, printed }) => ({
      value: String(cost.kvBytesPerTokenPerLayer / 2),
      printed: printed.kvNumbersPerToken,
    }),
  },
  {
    title: 'Parameters of W_k and W_v',
    cell: ({ shape: { dModel, nKvHeads, dQk, dV }, printed }) => ({
      value: String(dModel * nKvHeads * (dQk + dV)),
      printed: printed.kvParameters,
    }),
  },
];

const plain = (weights: WeightType): Column[] => [
  { title: 'Parameters', cell: ({ cost }) => ({ value: largeNumber(cost.parameters) }) },
  {
    title: `File as ${weights}`,
    cell: ({ cost }) => ({ value: `${(cost.fileBytes / 1e6).toFixed(2)} MB` }),
  },
  { title: 'Cache a token', cell: ({ cost }) => ({ value: binaryBytes(cost.kvBytesPerToken) }) },
];

/** The columns that the rows' printed figures ask for. */
export function columnsFor(rows: readonly ComputedRow[], weights: WeightType): Column[] {
  const printed = rows[0]?.printed ?? {};
  if (printed.loss !== undefined) return losses;
  if (printed.kvPerToken !== undefined) return caches;
  if (printed.kvPerTokenPerLayer !== undefined) return heads;
  if (printed.kvNumbersPerToken !== undefined) return walk;
  return plain(weights);
}
