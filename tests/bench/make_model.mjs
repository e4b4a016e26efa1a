// Writes a GGUF file of a given shape with random weights and a byte-fallback vocabulary (N ASCII characters are N tokens),
// for speed and memory. Blocks are drawn directly in their file format, so a gigabyte takes seconds. The text is noise.
//   node tests/bench/make_model.mjs OUT SHAPE TYPE      TYPE: f32 f16 q8_0 q4_0
import { closeSync, openSync, renameSync, writeSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { shapes } from './shapes.mjs';

const kU32 = 4;
const kI32 = 5;
const kF32 = 6;
const kBool = 7;
const kString = 8;
const kArray = 9;
const kAlignment = 32; // the format's default

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
};
const kSdOfNibbles = 4.61; // of the codes -8..7, all equally likely
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

class Bytes {
  #parts = [];
  length = 0;
  #push(buffer) {
    this.#parts.push(buffer);
    this.length += buffer.length;
  }
  u32(value) {
    const b = Buffer.alloc(4);
    b.writeUInt32LE(value);
    this.#push(b);
  }
  u64(value) {
    const b = Buffer.alloc(8);
    b.writeBigUInt64LE(BigInt(value));
    this.#push(b);
  }
  f32(value) {
    const b = Buffer.alloc(4);
    b.writeFloatLE(value);
    this.#push(b);
  }
  string(text) {
    const b = Buffer.from(text);
    this.u64(b.length);
    this.#push(b);
  }
  bool(value) {
    this.#push(Buffer.from([value ? 1 : 0]));
  }
  append(other) {
    this.#push(other.concat());
  }
  pad() {
    this.#push(Buffer.alloc((kAlignment - (this.length % kAlignment)) % kAlignment));
  }
  concat() {
    return Buffer.concat(this.#parts);
  }
}

function vocabulary(size) {
  const tokens = ['<unk>', '<s>', '</s>'];
  const types = [2, 3, 3];
  for (let i = 0; i < 256; i++) {
    tokens.push(`<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`);
    types.push(6);
  }
  // Fillers that no plain text contains.
  while (tokens.length < size) {
    tokens.push(`\u{E000}${tokens.length.toString(36)}\u{E001}`);
    types.push(1);
  }
  return { tokens, types };
}

function writeMetadata(out, shape) {
  const { tokens, types } = vocabulary(shape.vocab);
  const entries = [
    ['general.architecture', kString, 'llama'],
    ['general.name', kString, 'random weights'],
    ['llama.block_count', kU32, shape.layers],
    ['llama.context_length', kU32, shape.ctx],
    ['llama.embedding_length', kU32, shape.d],
    ['llama.feed_forward_length', kU32, shape.ffn],
    ['llama.attention.head_count', kU32, shape.heads],
    ['llama.attention.head_count_kv', kU32, shape.kv],
    ['llama.attention.key_length', kU32, shape.dqk],
    ['llama.attention.value_length', kU32, shape.dv],
    ['llama.attention.layer_norm_rms_epsilon', kF32, 1e-5],
    ['llama.rope.dimension_count', kU32, shape.dqk],
    ['llama.rope.freq_base', kF32, 10000],
    ['llama.vocab_size', kU32, shape.vocab],
    ['tokenizer.ggml.model', kString, 'llama'],
    ['tokenizer.ggml.add_space_prefix', kBool, false],
    ['tokenizer.ggml.tokens', kArray, { type: kString, values: tokens }],
    ['tokenizer.ggml.scores', kArray, { type: kF32, values: tokens.map((_, i) => -i) }],
    ['tokenizer.ggml.token_type', kArray, { type: kI32, values: types }],
    ['tokenizer.ggml.bos_token_id', kU32, 1],
    ['tokenizer.ggml.eos_token_id', kU32, 2],
    ['tokenizer.ggml.unknown_token_id', kU32, 0],
  ];
  for (const [key, type, value] of entries) {
    out.string(key);
    out.u32(type);
    writeValue(out, type, value);
  }
  return entries.length;
}

function writeValue(out, type, value) {
  if (type === kString) out.string(value);
  else if (type === kF32) out.f32(value);
  else if (type === kBool) out.bool(value);
  else if (type === kArray) {
    out.u32(value.type);
    out.u64(value.values.length);
    for (const v of value.values) writeValue(out, value.type, v);
  } else out.u32(value);
}

/** [name, columns, rows, type, standard deviation]; no deviation: all ones. */
function tensorList(shape, type) {
  const { d, ffn } = shape;
  const matrix = (name, cols, rows) => ({ name, cols, rows, type, sd: 1 / Math.sqrt(cols) });
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
  const metadata = new Bytes();
  const nEntries = writeMetadata(metadata, shape);
  const header = new Bytes();
  header.u32(0x46554747); // 'GGUF'
  header.u32(3);
  header.u64(tensors.length);
  header.u64(nEntries);
  header.append(metadata);
  let offset = 0;
  for (const { name, cols, rows, type: t } of tensors) {
    header.string(name);
    header.u32(rows === 1 ? 1 : 2);
    header.u64(cols);
    if (rows > 1) header.u64(rows);
    header.u32(tensorTypes[t].id);
    header.u64(offset);
    offset +=
      Math.ceil((cols * rows * tensorTypes[t].bytes) / tensorTypes[t].elements / kAlignment) *
      kAlignment;
  }
  header.pad();
  const file = openSync(`${path}.part`, 'w');
  writeSync(file, header.concat());
  let seed = 1;
  for (const tensor of tensors) {
    const made = tensorData(tensor, seed);
    seed = made.seed;
    writeSync(file, made.data);
    writeSync(file, Buffer.alloc((kAlignment - (made.data.length % kAlignment)) % kAlignment));
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
