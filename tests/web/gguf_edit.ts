// Makes other GGUF files out of a sound one, for tests: the shards of a split model, or the same model under other keys.
// It trusts its input.
import { readGguf, writeGguf } from '../../web/runtime/src/lab/gguf_file.js';

const U16 = 2;
const I32 = 5;

/** The shards of a model as llama.cpp's gguf-split makes them: all keys in the first, tensors dealt in order. */
export function splitGguf(file: Uint8Array, nFiles: number): Uint8Array<ArrayBuffer>[] {
  const { keys, tensors } = readGguf(file);
  const key = (name: string, type: number, value: Uint16Array | Int32Array) => {
    return { name, type, value: new Uint8Array(value.buffer) };
  };
  return Array.from({ length: nFiles }, (_, i) => {
    const split = [
      key('split.no', U16, Uint16Array.of(i)),
      key('split.count', U16, Uint16Array.of(nFiles)),
      key('split.tensors.count', I32, Int32Array.of(tensors.length)),
    ];
    const share = (n: number) => Math.floor((n * tensors.length) / nFiles);
    return writeGguf({
      keys: i === 0 ? [...keys, ...split] : split,
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
