// A block, tensor by tensor: names, shapes and phases for what the module's trace counts.
import type { LayerInfo } from '../types.js';
import type { BlockTraceWire } from './wire.js';

/** In the order of LayerTensor (src/model/layer_observer.h). */
const NAMES = [
  'input',
  'norm',
  'q',
  'k',
  'v',
  'q rotated',
  'k rotated',
  'head outputs',
  'attention out',
  'after attention',
  'feed-forward norm',
  'gate',
  'up',
  'activated',
  'down',
  'output',
] as const;
export type TracedTensorName = (typeof NAMES)[number];

export interface TracedTensor {
  name: TracedTensorName;
  /** Rows first; queries, keys, values and outputs of heads as [rows, heads, width]. */
  shape: number[];
  bytes: number;
  /** Milliseconds since the tensor before was there; 0 where one product makes several at once. */
  ms: number;
  values: Float32Array;
}

export interface BlockTrace {
  /** All are f32 in memory. */
  tensors: TracedTensor[];
  /** Passes that the times are means of. */
  nPasses: number;
  nTokens: number;
}

function shapeOf(name: TracedTensorName, rows: number, cols: number, layer: LayerInfo): number[] {
  if (name === 'q rotated') return [rows, cols / layer.dQk, layer.dQk];
  if (name === 'k rotated') return [rows, cols / layer.dQk, layer.dQk];
  if (name === 'head outputs') return [rows, cols / layer.dV, layer.dV];
  return [rows, cols];
}

export function readTrace(wire: BlockTraceWire, layer: LayerInfo, nTokens: number): BlockTrace {
  let at = 0;
  const tensors = wire.tensors.map(({ what, rows, cols, ms }) => {
    const name = NAMES[what] ?? 'output';
    const values = wire.values.slice(at, at + rows * cols);
    at += rows * cols;
    return { name, shape: shapeOf(name, rows, cols, layer), bytes: values.byteLength, ms, values };
  });
  return { tensors, nPasses: wire.nPasses, nTokens };
}
