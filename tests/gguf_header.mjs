// The front of a GGUF file, for scripts that write models: key-values and the table of tensors, little endian, version 3.

/** Value types of the format. */
export const kTypes = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 };
export const kAlignment = 32; // the format's default

class Bytes {
  #parts = [];
  length = 0;
  push(buffer) {
    this.#parts.push(buffer);
    this.length += buffer.length;
  }
  number(bytes, write) {
    const b = Buffer.alloc(bytes);
    write(b);
    this.push(b);
  }
  u32(value) {
    this.number(4, (b) => b.writeUInt32LE(value));
  }
  u64(value) {
    this.number(8, (b) => b.writeBigUInt64LE(BigInt(value)));
  }
  string(text) {
    const b = Buffer.from(text);
    this.u64(b.length);
    this.push(b);
  }
  value(type, value) {
    if (type === kTypes.string) this.string(value);
    else if (type === kTypes.f32) this.number(4, (b) => b.writeFloatLE(value));
    else if (type === kTypes.bool) this.push(Buffer.from([value ? 1 : 0]));
    else if (type === kTypes.array) {
      this.u32(value.type);
      this.u64(value.values.length);
      for (const v of value.values) this.value(value.type, v);
    } else if (type === kTypes.i32) this.number(4, (b) => b.writeInt32LE(value));
    else this.u32(value);
  }
  concat() {
    return Buffer.concat(this.#parts);
  }
}

export const padded = (bytes) => Math.ceil(bytes / kAlignment) * kAlignment;

/**
 * Everything before the tensors' data, padded. Data follows in the tensors' order, each padded to `kAlignment`.
 * @param {[string, number, unknown][]} entries key, value type, value; an array's value is `{type, values}`
 * @param {{name: string, dims: number[], type: number, bytes: number}[]} tensors dims: columns first
 */
export function ggufHeader(entries, tensors) {
  const out = new Bytes();
  out.u32(0x46554747); // 'GGUF'
  out.u32(3);
  out.u64(tensors.length);
  out.u64(entries.length);
  for (const [key, type, value] of entries) {
    out.string(key);
    out.u32(type);
    out.value(type, value);
  }
  let offset = 0;
  for (const { name, dims, type, bytes } of tensors) {
    out.string(name);
    out.u32(dims.length);
    for (const dim of dims) out.u64(dim);
    out.u32(type);
    out.u64(offset);
    offset += padded(bytes);
  }
  out.push(Buffer.alloc(padded(out.length) - out.length));
  return out.concat();
}

/** A byte-fallback vocabulary of `size` tokens, as the format's keys: N ASCII characters are N tokens. */
export function byteVocabulary(size) {
  const { u32, i32, f32, bool, string, array } = kTypes;
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
  return [
    ['tokenizer.ggml.model', string, 'llama'],
    ['tokenizer.ggml.add_space_prefix', bool, false],
    ['tokenizer.ggml.tokens', array, { type: string, values: tokens }],
    ['tokenizer.ggml.scores', array, { type: f32, values: tokens.map((_, i) => -i) }],
    ['tokenizer.ggml.token_type', array, { type: i32, values: types }],
    ['tokenizer.ggml.bos_token_id', u32, 1],
    ['tokenizer.ggml.eos_token_id', u32, 2],
    ['tokenizer.ggml.unknown_token_id', u32, 0],
  ];
}
