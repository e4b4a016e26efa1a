// Writes a GGUF file (version 3, little-endian) of float32 tensors: for models that the lab makes by itself. Not for copies of
// real files.

/** A plain number is a count and becomes u32. */
export type GgufValue =
  | number
  | { f32: number }
  | boolean
  | string
  | readonly string[]
  | Float32Array
  | Int32Array;

export interface GgufTensor {
  name: string;
  /** Rows of the matrix, or 0 for a vector. */
  nRows: number;
  /** [nRows, nCols] or [nCols]. */
  values: Float32Array;
}

const ALIGNMENT = 32;
const TYPE = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const;

class Sink {
  readonly #parts: Uint8Array[] = [];
  length = 0;

  bytes(part: Uint8Array): void {
    this.#parts.push(part);
    this.length += part.length;
  }
  #number(n: number, set: (view: DataView) => void): void {
    const part = new Uint8Array(n);
    set(new DataView(part.buffer));
    this.bytes(part);
  }
  u32(value: number): void {
    this.#number(4, (view) => view.setUint32(0, value, true));
  }
  u64(value: number): void {
    this.#number(8, (view) => view.setBigUint64(0, BigInt(value), true));
  }
  f32(value: number): void {
    this.#number(4, (view) => view.setFloat32(0, value, true));
  }
  text(value: string): void {
    const bytes = new TextEncoder().encode(value);
    this.u64(bytes.length);
    this.bytes(bytes);
  }
  pad(): void {
    this.bytes(new Uint8Array((ALIGNMENT - (this.length % ALIGNMENT)) % ALIGNMENT));
  }
  joined(): Uint8Array {
    const all = new Uint8Array(this.length);
    let at = 0;
    for (const part of this.#parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }
}

function littleEndian(values: Float32Array | Int32Array): Uint8Array {
  const sink = new Uint8Array(values.length * 4);
  const view = new DataView(sink.buffer);
  values.forEach((value, i) => {
    if (values instanceof Float32Array) view.setFloat32(4 * i, value, true);
    else view.setInt32(4 * i, value, true);
  });
  return sink;
}

function writeValue(sink: Sink, value: GgufValue): void {
  if (typeof value === 'string') {
    sink.u32(TYPE.string);
    sink.text(value);
  } else if (typeof value === 'boolean') {
    sink.u32(TYPE.bool);
    sink.bytes(Uint8Array.of(value ? 1 : 0));
  } else if (typeof value === 'number') {
    sink.u32(TYPE.u32);
    sink.u32(value);
  } else if ('f32' in value) {
    sink.u32(TYPE.f32);
    sink.f32(value.f32);
  } else {
    sink.u32(TYPE.array);
    const isNumbers = value instanceof Float32Array || value instanceof Int32Array;
    sink.u32(value instanceof Float32Array ? TYPE.f32 : isNumbers ? TYPE.i32 : TYPE.string);
    sink.u64(value.length);
    if (isNumbers) sink.bytes(littleEndian(value));
    else for (const text of value) sink.text(text);
  }
}

export function ggufFile(
  metadata: Readonly<Record<string, GgufValue>>,
  tensors: readonly GgufTensor[],
): Uint8Array {
  const sink = new Sink();
  sink.bytes(new TextEncoder().encode('GGUF'));
  sink.u32(3);
  sink.u64(tensors.length);
  sink.u64(Object.keys(metadata).length);
  for (const [key, value] of Object.entries(metadata)) {
    sink.text(key);
    writeValue(sink, value);
  }
  let offset = 0;
  for (const { name, nRows, values } of tensors) {
    sink.text(name);
    const dims = nRows === 0 ? [values.length] : [values.length / nRows, nRows];
    sink.u32(dims.length);
    for (const dim of dims) sink.u64(dim);
    sink.u32(0); // F32
    sink.u64(offset);
    offset += Math.ceil((values.length * 4) / ALIGNMENT) * ALIGNMENT;
  }
  for (const { values } of tensors) {
    sink.pad();
    sink.bytes(littleEndian(values));
  }
  sink.pad();
  return sink.joined();
}
