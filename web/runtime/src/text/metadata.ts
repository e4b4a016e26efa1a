// What the text layer asks of a model file: GGUF key-values, and nothing else. The engine implements it
// over the WASM reader; tests implement it over a small header reader. It does not parse files.

export interface GgufMetadata {
  /** A scalar, or undefined when the key is absent or holds an array. */
  get(key: string): string | number | bigint | boolean | undefined;
  /** An array of strings, or undefined when the key is absent or holds something else. */
  strings(key: string): readonly string[] | undefined;
  /** A numeric array of 4-byte elements, or undefined when absent or of another type. */
  numbers(key: string): Float32Array | Int32Array | Uint32Array | undefined;
}
