// One request of the lab over an engine's connection; what its classes share.
import { abortable } from '../abortable.js';
import type { Connection } from '../connection.js';
import { checkEviction, checkKvCache, evictionWire } from '../options.js';
import type { CacheType, Eviction } from '../types.js';
import type { LabCache, LabOp, LabOps, LabProgress, LabSession } from './lab_protocol.js';

export interface LabCallOptions {
  onProgress?: (progress: LabProgress) => void;
  signal?: AbortSignal;
}

/** Matrices of an attention layer. */
export const ATTENTION_TENSORS = ['q', 'k', 'v', 'o'] as const;
export type AttentionTensor = (typeof ATTENTION_TENSORS)[number];

/** How a session over a model keeps keys and values. */
export interface SessionKeeps {
  /** Default f32 for both. */
  kvCache?: { k?: CacheType; v?: CacheType };
  /** Which keys are given up, by the session's own policy. Default: as the engine was loaded. */
  eviction?: Eviction;
}

export function labCache(kvCache: SessionKeeps['kvCache'] = {}): LabCache {
  return { kvCacheK: kvCache.k ?? 'f32', kvCacheV: kvCache.v ?? 'f32' };
}

/** Throws BadOptionError. */
export function labSession(where: string, { kvCache, eviction }: SessionKeeps): LabSession {
  checkKvCache(where, kvCache);
  checkEviction(where, eviction);
  const wire = eviction === undefined ? null : evictionWire(eviction);
  return { ...labCache(kvCache), eviction: wire };
}

export function labCall<K extends LabOp>(
  connection: Connection,
  op: K,
  body: LabOps[K]['body'],
  { onProgress, signal }: LabCallOptions = {},
): Promise<LabOps[K]['reply']> {
  const { id, reply } = connection.call('lab', { op, ...body } as never, (event) => {
    if (event.type === 'lab') onProgress?.(event.progress);
  });
  return abortable(reply, signal, () => connection.cancel(id)) as Promise<LabOps[K]['reply']>;
}
