// One file of a model as a stream of chunks, wherever it comes from: network, Blob, bytes of the page's thread, disk.
// What goes wrong on the way becomes a typed error that names the file; the bytes themselves are not looked at.
import {
  AbortedError,
  asHeadlightError,
  BadOptionError,
  IntegrityError,
  NetworkError,
} from '../errors.js';
import type { SourceWire } from '../protocol.js';
import type { WorkerEnvironment } from './environment.js';

export interface OpenedSource {
  /** For messages: the URL, path or name. */
  label: string;
  /** Undefined when unknown, or when it would count compressed bytes. */
  totalBytes: number | undefined;
  /** As the server declares it; '' where there is none. */
  contentType: string;
  chunks: AsyncIterable<Uint8Array>;
}

export interface SourceContext {
  env: WorkerEnvironment;
  signal: AbortSignal;
  /** Bytes [start, end) of byte source number `source`, from the page's thread. */
  wantBytes(source: number, start: number, end: number): Promise<Uint8Array>;
}

/** As much as the staging buffer takes at once. */
const CHUNK_BYTES = 1 << 20;

export async function openSource(
  source: SourceWire,
  index: number,
  context: SourceContext,
): Promise<OpenedSource> {
  switch (source.kind) {
    case 'url':
      return openUrl(source.url, context.signal);
    case 'path':
      return openPath(source.path, context.env);
    case 'blob':
      return openBlob(source.blob, context.signal);
    case 'bytes': {
      const read = (start: number, end: number) => context.wantBytes(index, start, end);
      const label = `byte source ${index}`;
      return {
        label,
        totalBytes: source.nBytes,
        contentType: '',
        chunks: ranges(source.nBytes, read, context.signal),
      };
    }
  }
}

async function* ranges(
  nBytes: number,
  read: (start: number, end: number) => Promise<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < nBytes; start += CHUNK_BYTES) {
    if (signal.aborted) throw new AbortedError();
    yield await read(start, Math.min(nBytes, start + CHUNK_BYTES));
  }
}

function openBlob(blob: Blob, signal: AbortSignal): OpenedSource {
  const label = blob instanceof File ? blob.name : 'the Blob';
  const read = async (start: number, end: number) => {
    try {
      return new Uint8Array(await blob.slice(start, end).arrayBuffer());
    } catch (cause) {
      throw new IntegrityError(
        `${label} could not be read at byte ${start}: ${asHeadlightError(cause).message}. ` +
          'It may have changed or been moved since it was chosen; choose it again.',
        { offset: start },
        { cause },
      );
    }
  };
  return { label, totalBytes: blob.size, contentType: '', chunks: ranges(blob.size, read, signal) };
}

function openPath(path: string, env: WorkerEnvironment): OpenedSource {
  try {
    const { nBytes, chunks } = env.readFile(path);
    return { label: path, totalBytes: nBytes, contentType: '', chunks };
  } catch (cause) {
    throw new BadOptionError(
      `${path} could not be opened: ${(cause as Error).message}`,
      { option: 'source', value: path },
      { cause },
    );
  }
}

async function openUrl(url: string, signal: AbortSignal): Promise<OpenedSource> {
  let response: Response;
  try {
    response = await fetch(url, { signal });
  } catch (cause) {
    throw downloadFailed(url, 0, cause, signal);
  }
  if (!response.ok) {
    await response.body?.cancel().catch(() => {});
    throw new NetworkError(
      `${url} answered ${response.status} ${response.statusText}: check the address`,
      {
        url,
        status: response.status,
      },
    );
  }
  const { headers } = response;
  // The length of a compressed body says nothing about the bytes that arrive here.
  const encoded = (headers.get('content-encoding') ?? 'identity') !== 'identity';
  const length = Number(headers.get('content-length') ?? Number.NaN);
  return {
    label: url,
    totalBytes: !encoded && Number.isSafeInteger(length) ? length : undefined,
    contentType: headers.get('content-type') ?? '',
    chunks: body(url, response, signal),
  };
}

async function* body(
  url: string,
  response: Response,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  let received = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        throw downloadFailed(url, received, cause, signal);
      });
      if (done) return;
      received += value.byteLength;
      yield value;
    }
  } finally {
    // Whoever stops early, with the header or with an error, does not want the rest.
    await reader.cancel().catch(() => {});
  }
}

function downloadFailed(url: string, received: number, cause: unknown, signal: AbortSignal): Error {
  if (signal.aborted) return new AbortedError();
  const why = cause instanceof Error ? cause.message : String(cause);
  const message =
    received > 0
      ? `The download of ${url} broke off after ${received} bytes (${why}): try again`
      : `${url} could not be fetched (${why}): check the connection, and that its server allows this page (CORS)`;
  return new NetworkError(message, { url, receivedBytes: received }, { cause });
}
