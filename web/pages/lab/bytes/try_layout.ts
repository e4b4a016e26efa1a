// Runs layouts in this tab: attention over random rows, each cache format, several layouts alternately, so that what the
// machine does meanwhile hits all of them. No DOM.
import type { AttendResult } from 'headlight-wasm';
import {
  CACHE_TYPES,
  type LabAttendOptions,
  type LayoutCacheType,
  type ModelShape,
  relativeRms,
  type Spread,
  spread,
} from 'headlight-wasm/lab';
import { normals } from '../hand/random.js';

export const nRounds = 5;
const wantedRows = 1024;
/** Numbers of K and V together that a try sends to the worker. */
const maxNumbers = 4e6;
export const promptTokens = 32;

export type HeadWidths = Pick<ModelShape, 'nQHeads' | 'nKvHeads' | 'dQk' | 'dV'>;

export interface TryRow {
  label: string;
  cache: LayoutCacheType;
  cacheBytes: number;
  /** Milliseconds of one query over all rows, and of `promptTokens` queries. */
  decode: Spread;
  prefill: Spread;
  /** Relative RMS of the outputs against the f32 cache. */
  error: number;
}

export interface TryResult {
  nKv: number;
  rows: TryRow[];
}

export interface TryOptions {
  layouts: readonly { label: string; widths: HeadWidths }[];
  attend(options: LabAttendOptions): Promise<AttendResult>;
  signal: AbortSignal;
  onRound(round: number): void;
}

/** Rows of the cache: as many as wanted, or as many as all layouts can be given. */
export function rowsFor(layouts: readonly { widths: HeadWidths }[]): number {
  const fitting = layouts.map(({ widths: { nKvHeads, dQk, dV } }) =>
    Math.floor(maxNumbers / (nKvHeads * (dQk + dV))),
  );
  return Math.max(promptTokens, Math.min(wantedRows, ...fitting));
}

interface Case {
  label: string;
  cache: LayoutCacheType;
  decodeOptions: LabAttendOptions;
  prefillOptions: LabAttendOptions;
  decodeMs: number[];
  prefillMs: number[];
  cacheBytes: number;
  out: Float32Array;
}

function cases({ layouts }: TryOptions, nKv: number): Case[] {
  return layouts.flatMap(({ label, widths }, index) => {
    const { nQHeads, nKvHeads, dQk, dV } = widths;
    const q = normals(promptTokens * nQHeads * dQk, 10 + index);
    const rows = {
      ...widths,
      k: normals(nKv * nKvHeads * dQk, 20 + index),
      v: normals(nKv * nKvHeads * dV, 30 + index),
    };
    return CACHE_TYPES.map((cache): Case => {
      const kvCache = { k: cache, v: cache };
      return {
        label,
        cache,
        decodeOptions: { ...rows, q: q.slice(-nQHeads * dQk), kvCache },
        prefillOptions: { ...rows, q, kvCache },
        decodeMs: [],
        prefillMs: [],
        cacheBytes: 0,
        out: new Float32Array(),
      };
    });
  });
}

/** Throws the signal's reason when it fires, and what attend() throws. */
export async function tryLayouts(options: TryOptions): Promise<TryResult> {
  const nKv = rowsFor(options.layouts);
  const all = cases(options, nKv);
  // Round 0 warms up: caches, and the engine's compiler; it does not count.
  for (let round = 0; round <= nRounds; round++) {
    if (round > 0) options.onRound(round);
    for (const each of all) {
      options.signal.throwIfAborted();
      const decode = await options.attend(each.decodeOptions);
      const prefill = await options.attend(each.prefillOptions);
      if (round > 0) {
        each.decodeMs.push(decode.milliseconds);
        each.prefillMs.push(prefill.milliseconds);
      }
      each.cacheBytes = decode.kvCacheBytes;
      each.out = prefill.out;
    }
  }
  const rows = all.map(({ label, cache, cacheBytes, decodeMs, prefillMs, out }): TryRow => {
    const exact = all.find((other) => other.label === label && other.cache === 'f32')?.out ?? out;
    return {
      label,
      cache,
      cacheBytes,
      decode: spread(decodeMs),
      prefill: spread(prefillMs),
      error: relativeRms(out, exact),
    };
  });
  return { nKv, rows };
}

/** Who is faster with one cache format, and whether the rounds overlap. */
export function winner(rows: readonly TryRow[], cache: LayoutCacheType): string {
  const [first, second] = rows.filter((row) => row.cache === cache);
  if (!first || !second) return '';
  const [fast, slow] =
    first.decode.median <= second.decode.median ? [first, second] : [second, first];
  const ratio = slow.decode.median / fast.decode.median;
  const overlap = fast.decode.high >= slow.decode.low;
  return (
    `${cache}: ${fast.label} is ${ratio.toFixed(2)} times as fast for one token` +
    (overlap ? ', but the rounds overlap: no safe winner.' : ', in every round.')
  );
}
