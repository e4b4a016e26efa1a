// A GGUF file taken apart and put together again: keys and tensors by name, values as the bytes that they are. For the lab's
// export, which changes a few of either; the engine's reader is C++ (src/gguf). Version 2 and 3, little endian.
import { BadModelError } from '../errors.js';
import { GGUF_TYPE, ggufKey, joined, stringBytes, u32Bytes, u64Bytes } from './gguf_keys.js';

/** Bytes of a value by its type; strings and arrays are none of these. */
const VALUE_BYTES: Readonly<Record<number, number>> = {
  ...{ 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 },
};
const DEFAULT_ALIGNMENT = 32;

export interface GgufKey {
  name: string;
  type: number;
  /** As in the file, after the type. */
  value: Uint8Array;
}

export interface GgufTensor {
  name: string;
  /** Row length first. */
  dims: number[];
  /** GGML's number of the type. */
  type: number;
  data: Uint8Array;
}

export interface GgufFile {
  keys: GgufKey[];
  tensors: GgufTensor[];
}

class Reader {
  at = 0;
  readonly bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u32(): number {
    this.at += 4;
    return this.#view.getUint32(this.at - 4, true);
  }

  u64(): number {
    this.at += 8;
    return Number(this.#view.getBigUint64(this.at - 8, true));
  }

  string(): string {
    const n = this.u64();
    this.at += n;
    return new TextDecoder().decode(this.bytes.subarray(this.at - n, this.at));
  }

  skip(type: number): void {
    const n = VALUE_BYTES[type];
    if (n !== undefined) {
      this.at += n;
    } else if (type === GGUF_TYPE.string) {
      const length = this.u64();
      this.at += length;
    } else if (type === GGUF_TYPE.array) {
      this.#skipArray();
    } else {
      throw new BadModelError(`The GGUF file has a key of the unknown type ${type}`);
    }
  }

  #skipArray(): void {
    const item = this.u32();
    const n = this.u64();
    const fixed = VALUE_BYTES[item];
    if (fixed !== undefined) this.at += n * fixed;
    else for (let i = 0; i < n; i++) this.skip(item);
  }
}

/** Throws BadModelError for what is no GGUF file. The data are views of `bytes`. */
export function readGguf(bytes: Uint8Array): GgufFile {
  try {
    return read(new Reader(bytes));
  } catch (cause) {
    if (cause instanceof BadModelError) throw cause;
    // A read past the end.
    throw new BadModelError('The GGUF file is cut off: give the whole file', {}, { cause });
  }
}

function read(reader: Reader): GgufFile {
  const magic = new TextDecoder('latin1').decode(reader.bytes.subarray(0, 4));
  reader.at = 4;
  const version = reader.u32();
  if (magic !== 'GGUF' || (version !== 2 && version !== 3))
    throw new BadModelError('The original is not a GGUF file of version 2 or 3');
  const nTensors = reader.u64();
  const nKeys = reader.u64();
  const keys = Array.from({ length: nKeys }, (): GgufKey => {
    const name = reader.string();
    const type = reader.u32();
    const start = reader.at;
    reader.skip(type);
    return { name, type, value: reader.bytes.subarray(start, reader.at) };
  });
  const entries = Array.from({ length: nTensors }, () => {
    const name = reader.string();
    const dims = Array.from({ length: reader.u32() }, () => reader.u64());
    return { name, dims, type: reader.u32(), offset: reader.u64() };
  });
  const alignment = numberOf(keys, 'general.alignment') ?? DEFAULT_ALIGNMENT;
  const start = Math.ceil(reader.at / alignment) * alignment;
  const ends = [...entries.map(({ offset }) => offset), reader.bytes.length - start];
  ends.sort((a, b) => a - b);
  const tensors = entries.map(({ offset, ...tensor }) => {
    const end = ends.find((at) => at > offset) ?? offset;
    return { ...tensor, data: reader.bytes.subarray(start + offset, start + end) };
  });
  return { keys, tensors };
}

/** A key of one unsigned number. */
export function numberOf(keys: readonly GgufKey[], name: string): number | undefined {
  const key = keys.find((one) => one.name === name);
  if (key?.type !== GGUF_TYPE.u32) return undefined;
  return new DataView(key.value.buffer, key.value.byteOffset).getUint32(0, true);
}

/** One number where all are equal, else an array of one a layer. */
export function perLayerKey(name: string, values: readonly number[]): GgufKey {
  const [first = 0] = values;
  const isOne = values.every((value) => value === first);
  return ggufKey(name, isOne ? first : Uint32Array.from(values));
}

/** In place of a key of the same name, or at the end. */
export function setKey(keys: GgufKey[], key: GgufKey): void {
  const at = keys.findIndex(({ name }) => name === key.name);
  if (at < 0) keys.push(key);
  else keys[at] = key;
}

export function writeGguf({ keys, tensors }: GgufFile): Uint8Array<ArrayBuffer> {
  const alignment = numberOf(keys, 'general.alignment') ?? DEFAULT_ALIGNMENT;
  const padded = (n: number) => Math.ceil(n / alignment) * alignment;
  const head: Uint8Array[] = [new TextEncoder().encode('GGUF'), u32Bytes(3)];
  head.push(u64Bytes(tensors.length), u64Bytes(keys.length));
  for (const { name, type, value } of keys) head.push(stringBytes(name), u32Bytes(type), value);
  let offset = 0;
  for (const { name, dims, type, data } of tensors) {
    head.push(stringBytes(name), u32Bytes(dims.length), ...dims.map(u64Bytes));
    head.push(u32Bytes(type), u64Bytes(offset));
    offset += padded(data.length);
  }
  const blocks = [joined(head), ...tensors.map(({ data }) => data)];
  return joined(
    blocks.flatMap((block) => [block, new Uint8Array(padded(block.length) - block.length)]),
  );
}
