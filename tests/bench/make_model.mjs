// Writes a GGUF file of a given shape with random weights and a byte-fallback vocabulary (N ASCII characters are N tokens),
// for speed and memory. Blocks are drawn directly in their file format, so a gigabyte takes seconds. The text is noise.
//   node tests/bench/make_model.mjs OUT SHAPE TYPE      TYPE: f32 f16 q8_0 q4_0 q4_k q6_k
// q4_k and q6_k have blocks of 256 columns; a matrix whose rows do not divide into those becomes q8_0.
import { closeSync, openSync, renameSync, writeSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { byteVocabulary, ggufHeader, kTypes, padded } from '../gguf_header.mjs';
import { shapes } from './shapes.mjs';

/** Tensor types: number in the file, elements and bytes a block, and how a block of random bytes becomes a valid one. */
export const tensorTypes = {
  f32: { id: 0, elements: 1, bytes: 4, fill: fillF32 },
  f16: { id: 1, elements: 1, bytes: 2, fill: fillF16 },
  q4_0: {
    id: 2,
    elements: 32,
    bytes: 18,
    fill: (view, sd) => fillScales(view, 18, sd / kSdOfNibbles),
  },
  q8_0: {
    id: 8,
    elements: 32,
    bytes: 34,
    fill: (view, sd) => fillScales(view, 34, sd / kSdOfBytes),
  },
  q4_k: { id: 12, elements: 256, bytes: 144, fill: fillQ4K },
  q6_k: { id: 14, elements: 256, bytes: 210, fill: fillQ6K },
};
const kSdOfNibbles = 4.61; // of the codes -8..7, all equally likely
const kSdOfSixBits = 18.5; // of the codes -32..31
const kSdOfBytes = 73.9; // of the codes -128..127

/** xorshift32 over 32-bit words: enough for weights whose values do not matter, and fast. */
function fillRandom(words, seed) {
  let x = seed | 1;
  for (let i = 0; i < words.length; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    words[i] = x;
  }
  return x;
}

/** Round-toward-zero f16 of a positive normal value. */
function halfBits(value) {
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0];
  return ((bits - 0x38000000) >>> 13) & 0x7fff;
}

function fillScales(view, blockBytes, scale) {
  const half = halfBits(scale);
  for (let at = 0; at < view.byteLength; at += blockBytes) view.setUint16(at, half, true);
}

/** All factors and minima 32: weights scale * 32 * (code - 7.5), codes 0..15. */
function fillQ4K(view, sd) {
  const scale = sd / kSdOfNibbles / 32;
  for (let at = 0; at < view.byteLength; at += 144) {
    view.setUint16(at, halfBits(scale), true);
    view.setUint16(at + 2, halfBits(scale * 7.5), true);
    // Low six bits of the first four, upper two of the last four (2 << 6), lower nibbles of those (0).
    for (let i = 0; i < 12; i++) view.setUint8(at + 4 + i, i < 8 ? 32 | (2 << 6) : 0);
  }
}

/** All factors 64: weights scale * 64 * code, codes -32..31. */
function fillQ6K(view, sd) {
  for (let at = 0; at < view.byteLength; at += 210) {
    for (let i = 0; i < 16; i++) view.setInt8(at + 192 + i, 64);
    view.setUint16(at + 208, halfBits(sd / kSdOfSixBits / 64), true);
  }
}

function fillF16(view, sd) {
  // Random sign and mantissa under a fixed exponent: magnitudes within a factor of two of sd.
  const exponent = halfBits(sd) & 0x7c00;
  for (let at = 0; at < view.byteLength; at += 2) {
    view.setUint16(at, (view.getUint16(at, true) & 0x83ff) | exponent, true);
  }
}

function fillF32(view, sd) {
  for (let at = 0; at < view.byteLength; at += 4) {
    view.setFloat32(at, (view.getInt32(at, true) / 2 ** 31) * sd * 1.73, true);
  }
}

function metadata(shape) {
  const { u32, f32, string } = kTypes;
  return [
    ['general.architecture', string, 'llama'],
    ['general.name', string, 'random weights'],
    ['llama.block_count', u32, shape.layers],
    ['llama.context_length', u32, shape.ctx],
    ['llama.embedding_length', u32, shape.d],
    ['llama.feed_forward_length', u32, shape.ffn],
    ['llama.attention.head_count', u32, shape.heads],
    ['llama.attention.head_count_kv', u32, shape.kv],
    ['llama.attention.key_length', u32, shape.dqk],
    ['llama.attention.value_length', u32, shape.dv],
    ['llama.attention.layer_norm_rms_epsilon', f32, 1e-5],
    ['llama.rope.dimension_count', u32, shape.dqk],
    ['llama.rope.freq_base', f32, 10000],
    ['llama.vocab_size', u32, shape.vocab],
    ...byteVocabulary(shape.vocab),
  ];
}

/** [name, columns, rows, type, standard deviation]; no deviation: all ones. */
function tensorList(shape, type) {
  const { d, ffn } = shape;
  const matrix = (name, cols, rows) => ({
    name,
    cols,
    rows,
    type: cols % tensorTypes[type].elements === 0 ? type : 'q8_0',
    sd: 1 / Math.sqrt(cols),
  });
  const norm = (name) => ({ name, cols: d, rows: 1, type: 'f32' });
  const list = [matrix('token_embd.weight', d, shape.vocab), norm('output_norm.weight')];
  for (let i = 0; i < shape.layers; i++) {
    const name = (part) => `blk.${i}.${part}.weight`;
    list.push(
      norm(name('attn_norm')),
      matrix(name('attn_q'), d, shape.heads * shape.dqk),
      matrix(name('attn_k'), d, shape.kv * shape.dqk),
      matrix(name('attn_v'), d, shape.kv * shape.dv),
      matrix(name('attn_output'), shape.heads * shape.dv, d),
      norm(name('ffn_norm')),
      matrix(name('ffn_gate'), d, ffn),
      matrix(name('ffn_up'), d, ffn),
      matrix(name('ffn_down'), ffn, d),
    );
  }
  return list;
}

function tensorData({ cols, rows, type, sd }, seed) {
  const { elements, bytes, fill } = tensorTypes[type];
  const size = (cols * rows * bytes) / elements;
  if (sd === undefined) return { data: Buffer.from(new Float32Array(cols).fill(1).buffer), seed };
  const words = new Uint32Array(Math.ceil(size / 4));
  const next = fillRandom(words, seed);
  fill(new DataView(words.buffer, 0, size), sd);
  return { data: Buffer.from(words.buffer, 0, size), seed: next };
}

/** @param {string} path @param {import('./shapes.mjs').Shape} shape @param {keyof typeof tensorTypes} type */
export function makeModel(path, shape, type) {
  if (!(type in tensorTypes))
    throw new Error(`type must be one of ${Object.keys(tensorTypes)}, got ${type}`);
  const tensors = tensorList(shape, type);
  const header = ggufHeader(
    metadata(shape),
    tensors.map(({ name, cols, rows, type: t }) => ({
      name,
      dims: rows === 1 ? [cols] : [cols, rows],
      type: tensorTypes[t].id,
      bytes: (cols * rows * tensorTypes[t].bytes) / tensorTypes[t].elements,
    })),
  );
  const file = openSync(`${path}.part`, 'w');
  writeSync(file, header);
  let seed = 1;
  for (const tensor of tensors) {
    const made = tensorData(tensor, seed);
    seed = made.seed;
    writeSync(file, made.data);
    writeSync(file, Buffer.alloc(padded(made.data.length) - made.data.length));
  }
  closeSync(file);
  renameSync(`${path}.part`, path); // a killed run leaves no half model behind
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [out, shape, type] = process.argv.slice(2);
  if (!out || !shapes[shape] || !tensorTypes[type]) {
    console.error(
      `usage: make_model.mjs OUT ${Object.keys(shapes).join('|')} ${Object.keys(tensorTypes).join('|')}`,
    );
    process.exit(2);
  }
  makeModel(out, shapes[shape], type);
}
