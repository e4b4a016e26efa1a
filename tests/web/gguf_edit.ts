// Makes other GGUF files out of a sound one, for tests: the shards of a split model, or the same model under other keys.
// It trusts its input; little-endian version 3.

interface Tensor {
  /** Its entry in the directory up to the offset. */
  entry: Uint8Array;
  data: Uint8Array;
}

interface Parts {
  nKeys: number;
  keys: Uint8Array;
  tensors: Tensor[];
}

const ALIGNMENT = 32;
const U16 = 2;
const I32 = 5;
const STRING = 8;
const ARRAY = 9;
const NUMBER_BYTES: Readonly<Record<number, number>> = {
  ...{ 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 },
};

class Cursor {
  at = 0;
  readonly #view: DataView;
  constructor(bytes: Uint8Array) {
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
  skipString(): void {
    const n = this.u64();
    this.at += n;
  }
  skipValue(type: number): void {
    if (type === STRING) this.skipString();
    else if (type === ARRAY) this.#skipArray();
    else this.at += NUMBER_BYTES[type] ?? 0;
  }
  #skipArray(): void {
    const item = this.u32();
    const n = this.u64();
    if (item !== STRING) this.at += n * (NUMBER_BYTES[item] ?? 0);
    else for (let i = 0; i < n; i++) this.skipString();
  }
}

function parse(file: Uint8Array): Parts {
  const cursor = new Cursor(file);
  cursor.at = 8;
  const nTensors = cursor.u64();
  const nKeys = cursor.u64();
  const keysStart = cursor.at;
  for (let i = 0; i < nKeys; i++) {
    cursor.skipString();
    cursor.skipValue(cursor.u32());
  }
  const keys = file.slice(keysStart, cursor.at);
  const found: { entry: Uint8Array; offset: number }[] = [];
  for (let i = 0; i < nTensors; i++) {
    const start = cursor.at;
    cursor.skipString();
    const nDims = cursor.u32();
    cursor.at += nDims * 8 + 4;
    const entry = file.slice(start, cursor.at);
    found.push({ entry, offset: cursor.u64() });
  }
  const data = Math.ceil(cursor.at / ALIGNMENT) * ALIGNMENT;
  const tensors = found.map(({ entry, offset }, i) => {
    const end = found[i + 1]?.offset;
    return {
      entry,
      data: file.slice(data + offset, end === undefined ? file.length : data + end),
    };
  });
  return { nKeys, keys, tensors };
}

function u64(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}

function key(name: string, type: number, value: Uint8Array): Uint8Array {
  const text = new TextEncoder().encode(name);
  const typeBytes = new Uint8Array(Uint32Array.of(type).buffer);
  return Buffer.concat([u64(text.length), text, typeBytes, value]);
}

function write({ nKeys, keys, tensors }: Parts): Uint8Array<ArrayBuffer> {
  const padded = (n: number) => Math.ceil(n / ALIGNMENT) * ALIGNMENT;
  const version = new Uint8Array(Uint32Array.of(3).buffer);
  const head = [Buffer.from('GGUF'), version, u64(tensors.length), u64(nKeys), keys];
  let offset = 0;
  for (const tensor of tensors) {
    head.push(tensor.entry, u64(offset));
    offset += padded(tensor.data.length);
  }
  const header = Buffer.concat(head);
  const parts = [header, ...tensors.map(({ data }) => data)];
  const whole = parts.flatMap((part) => [part, new Uint8Array(padded(part.length) - part.length)]);
  return new Uint8Array(Buffer.concat(whole));
}

/** The shards of a model as llama.cpp's gguf-split makes them: all keys in the first, tensors dealt in order. */
export function splitGguf(file: Uint8Array, nFiles: number): Uint8Array<ArrayBuffer>[] {
  const { nKeys, keys, tensors } = parse(file);
  return Array.from({ length: nFiles }, (_, i) => {
    const split = [
      key('split.no', U16, new Uint8Array(Uint16Array.of(i).buffer)),
      key('split.count', U16, new Uint8Array(Uint16Array.of(nFiles).buffer)),
      key('split.tensors.count', I32, new Uint8Array(Int32Array.of(tensors.length).buffer)),
    ];
    const share = (n: number) => Math.floor((n * tensors.length) / nFiles);
    return write({
      nKeys: split.length + (i === 0 ? nKeys : 0),
      keys: Buffer.concat(i === 0 ? [keys, ...split] : split),
      tensors: tensors.slice(share(i), share(i + 1)),
    });
  });
}

/** The same file with one key under another name of the same length: for the reader it is not there. */
export function hideKey(file: Uint8Array, name: string): Uint8Array<ArrayBuffer> {
  const copy = Buffer.from(file);
  const at = copy.indexOf(name);
  if (at < 0) throw new Error(`the file has no key ${name}`);
  copy.write('_', at + name.length - 1);
  return new Uint8Array(copy);
}
