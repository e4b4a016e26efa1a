// What a user may name as a model, turned into what the worker can open. Bytes stay here: the worker asks for them range
// by range, so that a model in memory is never there a second time.

import type { Connection } from './connection.js';
import type { Platform } from './endpoint.js';
import { asHeadlightError, BadOptionError } from './errors.js';
import type { RequestEvent, SourceWire } from './protocol.js';
import { withFurtherShards } from './shards.js';
import type { ModelSource } from './types.js';

export interface OpenedSources {
  sources: SourceWire[];
  /** Answers the worker's requests for ranges of byte sources. */
  serve(event: RequestEvent, connection: Connection): void;
}

const KINDS =
  'a URL, a File or Blob, an ArrayBuffer, a Uint8Array, or an array of these (the shards in order)';

function flatten(source: ModelSource): Exclude<ModelSource, readonly ModelSource[]>[] {
  return Array.isArray(source)
    ? source.flatMap((shard: ModelSource) => flatten(shard))
    : [source as never];
}

function bytesOf(source: unknown): Uint8Array | undefined {
  // A view of its own: slice() of Node's Buffer would share the caller's memory, which is then sent away.
  if (source instanceof Uint8Array)
    return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  return undefined;
}

/** Nothing where the caller has given the memory away meanwhile: the worker then says so. */
function rangeOf(source: unknown, start: number, end: number): Uint8Array {
  try {
    return bytesOf(source)?.slice(start, end) ?? new Uint8Array();
  } catch {
    return new Uint8Array();
  }
}

function wireOf(source: unknown, platform: Platform): SourceWire {
  if (typeof source === 'string') return resolveString(source, platform);
  if (source instanceof URL) return platform.resolveUrl(source);
  if (typeof Blob !== 'undefined' && source instanceof Blob) return { kind: 'blob', blob: source };
  const bytes = bytesOf(source);
  if (bytes !== undefined) return { kind: 'bytes', nBytes: bytes.byteLength };
  throw new BadOptionError(
    `The model source is ${source === null ? 'null' : typeof source}; it must be ${KINDS}`,
    {
      option: 'source',
      range: KINDS,
    },
  );
}

function resolveString(source: string, platform: Platform): SourceWire {
  try {
    return platform.resolveString(source);
  } catch (error) {
    throw new BadOptionError(
      `The model source '${source}' is not a URL: ${asHeadlightError(error).message}`,
      { option: 'source', value: source, range: KINDS },
      { cause: error },
    );
  }
}

/**
 * Gives the source again later, for a restart. Bytes are not kept alive for that: a model in memory would then be there
 * twice.
 */
export function rememberSource(source: ModelSource): () => ModelSource {
  if (Array.isArray(source)) {
    const parts = source.map((shard: ModelSource) => rememberSource(shard));
    return () => parts.map((part) => part());
  }
  if (bytesOf(source) === undefined) return () => source;
  const held = new WeakRef(source as object);
  return () => {
    const bytes = held.deref();
    if (bytes !== undefined) return bytes as ModelSource;
    throw new BadOptionError(
      'The bytes that the model was loaded from are no longer in memory. Pass them again with Engine.load(), or load from ' +
        'a URL, a File or a Blob, which restart() reads anew.',
      { option: 'source' },
    );
  };
}

/** Throws BadOptionError for what is not a model source. */
export function openSources(source: ModelSource, platform: Platform): OpenedSources {
  const shards = flatten(source);
  if (shards.length === 0) {
    throw new BadOptionError(`The model source is an empty array; it must be ${KINDS}`, {
      option: 'source',
      range: KINDS,
    });
  }
  const sources = shards.map((shard) => wireOf(shard, platform));
  const [only] = sources;
  return {
    sources: only !== undefined && sources.length === 1 ? withFurtherShards(only) : sources,
    serve(event, connection) {
      if (event.type !== 'wantBytes') return;
      const bytes = rangeOf(shards[event.source], event.start, event.end);
      connection.note({ type: 'bytes', id: event.id, bytes }, [bytes.buffer as ArrayBuffer]);
    },
  };
}
