// The eight phases of an attention branch, as the second article cuts it, with the tensors that the loaded model has in memory in
// each, and the article's own beside them. No DOM.
import type { LayerInfo } from 'headlight-wasm';
import { type BlockTrace, layoutPreset, type TracedTensorName } from 'headlight-wasm/lab';
import { tensorRows } from '../bytes/tensors.js';

export interface PhaseRow {
  /** From 1; 0: the feed-forward, which is no part of the branch. */
  phase: number;
  name: string;
  shape: readonly number[];
  bytes: number;
  dtype: string;
  /** undefined: the time is another row's, or there is nothing to do. */
  ms: number | undefined;
  note: string;
  /** Name of the row in the article's table. */
  article?: string;
}

export const PHASES = [
  'feed-forward',
  '1. normalise',
  '2. project',
  '3. reshape',
  '4. cache',
  '5. score',
  '6. scale and mask',
  '7. softmax and blend',
  '8. concatenate and mix',
] as const;

const f32 = 4;

export interface PhaseInput {
  trace: BlockTrace;
  layer: LayerInfo;
  /** Rows that the trace computed, and keys that they see. */
  nRows: number;
  nKv: number;
  cacheBytes: { k: number; v: number };
}

type Maker = (
  phase: number,
  name: string,
  note: string,
  more?: Partial<PhaseRow> & { shape?: readonly number[] },
) => PhaseRow;

/** Makes rows: shape and bytes are the traced tensor's of that name unless given. */
function maker({ trace }: PhaseInput): Maker {
  return (phase, name, note, more = {}) => {
    const shape = more.shape ?? trace.tensors.find((one) => one.name === name)?.shape ?? [];
    const bytes = f32 * shape.reduce((a, b) => a * b, 1);
    return { ...{ phase, name, note, dtype: 'f32', ms: undefined, bytes }, ...more, shape };
  };
}

type Times = (...names: TracedTensorName[]) => number;

function timesOf({ trace }: PhaseInput): Times {
  return (...names) =>
    trace.tensors.reduce((sum, { name, ms }) => sum + (names.includes(name) ? ms : 0), 0);
}

const same = 'the same memory, read as heads';

function upToCache(input: PhaseInput, row: Maker, ms: Times): PhaseRow[] {
  const { layer, nRows: n, nKv, cacheBytes } = input;
  const { nQHeads: h, nKvHeads: g, dQk, dV } = layer;
  const stays = 'stays for every later token';
  const projecting = ms('norm', 'q', 'k', 'v');
  return [
    row(1, 'input', 'residual stream in; untouched until the end', { article: 'x' }),
    row(1, 'norm', 'its rescaled copy', { article: 'x_norm' }),
    row(2, 'q', 'output of W_Q, no heads yet; the time is that of phases 1 and 2', {
      ...{ ms: projecting, article: 'q flat' },
    }),
    row(2, 'k', 'output of W_K', { article: 'k flat' }),
    row(2, 'v', 'output of W_V', { article: 'v flat' }),
    row(3, 'q reshaped', same, { shape: [n, h, dQk], ms: 0, article: 'q reshaped' }),
    row(3, 'k reshaped', same, { shape: [n, g, dQk], ms: 0, article: 'k reshaped' }),
    row(3, 'v reshaped', same, { shape: [n, g, dV], ms: 0, article: 'v reshaped' }),
    row(4, 'q rotated', 'rotary positions; the time is that of the whole phase', {
      ms: ms('q rotated', 'k rotated'),
    }),
    row(4, 'K cache slice', stays, {
      ...{ shape: [nKv, g, dQk], bytes: cacheBytes.k, dtype: 'cache', article: 'K cache slice' },
    }),
    row(4, 'V cache slice', stays, {
      ...{ shape: [nKv, g, dV], bytes: cacheBytes.v, dtype: 'cache', article: 'V cache slice' },
    }),
  ];
}

function upToStream(input: PhaseInput, row: Maker, ms: Times): PhaseRow[] {
  const { layer, nRows: n, nKv, trace } = input;
  const scores = [layer.nQHeads, n, nKv];
  const heads = trace.tensors.find(({ name }) => name === 'head outputs')?.shape ?? [n, 0, 0];
  const flat = [n, (heads[1] ?? 0) * (heads[2] ?? 0)];
  return [
    row(5, 'scores', 'never whole in memory here: at most 256 keys at a time', {
      ...{ shape: scores, article: 'scores' },
    }),
    row(6, 'scaled and masked', 'in place; masked keys are skipped, not computed', {
      shape: scores,
    }),
    row(7, 'weights', 'never whole in memory: used and thrown away', {
      ...{ shape: scores, article: 'weights' },
    }),
    row(7, 'head outputs', 'what each head brings back; the time is that of phases 5 to 7', {
      ...{ ms: ms('head outputs'), article: 'head outputs' },
    }),
    row(8, 'concat', 'the same memory, read flat', { shape: flat, ms: 0, article: 'concat' }),
    row(8, 'attention out', 'after W_O: no heads any more', {
      ...{ ms: ms('attention out'), article: 'attn_out' },
    }),
    row(8, 'after attention', 'residual stream out of the branch', {
      ...{ ms: ms('after attention'), article: 'x′' },
    }),
  ];
}

export function phaseRows(input: PhaseInput): PhaseRow[] {
  const row = maker(input);
  const ms = timesOf(input);
  return [
    ...upToCache(input, row, ms),
    ...upToStream(input, row, ms),
    row(0, 'feed-forward norm', 'has never heard of heads'),
    row(0, 'gate', 'output of W_gate', { ms: ms('feed-forward norm', 'gate', 'up') }),
    row(0, 'up', 'output of W_up'),
    row(0, 'activated', 'silu(gate) · up', { ms: ms('activated') }),
    row(0, 'down', 'output of W_down', { ms: ms('down') }),
    row(0, 'output', 'residual stream out of the block', { ms: ms('output') }),
  ].filter(({ shape }) => shape.length > 0);
}

/** The article's table: 70B, seven tokens, bf16. By the row's name. */
export function articleRows(): Map<
  string,
  { shape: readonly number[]; bytes: number; printed: string }
> {
  const shape = layoutPreset('llama70b').rows[1]?.shape;
  if (shape === undefined) return new Map();
  return new Map(
    tensorRows(shape, 7).map(({ name, shape: sizes, bytes, printed = '' }) => [
      name,
      { shape: sizes, bytes, printed },
    ]),
  );
}
