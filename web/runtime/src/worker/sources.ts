// One file of a model as a stream of chunks, wherever it comes from: network, Blob, bytes of the page's thread, disk.
// What goes wrong on the way becomes a typed error that names the file; the bytes themselves are not looked at.
import { AbortedError, asHeadlightError, BadOptionError, IntegrityError } from '../errors.js';
import type { DownloadOptionsWire, SourceWire } from '../protocol.js';
import { sha256 } from '../store/sha256.js';
import { CHECKPOINT_INTERVAL } from '../store/stored_file.js';
import { type DownloadReport, openFile } from '../store/stored_source.js';
import { TRANSFER_DEFAULTS } from '../store/transfer.js';
import type { WorkerEnvironment } from './environment.js';

export interface OpenedSource {
  /** For messages: the URL, path or name. */
  label: string;
  totalBytes: number | undefined;
  /** false: it may count compressed bytes, and is for showing only. */
  lengthIsExact: boolean;
  /** As the server declares it; '' where there is none. */
  contentType: string;
  chunks: AsyncIterable<Uint8Array>;
  fromStore: boolean;
  /** Read on to the end when the model is complete: the whole file is to be kept or checked. */
  wantsAll: boolean;
  /** Takes it out of the store, where it is no good. */
  forget?(): Promise<void>;
  /** Of a file that comes by URL. */
  report?: DownloadReport;
}

export interface SourceContext {
  env: WorkerEnvironment;
  signal: AbortSignal;
  download: DownloadOptionsWire;
  /** Another tab is downloading the same file. */
  onWait(): void;
  /** Bytes [start, end) of byte source number `source`, from the page's thread. */
  wantBytes(source: number, start: number, end: number): Promise<Uint8Array>;
}

/** As much as the staging buffer takes at once. */
const CHUNK_BYTES = 1 << 20;
/** The header of a model with a vocabulary of 32,000 takes about half of it, of 128,000 eight times as much. */
const HEADER_PIECE_BYTES = 1 << 20;

export async function openSource(
  source: SourceWire,
  index: number,
  context: SourceContext,
): Promise<OpenedSource> {
  switch (source.kind) {
    case 'url':
      return openUrl(source.url, index, context);
    case 'path':
      return checked(openPath(source.path, context.env), context.download.sha256[index]);
    case 'blob':
      return checked(openBlob(source.blob, context.signal), context.download.sha256[index]);
    case 'bytes': {
      const label = `byte source ${index}`;
      const read = async (start: number, end: number) => {
        const bytes = await context.wantBytes(index, start, end);
        if (bytes.length === end - start) return bytes;
        const why = 'its memory was transferred or shrunk while it was being loaded';
        throw new IntegrityError(`${label} could not be read at byte ${start}: ${why}`, {
          offset: start,
        });
      };
      const opened = local(label, source.nBytes, ranges(source.nBytes, read, context.signal));
      return checked(opened, context.download.sha256[index]);
    }
  }
}

function local(label: string, totalBytes: number, chunks: AsyncIterable<Uint8Array>): OpenedSource {
  const known = { totalBytes, lengthIsExact: true, contentType: '', fromStore: false };
  return { label, ...known, wantsAll: false, chunks };
}

/** A local file with the hash that it must have. */
function checked(source: OpenedSource, expected: string | undefined): OpenedSource {
  if (expected === undefined) return source;
  return { ...source, wantsAll: true, chunks: checkedChunks(source, expected) };
}

async function* checkedChunks(
  { label, chunks }: OpenedSource,
  expected: string,
): AsyncGenerator<Uint8Array> {
  const hash = await sha256();
  for await (const chunk of chunks) {
    hash.update(chunk);
    yield chunk;
  }
  const found = hash.digest();
  if (found === expected) return;
  throw new IntegrityError(`${label} has the SHA-256 ${found}, expected was ${expected}`, {
    sha256: found,
    expectedSha256: expected,
  });
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
  return local(label, blob.size, ranges(blob.size, read, signal));
}

function openPath(path: string, env: WorkerEnvironment): OpenedSource {
  try {
    const { nBytes, chunks } = env.readFile(path);
    return local(path, nBytes, readable(path, chunks));
  } catch (cause) {
    throw new BadOptionError(
      `${path} could not be opened: ${(cause as Error).message}`,
      { option: 'source', value: path },
      { cause },
    );
  }
}

/** What the disk answers while it is read, as an error that names file and place. */
async function* readable(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let offset = 0;
  const files = chunks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await files.next().catch((cause: Error) => {
        throw new IntegrityError(
          `${path} could not be read at byte ${offset}: ${cause.message}. Check the disk, or get the file again.`,
          { offset },
          { cause },
        );
      });
      if (done) return;
      offset += value.length;
      yield value;
    }
  } finally {
    await files.return?.();
  }
}

async function openUrl(url: string, index: number, context: SourceContext): Promise<OpenedSource> {
  const { env, signal, download, onWait } = context;
  const expectedSha256 = download.sha256[index];
  const report: DownloadReport = {
    ...{ fromStoreBytes: 0, fromNetworkBytes: 0, kept: false, sha256: undefined, notices: [] },
  };
  const keeps = download.store === 'try' || download.store === 'require';
  const file = await openFile(url, {
    openPlace: () => env.openStore(),
    mode: download.store,
    expectedSha256,
    revalidate: download.revalidate,
    transfer: {
      ...TRANSFER_DEFAULTS,
      retries: download.retries,
      bypassHttpCache: keeps,
      pieceBytes: download.store === 'read' ? HEADER_PIECE_BYTES : undefined,
    },
    checkpoints: CHECKPOINT_INTERVAL,
    signal,
    onWait,
    report,
  });
  // A file that is to be kept or checked is needed to its end; one without an end is not to be kept.
  const wantsAll = expectedSha256 !== undefined || (keeps && file.lengthIsExact);
  return { label: url, ...file, wantsAll, report };
}
