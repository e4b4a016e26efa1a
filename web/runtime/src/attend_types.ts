// One attention layer on given rows: every mask, bias and cache format that the kernels know. Part of types.ts.
import type { CapturedArray } from './capture_types.js';
import type { CacheType } from './types.js';

/**
 * See attend(). Key row r stands at position r, query row t at firstPosition + t; rotary and other positions have been
 * applied to q and k. A key is admitted to a query when every mask that is given admits it.
 */
export interface AttendOptions {
  nQHeads: number;
  /** Divides nQHeads; query head h reads KV head floor(h * nKvHeads / nQHeads). */
  nKvHeads: number;
  dQk: number;
  dV: number;
  /** [nTokens, nQHeads, dQk] */
  q: Float32Array;
  /** [nKv, nKvHeads, dQk] */
  k: Float32Array;
  /** [nKv, nKvHeads, dV] */
  v: Float32Array;
  /** Of the first query row. Default nKv - nTokens: the query rows are the last ones. */
  firstPosition?: number;
  /** Multiplies q.k. Default 1 / sqrt(dQk). */
  scale?: number;
  /** Then s = softcap * tanh(s / softcap); 0 (default): none. */
  softcap?: number;
  /** A query sees keys up to its own position. Default true. */
  causal?: boolean;
  /** Prefix-LM: queries below this position see every key below it, causal or not. Default 0. */
  prefix?: number;
  /** A query sees the last `window` keys (q - k < window); 0 (default): all. */
  window?: number;
  /** With a window: keys below this position stay admitted behind it. Default 0. */
  windowSinks?: number;
  /**
   * [nQHeads, nTokens, nKv], [nTokens, nKv] for all heads or [nKv] for all heads and rows (padding); its length tells which.
   * Float32Array: added to the scores after the softcap, -Infinity excludes a key. Uint8Array: 1 admits a key, 0 excludes it.
   */
  mask?: Float32Array | Uint8Array;
  /** [nQHeads] ALiBi: s -= slope * |query position - key position|. */
  alibiSlopes?: Float32Array;
  /** [nQHeads] Learned sinks: a logit in each row's softmax that has no value, so that the weights sum to less than 1. */
  sinkLogits?: Float32Array;
  /** How keys and values are kept. Default f32 for both. */
  kvCache?: { k?: CacheType; v?: CacheType };
  /** 'decode' takes the query rows one after the other. Default 'auto': decode for one row, tiled for more. */
  kernel?: 'auto' | 'reference' | 'tiled' | 'decode';
  /** Also give the scores or weights of all heads and rows, as CaptureOptions.what says. Default: not. */
  capture?: 'weights' | 'scores' | 'softcapped' | 'scaled';
  module?: 'auto' | 'simd' | 'relaxed';
  threads?: number;
}
export interface AttendResult {
  /** [nTokens, nQHeads, dV]; a row that admits no key is zeros. */
  out: Float32Array;
  kvCacheBytes: number;
  /** Of the kernel alone. */
  milliseconds: number;
  kernel: string;
  /** [nQHeads, nTokens, nKv], where `capture` asks for it. */
  captured?: CapturedArray;
  /** [nQHeads, nTokens] weight of the learned sinks, where `capture` asks for anything. */
  sinkMass?: CapturedArray;
}
