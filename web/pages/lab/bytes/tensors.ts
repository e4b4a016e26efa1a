// Every tensor of one layer's attention branch with its shape and bytes, for a layout and a number of tokens, beside what the
// second article prints for its own. No DOM.
import type { ModelShape } from 'headlight-wasm/lab';

export interface TensorRow {
  name: string;
  shape: readonly number[];
  bytes: number;
  note: string;
  /** As the article prints it, where the layout is the article's. */
  printed?: string;
}

/** bf16, as in the article. */
const elementBytes = 2;
export const articleTokens = 7;

/** 64 query heads on 8 KV heads of 128, d_model 8,192, seven tokens. */
export function isArticleBranch(shape: ModelShape, nTokens: number): boolean {
  const { dModel, nQHeads, nKvHeads, dQk, dV } = shape;
  return [dModel, nQHeads, nKvHeads, dQk, dV, nTokens].join() === '8192,64,8,128,128,7';
}

export function tensorRows(shape: ModelShape, nTokens: number): TensorRow[] {
  const { dModel: d, nQHeads: h, nKvHeads: g, dQk, dV } = shape;
  const n = nTokens;
  const [wide, narrow, small] = ['112 KB', '14 KB', '6 KB'];
  const rows: (readonly [name: string, shape: readonly number[], note: string, printed: string])[] =
    [
      ['x', [n, d], 'residual stream in, one vector a token', wide],
      ['x_norm', [n, d], 'rescaled copy, used inside the branch only', wide],
      ['q flat', [n, h * dQk], 'output of W_Q, no heads yet', wide],
      ['k flat', [n, g * dQk], 'output of W_K', narrow],
      ['v flat', [n, g * dV], 'output of W_V', narrow],
      ['q reshaped', [n, h, dQk], 'the same memory, read as heads', wide],
      ['k reshaped', [n, g, dQk], 'the same memory, read as heads', narrow],
      ['v reshaped', [n, g, dV], 'the same memory, read as heads', narrow],
      ['K cache slice', [n, g, dQk], 'stays for every later token', narrow],
      ['V cache slice', [n, g, dV], 'stays for every later token', narrow],
      ['scores', [h, n, n], 'one number a head, query and key', small],
      ['weights', [h, n, n], 'after scale, mask and softmax', small],
      ['head outputs', [n, h, dV], 'what each head brings back', wide],
      ['concat', [n, h * dV], 'the same memory, read flat', wide],
      ['attn_out', [n, d], 'after W_O: no heads any more', wide],
      ['x′', [n, d], 'residual stream out', wide],
    ];
  const isArticle = isArticleBranch(shape, n);
  return rows.map(([name, sizes, note, printed]) => ({
    name,
    shape: sizes,
    bytes: elementBytes * sizes.reduce((a, b) => a * b, 1),
    note,
    ...(isArticle ? { printed } : {}),
  }));
}

/** Places of head h (from 1) in `concat`: first and last. */
export function headPlaces(head: number, dV: number): readonly [number, number] {
  return [(head - 1) * dV, head * dV - 1];
}

/** Which KV head a query head reads, both from 1. */
export function kvHeadOf(head: number, { nQHeads, nKvHeads }: ModelShape): number {
  return Math.floor((head - 1) / (nQHeads / nKvHeads)) + 1;
}

/** Steps 2 to 6 of the second article's ten. */
const headSteps = ['reshape', 'RoPE', 'cache write', 'attention', 'W_O'] as const;

export function branchSentences(shape: ModelShape): string[] {
  const { nQHeads, nKvHeads, dV } = shape;
  const group = nQHeads / nKvHeads;
  const head = Math.min(7, nQHeads);
  const [first, last] = headPlaces(head, dV);
  const reads =
    group === 1
      ? 'Each query head reads a KV head of its own.'
      : `Query heads 1 to ${group} read KV head 1` +
        (nKvHeads > 1
          ? `, ${group + 1} to ${2 * group} read KV head 2, and so on.`
          : ', the only one.');
  return [
    reads,
    `Counted from 1, head ${head} owns places ${first} to ${last} of concat; ${nQHeads} × ${dV} = ${(nQHeads * dV).toLocaleString('en-GB')} places in all.`,
    'Heads exist between the reshape and W_O and nowhere else: they cost no weights and no copy. ' +
      `The second article counts five of a block’s ten steps: ${headSteps.join(', ')}.`,
  ];
}
