// Key-values of a GGUF file, made of JavaScript values.
import type { GgufKey } from './gguf_file.js';

/** A plain number is a count and becomes u32. */
export type GgufValue =
  | number
  | { f32: number }
  | boolean
  | string
  | readonly string[]
  | Uint32Array
  | Int32Array
  | Float32Array;

/** The format's numbers of the types that are written here. */
export const GGUF_TYPE = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const;

/** The parts in one piece. */
export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView) =>
  new Uint8Array(buffer, byteOffset, byteLength);
export const u32Bytes = (value: number) => bytesOf(Uint32Array.of(value));
export const u64Bytes = (value: number) => bytesOf(BigUint64Array.of(BigInt(value)));

/** Its length, then its UTF-8 bytes. */
export function stringBytes(text: string): Uint8Array {
  const bytes = new TextEncoder().encode(text);
  return joined([u64Bytes(bytes.length), bytes]);
}

export function ggufKey(name: string, value: GgufValue): GgufKey {
  if (typeof value === 'string') return { name, type: GGUF_TYPE.string, value: stringBytes(value) };
  if (typeof value === 'boolean')
    return { name, type: GGUF_TYPE.bool, value: Uint8Array.of(value ? 1 : 0) };
  if (typeof value === 'number') return { name, type: GGUF_TYPE.u32, value: u32Bytes(value) };
  if ('f32' in value)
    return { name, type: GGUF_TYPE.f32, value: bytesOf(Float32Array.of(value.f32)) };
  const items = ArrayBuffer.isView(value) ? bytesOf(value) : joined(value.map(stringBytes));
  const head = joined([u32Bytes(itemType(value)), u64Bytes(value.length)]);
  return { name, type: GGUF_TYPE.array, value: joined([head, items]) };
}

function itemType(value: readonly string[] | Uint32Array | Int32Array | Float32Array): number {
  if (value instanceof Uint32Array) return GGUF_TYPE.u32;
  if (value instanceof Int32Array) return GGUF_TYPE.i32;
  return value instanceof Float32Array ? GGUF_TYPE.f32 : GGUF_TYPE.string;
}

export function ggufKeys(values: Readonly<Record<string, GgufValue>>): GgufKey[] {
  return Object.entries(values).map(([name, value]) => ggufKey(name, value));
}
