// A model file from the network through the store: from there if it is whole, else from the network into the loader and
// into the store at once, continued where an earlier download ended.
//
// The protocol. Each address has two files (stored_file.ts), the data and a record of two slots (record.ts), and a lock
// that all tabs see: shared for reading whole files, exclusive for writing, so that two tabs download once.
//   1. The record that says "n bytes of this version" is written only after flush() has made those n bytes safe.
//   2. Where bytes are to be overwritten, first a record of 0 bytes with the new version's validator is written.
//   3. The file is whole when its record has a hash: written once, after the last flush, when length and hash were right.
//      Nothing is ever renamed or moved.
// So a kill between any two steps leaves: nothing (no whole slot), a part (bytes beyond the record are cut off when it is
// continued), or the whole file. A kill within a record leaves the other slot. A part is continued only when the server
// names the same version by a strong validator, or when the caller knows the hash of the whole; the hash is computed over
// all bytes, the stored ones included, since the loader reads them anyway.
// Where the store cannot be used (no storage, short of space, another fault), the download goes on into memory alone and a
// notice says why; with store: 'require' it is a QuotaError.
import { asHeadlightError, IntegrityError, QuotaError } from '../errors.js';
import type { Have } from './attempt.js';
import type { Release, StorePlace } from './place.js';
import { type Sha256, sha256 } from './sha256.js';
import { forgetEntry, isStorable, keyOf, openIfThere, openStored } from './stored_copy.js';
import { type CheckpointInterval, lockName, PartWriter, removeEntry } from './stored_file.js';
import { StartAnew, Transfer, type TransferOptions } from './transfer.js';

/** 'read': a whole file that is there is used, nothing is written and nobody waited for. */
export type StoreMode = 'off' | 'read' | 'try' | 'require';

/** What became of a file; filled in while it streams. */
export interface DownloadReport {
  fromStoreBytes: number;
  fromNetworkBytes: number;
  /** The whole file is in the store. */
  kept: boolean;
  sha256: string | undefined;
  notices: string[];
}

export interface StoreContext {
  /** Throws where the browser has a store and forbids it; undefined where it has none. */
  openPlace(): Promise<StorePlace | undefined>;
  mode: StoreMode;
  /** 64 hex digits, lower case. */
  expectedSha256: string | undefined;
  /** Ask the server whether a whole stored file is still its version, unless its hash is known. */
  revalidate: boolean;
  transfer: TransferOptions;
  checkpoints: CheckpointInterval;
  signal: AbortSignal;
  /** Another tab is downloading the same file. */
  onWait(): void;
  report: DownloadReport;
}

export interface StreamedFile {
  totalBytes: number | undefined;
  lengthIsExact: boolean;
  contentType: string;
  fromStore: boolean;
  chunks: AsyncGenerator<Uint8Array>;
  /** Takes the file out of the store: it has turned out to be no good. */
  forget(): Promise<void>;
}

/** Beside the file: records, and what a file system needs for itself. */
const SPARE_BYTES = 4 << 20;

export async function openFile(address: string, context: StoreContext): Promise<StreamedFile> {
  // What comes behind # never reaches a server.
  const url = address.replace(/#.*$/, '');
  if (context.mode === 'off' || !isStorable(url)) return new Download(url, context).open(undefined);
  if (context.mode === 'read')
    return (await openIfThere(url, context)) ?? new Download(url, context).open(undefined);
  let place: StorePlace | undefined;
  try {
    place = await context.openPlace();
  } catch (error) {
    return withoutStore(url, context, `it cannot be opened: ${asHeadlightError(error).message}`);
  }
  if (place === undefined) return withoutStore(url, context, 'there is none for files here');
  const key = await keyOf(url);
  const stored = await openStored(place, key, 'shared', context);
  return stored ?? openForWriting(url, place, key, context);
}

function withoutStore(url: string, context: StoreContext, why: string): Promise<StreamedFile> {
  refuseOrNote(context, why);
  return new Download(url, context).open(undefined);
}

function refuseOrNote({ mode, report }: StoreContext, why: string, details = {}): void {
  if (mode === 'require') {
    throw new QuotaError(
      `The model cannot be kept in the browser's storage (${why}). Free some space, or load with store: true.`,
      details,
    );
  }
  report.notices.push(`not kept in the browser's storage: ${why}`);
}

async function openForWriting(
  url: string,
  place: StorePlace,
  key: string,
  context: StoreContext,
): Promise<StreamedFile> {
  const release = await place.lock(lockName(key), 'exclusive', context);
  let writer: PartWriter;
  try {
    // Another tab may have finished it meanwhile.
    const stored = await openStored(place, key, release, context);
    if (stored !== undefined) return stored;
    writer = await PartWriter.open(place, key, url, context.checkpoints);
  } catch (error) {
    release();
    return withoutStore(url, context, asHeadlightError(error).message);
  }
  return new Download(url, context).open({ place, key, writer, release });
}

interface Kept {
  place: StorePlace;
  key: string;
  writer: PartWriter;
  release: Release;
}

/** One file from the network, and into the store where `kept` says where. */
class Download {
  readonly #url: string;
  readonly #context: StoreContext;
  #kept: Kept | undefined;

  constructor(url: string, context: StoreContext) {
    this.#url = url;
    this.#context = context;
  }

  /** What is in `kept` is closed when this throws, or else when the chunks end. */
  async open(kept: Kept | undefined): Promise<StreamedFile> {
    this.#kept = kept;
    const { signal, expectedSha256, transfer: options } = this.#context;
    const hashDecides = expectedSha256 !== undefined;
    let transfer: Transfer | undefined;
    try {
      transfer = await Transfer.open(this.#url, this.#part(), { signal, hashDecides }, options);
      await this.#prepare(transfer);
    } catch (error) {
      transfer?.end();
      this.#close();
      throw error;
    }
    const { totalBytes, lengthIsExact, contentType } = transfer;
    return {
      totalBytes,
      lengthIsExact,
      contentType,
      fromStore: false,
      chunks: this.#chunks(transfer),
      forget: async () => {
        if (kept !== undefined) await forgetEntry(kept.place, kept.key, this.#context);
      },
    };
  }

  /** A whole file that is not the one expected, or whose data are damaged, is no part of it. */
  #part(): Have | undefined {
    const record = this.#kept?.writer.record;
    if (record === undefined || record.bytes === 0 || record.sha256 !== undefined) return undefined;
    const { bytes, totalBytes, validator } = record;
    return {
      bytes,
      ...(totalBytes === undefined ? {} : { totalBytes }),
      ...(validator === undefined ? {} : { validator }),
    };
  }

  async #prepare({ startsAt, totalBytes, lengthIsExact, validator }: Transfer): Promise<void> {
    if (this.#kept === undefined) return;
    const { place, writer } = this.#kept;
    const freeBytes = await place.freeBytes();
    const neededBytes = (totalBytes ?? 0) - startsAt + SPARE_BYTES;
    if (freeBytes !== undefined && freeBytes < neededBytes) {
      const why = `it needs ${neededBytes} bytes and the browser gives ${freeBytes}`;
      await this.#giveUp(why, { neededBytes, freeBytes });
    } else {
      try {
        const exact = lengthIsExact && totalBytes !== undefined ? { totalBytes } : {};
        // Of a part that is there the rest may as well come into memory, if nobody insists.
        const reserve = startsAt === 0 || this.#context.mode === 'require';
        if (!writer.begin(startsAt, { ...exact, validator }, reserve))
          await this.#giveUp('its address is too long');
      } catch (error) {
        const why = `it needs ${neededBytes} bytes: ${asHeadlightError(error).message}`;
        await this.#giveUp(why, { neededBytes });
      }
    }
    if (this.#kept === undefined && startsAt > 0) {
      // The server was asked for the rest only, and the part before it is gone with the store's copy.
      const message = `There is not enough storage to complete the stored part of ${this.#url}`;
      throw new StartAnew(new QuotaError(message, { neededBytes }));
    }
  }

  /** The download goes on without the store, or ends where it was required. */
  async #giveUp(why: string, details = {}): Promise<void> {
    if (this.#kept === undefined) return;
    await this.#discard();
    refuseOrNote(this.#context, why, details);
  }

  /** Nothing of this file stays in the store. */
  async #discard(): Promise<void> {
    const kept = this.#kept;
    if (kept === undefined) return;
    this.#kept = undefined;
    kept.writer.close();
    // What cannot be removed has a record that promises no more than is there.
    await removeEntry(kept.place, kept.key).catch(() => {});
    kept.release();
  }

  async *#chunks(transfer: Transfer): AsyncGenerator<Uint8Array> {
    const { report, expectedSha256 } = this.#context;
    const hash = this.#kept || expectedSha256 ? await sha256() : undefined;
    try {
      if (transfer.startsAt > 0) {
        for await (const piece of this.#keptPieces()) {
          hash?.update(piece);
          report.fromStoreBytes += piece.length;
          yield piece;
        }
      }
      let isFirst = transfer.startsAt === 0;
      for await (const chunk of transfer.chunks()) {
        // An error page or another format is the loader's to name, and nobody's to keep.
        if (isFirst && !isGguf(chunk)) await this.#discard();
        isFirst = false;
        hash?.update(chunk);
        report.fromNetworkBytes += chunk.length;
        await this.#keep(chunk, transfer);
        yield chunk;
      }
      await this.#complete(transfer, hash);
    } finally {
      transfer.end();
      this.#close();
    }
  }

  async *#keptPieces(): AsyncGenerator<Uint8Array> {
    try {
      if (this.#kept !== undefined) yield* this.#kept.writer.kept();
    } catch (error) {
      await this.#discard();
      const { message } = asHeadlightError(error);
      throw new StartAnew(new IntegrityError(`The stored part could not be read: ${message}`));
    }
  }

  async #keep(chunk: Uint8Array, { startsAt, totalBytes }: Transfer): Promise<void> {
    try {
      this.#kept?.writer.append(chunk);
    } catch (error) {
      // Estimates are no promise: others may have taken the space meanwhile.
      const storedBytes = startsAt + this.#context.report.fromNetworkBytes - chunk.length;
      const details = totalBytes === undefined ? { storedBytes } : { storedBytes, totalBytes };
      const where = `at byte ${storedBytes}${totalBytes === undefined ? '' : ` of ${totalBytes}`}`;
      await this.#giveUp(`${asHeadlightError(error).message}, ${where}`, details);
    }
  }

  async #complete({ startsAt }: Transfer, hash: Sha256 | undefined): Promise<void> {
    if (hash === undefined) return;
    const { report, expectedSha256 } = this.#context;
    const found = hash.digest();
    report.sha256 = found;
    if (expectedSha256 !== undefined && found !== expectedSha256) {
      await this.#refuse(found, expectedSha256, startsAt);
    }
    try {
      this.#kept?.writer.commit(found);
      report.kept = this.#kept !== undefined;
    } catch (error) {
      await this.#giveUp(asHeadlightError(error).message);
    }
  }

  async #refuse(found: string, expected: string, startsAt: number): Promise<never> {
    await this.#discard();
    const error = new IntegrityError(
      `${this.#url} has the SHA-256 ${found}, expected was ${expected}. The file was changed or damaged on the way; ` +
        'nothing of it was kept. Load again, or check the expected hash.',
      { url: this.#url, sha256: found, expectedSha256: expected },
    );
    // The stored part may have been the wrong one: the whole file gets one more chance.
    throw startsAt > 0 ? new StartAnew(error) : error;
  }

  #close(): void {
    const kept = this.#kept;
    if (kept === undefined) return;
    this.#kept = undefined;
    try {
      kept.writer.checkpoint();
    } catch {
      // The last record stands.
    } finally {
      kept.writer.close();
      kept.release();
    }
  }
}

/** Chunks may be short. */
function isGguf(chunk: Uint8Array): boolean {
  const magic = [0x47, 0x47, 0x55, 0x46];
  return magic.every((byte, i) => i >= chunk.length || chunk[i] === byte);
}
