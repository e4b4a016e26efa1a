// What a layout costs: parameters, file bytes, cache bytes, operations and bytes moved per token, the rate that a measured
// machine allows, and how many conversations fit a memory. MB is 1e6 bytes, MiB 1024-based.
import { badOption, integer, oneOf } from '../options.js';
import type { SpeedLimits } from '../types.js';
import { type ModelShape, type WeightItem, weightItems } from './shape.js';

/** Bytes an element. The 8- and 4-bit types hold an f16 scale for every 32 elements. */
export const WEIGHT_BYTES = { f32: 4, f16: 2, bf16: 2, q8_0: 34 / 32, q4_0: 18 / 32 } as const;
export type WeightType = keyof typeof WEIGHT_BYTES;

export const CACHE_TYPES = ['f32', 'f16', 'int8'] as const;
export type LayoutCacheType = (typeof CACHE_TYPES)[number];

/** An int8 row has one f16 scale. */
const SCALE_BYTES = 2;
/** The engine begins every row at a whole vector. */
const ROW_ALIGNMENT = 16;

export interface CacheRowBytes {
  /** The numbers themselves. */
  payload: number;
  scales: number;
  /** What the engine allocates for the row, scale included. */
  allocated: number;
}

/** One key or value row of one KV head. */
export function cacheRowBytes(width: number, type: LayoutCacheType): CacheRowBytes {
  const element = { f32: 4, f16: 2, int8: 1 }[type];
  const payload = width * element;
  const scales = type === 'int8' ? SCALE_BYTES : 0;
  const allocated = Math.ceil(payload / ROW_ALIGNMENT) * ROW_ALIGNMENT + scales;
  return { payload, scales, allocated };
}

export interface LayoutOptions {
  /** Default 'f16'. */
  weights?: WeightType;
  /** Default 'f16' for both. */
  cacheK?: LayoutCacheType;
  cacheV?: LayoutCacheType;
  /** Tokens of context that the figures "at n_ctx" are about. Default 8192. */
  nCtx?: number;
}

export interface LayoutCost {
  parameters: number;
  /** Weights that one decoded token multiplies by. */
  parametersUsed: number;
  items: WeightItem[];
  fileBytes: number;
  /** One token's keys and values in one layer, scales included. */
  kvBytesPerTokenPerLayer: number;
  kvBytesPerToken: number;
  /** Without the scales of an int8 cache. */
  kvPayloadBytesPerToken: number;
  /** What the engine allocates a token: rows padded to 16 bytes. */
  kvAllocatedBytesPerToken: number;
  kvKeyBytesPerToken: number;
  kvValueBytesPerToken: number;
  /** The cache of nCtx tokens. */
  kvBytes: number;
  /** Operations of one decoded token with nCtx tokens in the cache; a multiply-add is two. */
  flopsPerToken: number;
  /** Of these, attention's own: scores and blend. */
  attentionFlopsPerToken: number;
  /** Bytes that one decoded token reads: its weights once, the cache once. */
  bytesMovedPerToken: number;
  nCtx: number;
}

function bytesOf(items: readonly WeightItem[], type: WeightType): number {
  // As GGUF files are: matrices in the file's type, vectors in f32 where that type is quantised.
  const isQuantised = type === 'q8_0' || type === 'q4_0';
  return items.reduce((sum, { parameters, isMatrix }) => {
    const bytes = isQuantised && !isMatrix ? WEIGHT_BYTES.f32 : WEIGHT_BYTES[type];
    return sum + parameters * bytes;
  }, 0);
}

function checkChoice(name: string, value: string, known: readonly string[]): void {
  const rule = oneOf(...known);
  if (!rule.accepts(value)) throw badOption('layout', name, value, rule.range);
}

/** Throws BadOptionError for a shape or an option that cannot be. */
export function layoutCost(shape: ModelShape, options: LayoutOptions = {}): LayoutCost {
  const { weights = 'f16', cacheK = 'f16', cacheV = 'f16', nCtx = 8192 } = options;
  checkChoice('weights', weights, Object.keys(WEIGHT_BYTES));
  checkChoice('cacheK', cacheK, CACHE_TYPES);
  checkChoice('cacheV', cacheV, CACHE_TYPES);
  const nCtxRule = integer(1, 1e9);
  if (!nCtxRule.accepts(nCtx)) throw badOption('layout', 'nCtx', nCtx, nCtxRule.range);
  const items = weightItems(shape);
  const used = items.filter(({ isUsedPerToken }) => isUsedPerToken);
  const count = (list: readonly WeightItem[]) =>
    list.reduce((sum, { parameters }) => sum + parameters, 0);
  const { nLayers, nKvHeads, nQHeads, dQk, dV } = shape;
  const key = cacheRowBytes(dQk, cacheK);
  const value = cacheRowBytes(dV, cacheV);
  const rows = nLayers * nKvHeads;
  const kvKeyBytesPerToken = rows * (key.payload + key.scales);
  const kvValueBytesPerToken = rows * (value.payload + value.scales);
  const kvBytesPerToken = kvKeyBytesPerToken + kvValueBytesPerToken;
  const attentionFlopsPerToken = 2 * nLayers * nQHeads * (dQk + dV) * nCtx;
  const matrices = used.filter(({ isMatrix }) => isMatrix);
  return {
    parameters: count(items),
    parametersUsed: count(used),
    items,
    fileBytes: Math.round(bytesOf(items, weights)),
    kvBytesPerTokenPerLayer: kvBytesPerToken / nLayers,
    kvBytesPerToken,
    kvPayloadBytesPerToken: rows * (key.payload + value.payload),
    kvAllocatedBytesPerToken: rows * (key.allocated + value.allocated),
    kvKeyBytesPerToken,
    kvValueBytesPerToken,
    kvBytes: kvBytesPerToken * nCtx,
    flopsPerToken: 2 * count(matrices) + attentionFlopsPerToken,
    attentionFlopsPerToken,
    bytesMovedPerToken: Math.round(bytesOf(used, weights)) + kvBytesPerToken * nCtx,
    nCtx,
  };
}

export interface ExpectedRates {
  /** Tokens a second that reading allows with a full cache. */
  decode: number;
  /** Tokens a second that the dot products allow, attention left out. */
  prefill: number;
}

/** What a measured machine allows; a runtime reaches a share of it. */
export function expectedRates(cost: LayoutCost, limits: SpeedLimits): ExpectedRates {
  const matrixFlops = cost.flopsPerToken - cost.attentionFlopsPerToken;
  return {
    decode: (limits.readGBs * 1e9) / cost.bytesMovedPerToken,
    prefill: (limits.dotGops * 1e9) / matrixFlops,
  };
}

export interface ConcurrencyOptions {
  memoryBytes: number;
  /** Weights and workspace, which are there whoever talks. */
  weightsBytes: number;
  workspaceBytes: number;
  kvBytesPerToken: number;
  /** Tokens of one conversation. */
  nTokens: number;
}

/** How many conversations' caches fit what weights and workspace leave. */
export function concurrency(options: ConcurrencyOptions): {
  freeBytes: number;
  perConversation: number;
  n: number;
} {
  const { memoryBytes, weightsBytes, workspaceBytes, kvBytesPerToken, nTokens } = options;
  const freeBytes = Math.max(0, memoryBytes - weightsBytes - workspaceBytes);
  const perConversation = kvBytesPerToken * nTokens;
  return {
    freeBytes,
    perConversation,
    n: perConversation > 0 ? Math.floor(freeBytes / perConversation) : 0,
  };
}
