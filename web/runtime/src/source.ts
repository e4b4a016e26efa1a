// What a user may name as a model, turned into what the worker can open. Bytes stay here: the worker asks for them range
// by range, so that a model in memory is never there a second time.

import type { Connection } from './connection.js';
import type { Platform } from './endpoint.js';
import { asHeadlightError, BadOptionError, shownAddress } from './errors.js';
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
  if (typeof source === 'string' || source instanceof URL) return resolve(source, platform);
  if (typeof Blob !== 'undefined' && source instanceof Blob) return { kind: 'blob', blob: source };
  const bytes = bytesOf(source);
  if (bytes !== undefined) return { kind: 'bytes', nBytes: bytes.byteLength };
  throw new BadOptionError(`The model source is ${kindOf(source)}; it must be ${KINDS}`, {
    option: 'source',
    range: KINDS,
  });
}

/** Of what has no place here, what it is called: 'ReadableStream', 'Promise'. */
function kindOf(source: unknown): string {
  if (typeof source !== 'object' || source === null) return String(source);
  const name = Object.prototype.toString.call(source).slice(8, -1);
  const isStream = name === 'ReadableStream' || name === 'Response';
  const asBlob =
    name === 'Response' ? 'await response.blob()' : 'await new Response(stream).blob()';
  return isStream ? `a ${name} (pass \`${asBlob}\`)` : `of type ${name}`;
}

function resolve(source: string | URL, platform: Platform): SourceWire {
  const shown = shownAddress(String(source));
  let wire: SourceWire;
  try {
    wire =
      typeof source === 'string' ? platform.resolveString(source) : platform.resolveUrl(source);
  } catch (error) {
    throw new BadOptionError(
      `The model source '${shown}' is not a URL that can be used: ${asHeadlightError(error).message}`,
      { option: 'source', value: shown, range: KINDS },
      { cause: error },
    );
  }
  if (wire.kind === 'url' && wire.url.includes('@')) refuseCredentials(wire.url);
  return wire;
}

/** fetch() never takes them, which reads like a broken network; and the error would show the password. */
function refuseCredentials(address: string): void {
  const { username, password, host, pathname } = new URL(address);
  if (username === '' && password === '') return;
  throw new BadOptionError(
    `The model source's address at ${host} has a user name or password in it, which fetch() refuses. Leave them out, or fetch ` +
      'the file with an Authorization header and pass `await response.blob()`.',
    { option: 'source', value: `${host}${pathname}` },
  );
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
  return bytesOf(source) === undefined ? always(source) : whileHeld(source);
}

// Functions of their own: a closure keeps all that any closure of its scope uses.
const always = (source: ModelSource) => () => source;

function whileHeld(source: ModelSource): () => ModelSource {
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
