// One request of the lab over an engine's connection; what its classes share.
import { abortable } from '../abortable.js';
import type { Connection } from '../connection.js';
import type { CacheType } from '../types.js';
import type { LabCache, LabOp, LabOps, LabProgress } from './lab_protocol.js';

export interface LabCallOptions {
  onProgress?: (progress: LabProgress) => void;
  signal?: AbortSignal;
}

/** Matrices of an attention layer. */
export const ATTENTION_TENSORS = ['q', 'k', 'v', 'o'] as const;
export type AttentionTensor = (typeof ATTENTION_TENSORS)[number];

export function labCache(kvCache: { k?: CacheType; v?: CacheType } = {}): LabCache {
  return { kvCacheK: kvCache.k ?? 'f32', kvCacheV: kvCache.v ?? 'f32' };
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
