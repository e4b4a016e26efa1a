// The key-values of a model file as the text layer wants them, read out of WASM when asked for.
import type { Loader } from '../../../../wasm/headlight.js';
import type { GgufMetadata } from '../text/metadata.js';
import { unwrap } from './unwrap.js';

export function loaderMetadata(loader: Loader): GgufMetadata {
  const scalars = unwrap(loader.metadata());
  return {
    get: (key) => (Object.hasOwn(scalars, key) ? scalars[key] : undefined),
    strings(key) {
      const packed = unwrap(loader.strings(key));
      if (packed === null) return undefined;
      const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
      const { bytes, offsets } = packed;
      return Array.from({ length: offsets.length - 1 }, (_, i) =>
        decoder.decode(bytes.subarray(offsets[i], offsets[i + 1])),
      );
    },
    numbers(key) {
      const numbers = unwrap(loader.numbers(key));
      return numbers === null || numbers instanceof Float64Array ? undefined : numbers;
    },
  };
}
