// A model of any layout with random weights, as a GGUF file in memory: for measuring a layout's speed and cache. It has no
// tokenizer; token ids go in and come out.
import { badOption } from '../options.js';
import { type GgufTensor, writeGguf } from './gguf_file.js';
import { ggufKeys } from './gguf_keys.js';
import { checkShape, type ModelShape } from './shape.js';

export interface RandomModelOptions {
  /** 'q8_0' (default) where rows divide into blocks of 32, else f16. */
  weights?: 'q8_0' | 'f16';
  nCtx?: number;
  seed?: number;
}

const F32 = 0;
const F16 = 1;
const Q8_0 = 8;
const BLOCK = 32;
const MAX_BYTES = 1.5e9;

export function randomModelBytes(shape: ModelShape): number {
  const { nLayers, dModel: d, nQHeads: h, nKvHeads: g, dQk, dV, dFf, vocabSize } = shape;
  const perLayer = d * (h * dQk + g * dQk + g * dV) + h * dV * d + 3 * d * dFf;
  return ((nLayers * perLayer + vocabSize * d) / BLOCK) * 34;
}

/** Mulberry32 (public domain), 32 bits a call. */
function bits(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
}

/** 1 / sqrt(cols) spread, as trained matrices begin: codes are uniform, their scale gives the size. */
function matrix(
  name: string,
  rows: number,
  cols: number,
  isF16: boolean,
  next: () => number,
): GgufTensor {
  const dims = [cols, rows];
  // A uniform code of -127..127 has a standard deviation of 73.3.
  const size = 1 / Math.sqrt(cols);
  if (isF16 || cols % BLOCK !== 0) {
    // Random mantissas and signs at one exponent: between size / 2 and 2 size in magnitude.
    const exponent = Math.max(1, Math.min(30, Math.round(Math.log2(size)) + 15));
    const halves = new Uint16Array(rows * cols);
    for (let i = 0; i < halves.length; i++) halves[i] = (next() & 0x83ff) | (exponent << 10);
    return { name, dims, type: F16, data: new Uint8Array(halves.buffer) };
  }
  const nBlocks = (rows * cols) / BLOCK;
  const data = new Uint8Array(nBlocks * 34);
  const view = new DataView(data.buffer);
  const scale = halfOf(size / 73.3);
  for (let block = 0; block < nBlocks; block++) {
    view.setUint16(block * 34, scale, true);
    for (let i = 2; i < 34; i += 4) view.setUint32(block * 34 + i, next(), true);
  }
  return { name, dims, type: Q8_0, data };
}

/** The binary16 number at or below a positive one in its normal range. */
function halfOf(value: number): number {
  const exponent = Math.max(-14, Math.floor(Math.log2(value)));
  return ((exponent + 15) << 10) | Math.floor((value / 2 ** exponent - 1) * 1024);
}

/** Throws BadOptionError for a layout that cannot be, or whose file would be over 1.5 GB. */
export function randomModel(
  shape: ModelShape,
  { weights = 'q8_0', nCtx = 4096, seed = 1 }: RandomModelOptions = {},
): Uint8Array<ArrayBuffer> {
  checkShape(shape);
  if (randomModelBytes(shape) > MAX_BYTES)
    throw badOption(
      'randomModel',
      'shape',
      `${Math.round(randomModelBytes(shape) / 1e6)} MB`,
      'a model of at most 1,500 MB',
    );
  const { nLayers, dModel: d, nQHeads: h, nKvHeads: g, dQk, dV, dFf, vocabSize } = shape;
  const next = bits(seed);
  const isF16 = weights === 'f16';
  const add = (name: string, rows: number, cols: number) => matrix(name, rows, cols, isF16, next);
  const ones = (name: string): GgufTensor => ({
    ...{ name, dims: [d], type: F32 },
    data: new Uint8Array(new Float32Array(d).fill(1).buffer),
  });
  const keys = ggufKeys({
    'general.architecture': 'llama',
    'general.name': `random ${h}/${g} heads, ${dQk}/${dV} wide`,
    'llama.block_count': nLayers,
    'llama.context_length': nCtx,
    'llama.embedding_length': d,
    'llama.feed_forward_length': dFf,
    'llama.attention.head_count': h,
    'llama.attention.head_count_kv': g,
    'llama.attention.key_length': dQk,
    'llama.attention.value_length': dV,
    'llama.rope.dimension_count': dQk - (dQk % 2),
    'llama.vocab_size': vocabSize,
    'llama.attention.layer_norm_rms_epsilon': { f32: 1e-5 },
  });
  const tensors = [add('token_embd.weight', vocabSize, d), ones('output_norm.weight')];
  for (let layer = 0; layer < nLayers; layer++) {
    const name = (what: string) => `blk.${layer}.${what}.weight`;
    tensors.push(
      ones(name('attn_norm')),
      add(name('attn_q'), h * dQk, d),
      add(name('attn_k'), g * dQk, d),
      add(name('attn_v'), g * dV, d),
      add(name('attn_output'), d, h * dV),
      ones(name('ffn_norm')),
      add(name('ffn_gate'), dFf, d),
      add(name('ffn_up'), dFf, d),
      add(name('ffn_down'), d, dFf),
    );
  }
  return writeGguf({ keys, tensors });
}
