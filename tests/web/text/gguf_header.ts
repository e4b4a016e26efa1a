// Reads the key-values of a GGUF file into a GgufMetadata, for tests only: the runtime reads files in
// WASM. No limits, no tensors, little-endian version 3 (and 2).

import type { GgufMetadata } from '../../../web/runtime/src/text/metadata.js';

type Scalar = string | number | bigint | boolean;
export type MetadataValue = Scalar | readonly string[] | Float32Array | Int32Array | Uint32Array;

const ARRAY = 9;
const STRING = 8;

export class MapMetadata implements GgufMetadata {
  private readonly values: ReadonlyMap<string, MetadataValue>;

  constructor(values: Iterable<readonly [string, MetadataValue]>) {
    this.values = new Map(values);
  }

  get(key: string): Scalar | undefined {
    const value = this.values.get(key);
    return typeof value === 'object' ? undefined : value;
  }

  strings(key: string): readonly string[] | undefined {
    const value = this.values.get(key);
    return Array.isArray(value) ? (value as readonly string[]) : undefined;
  }

  numbers(key: string): Float32Array | Int32Array | Uint32Array | undefined {
    const value = this.values.get(key);
    return ArrayBuffer.isView(value) ? value : undefined;
  }

  /** A copy with some values replaced; undefined removes a key. */
  with(changes: Record<string, MetadataValue | undefined>): MapMetadata {
    const values = new Map(this.values);
    for (const [key, value] of Object.entries(changes)) {
      if (value === undefined) values.delete(key);
      else values.set(key, value);
    }
    return new MapMetadata(values);
  }
}

export function readGgufHeader(file: Uint8Array): MapMetadata {
  return new HeaderReader(file).read();
}

class HeaderReader {
  private readonly view: DataView;
  private readonly bytes: Uint8Array;
  private offset = 0;
  // A token may be a lone byte order mark, which a decoder drops unless told not to.
  private readonly decoder = new TextDecoder('utf-8', { ignoreBOM: true });

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  read(): MapMetadata {
    if (this.decoder.decode(this.take(4)) !== 'GGUF') throw new Error('not a GGUF file');
    this.uint32(); // version
    this.uint64(); // tensors
    const nKeys = this.uint64();
    const values: [string, MetadataValue][] = [];
    for (let i = 0; i < nKeys; i++) {
      const key = this.string();
      const value = this.value(this.uint32());
      if (value !== undefined) values.push([key, value]);
    }
    return new MapMetadata(values);
  }

  private value(type: number): MetadataValue | undefined {
    return type === ARRAY ? this.array() : this.scalar(type);
  }

  private scalar(type: number): Scalar {
    const at = this.offset;
    switch (type) {
      case 0:
      case 7:
        this.offset += 1;
        break;
      case 1:
        this.offset += 1;
        break;
      case 2:
      case 3:
        this.offset += 2;
        break;
      case 4:
      case 5:
      case 6:
        this.offset += 4;
        break;
      case STRING:
        return this.string();
      default:
        this.offset += 8;
    }
    switch (type) {
      case 0:
        return this.view.getUint8(at);
      case 1:
        return this.view.getInt8(at);
      case 2:
        return this.view.getUint16(at, true);
      case 3:
        return this.view.getInt16(at, true);
      case 4:
        return this.view.getUint32(at, true);
      case 5:
        return this.view.getInt32(at, true);
      case 6:
        return this.view.getFloat32(at, true);
      case 7:
        return this.view.getUint8(at) !== 0;
      case 10:
        return this.view.getBigUint64(at, true);
      case 11:
        return this.view.getBigInt64(at, true);
      default:
        return this.view.getFloat64(at, true);
    }
  }

  private array(): MetadataValue | undefined {
    const type = this.uint32();
    const count = this.uint64();
    const items = Array.from({ length: count }, () => this.scalar(type));
    if (type === STRING) return items as string[];
    if (type === 4) return Uint32Array.from(items as number[]);
    if (type === 5) return Int32Array.from(items as number[]);
    return type === 6 ? Float32Array.from(items as number[]) : undefined;
  }

  private string(): string {
    return this.decoder.decode(this.take(this.uint64()));
  }

  private take(count: number): Uint8Array {
    const bytes = this.bytes.subarray(this.offset, this.offset + count);
    this.offset += count;
    return bytes;
  }

  private uint32(): number {
    this.offset += 4;
    return this.view.getUint32(this.offset - 4, true);
  }

  private uint64(): number {
    this.offset += 8;
    return Number(this.view.getBigUint64(this.offset - 8, true));
  }
}
