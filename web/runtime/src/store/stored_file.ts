// The two files that the store has for one address: `KEY.gguf` with the data and `KEY.rec` with what is known of them. Who
// calls these holds the lock of the key: shared for reading, exclusive for everything else.
import type { StoreFile, StorePlace } from './place.js';
import { RecordFile, readRecord, type StoreRecord, writeAll } from './record.js';

const DATA = '.gguf';
const RECORD = '.rec';

export const dataName = (key: string) => key + DATA;
export const recordName = (key: string) => key + RECORD;
export const lockName = (key: string) => `headlight-store:${key}`;

/** The keys of all entries, whole or not. */
export async function keysIn(place: StorePlace): Promise<string[]> {
  const names = await place.names();
  const bare = names.map((name) =>
    [DATA, RECORD].reduce(
      (rest, end) => (rest.endsWith(end) ? rest.slice(0, -end.length) : rest),
      name,
    ),
  );
  return [...new Set(bare)].sort();
}

export async function recordOf(place: StorePlace, key: string): Promise<StoreRecord | undefined> {
  const file = await place.read(recordName(key));
  return file === undefined ? undefined : readRecord(new Uint8Array(await file.arrayBuffer()));
}

export interface WholeFile {
  record: StoreRecord & { sha256: string };
  data: Blob;
}

/** Undefined where there is nothing, a part, or data that do not have the length that was recorded. */
export async function wholeFile(place: StorePlace, key: string): Promise<WholeFile | undefined> {
  const record = await recordOf(place, key);
  if (record?.sha256 === undefined) return undefined;
  const data = await place.read(dataName(key));
  if (data === undefined || data.size !== record.bytes) return undefined;
  return { record: { ...record, sha256: record.sha256 }, data };
}

/** The record goes first: data without a record are nothing, a record without data would promise too much. */
export async function removeEntry(place: StorePlace, key: string): Promise<void> {
  await place.remove(recordName(key));
  await place.remove(dataName(key));
}

/** Between two records, whether or not more bytes come: what a kill costs at most. */
export interface CheckpointInterval {
  bytes: number;
  ms: number;
}
export const CHECKPOINT_INTERVAL: CheckpointInterval = { bytes: 8 << 20, ms: 500 };
const PIECE_BYTES = 1 << 20;

/** The writing side of one entry. Every method may throw what the file system throws. */
export class PartWriter {
  readonly #data: StoreFile;
  readonly #records: RecordFile;
  readonly #interval: CheckpointInterval;
  #record: StoreRecord;
  #written = 0;
  #lastMs = 0;
  #later: ReturnType<typeof setTimeout> | undefined;

  static async open(
    place: StorePlace,
    key: string,
    url: string,
    interval: CheckpointInterval,
  ): Promise<PartWriter> {
    const records = await place.open(recordName(key));
    try {
      const data = await place.open(dataName(key));
      return new PartWriter(new RecordFile(records), data, url, interval);
    } catch (error) {
      records.close();
      throw error;
    }
  }

  private constructor(
    records: RecordFile,
    data: StoreFile,
    url: string,
    interval: CheckpointInterval,
  ) {
    this.#interval = interval;
    this.#records = records;
    this.#data = data;
    const { latest } = records;
    const holds = latest !== undefined && latest.url === url && data.getSize() >= latest.bytes;
    this.#record = holds ? latest : { url, bytes: 0, savedAt: 0 };
    this.#written = this.#record.bytes;
  }

  /** Of the part that is there; `bytes` is 0 where there is none. */
  get record(): StoreRecord {
    return this.#record;
  }

  /**
   * Keeps the first `bytes` bytes and goes on behind them. The record comes before any byte is overwritten: a kill in
   * between must not leave the new version's bytes under the old one's record. False: the record is too long.
   * `reserve`: throws at once where there is no space for all of totalBytes. Browsers' estimates do not tell (Chromium
   * gives the same one whatever the quota is), a file of that length is refused.
   */
  begin(
    bytes: number,
    about: Pick<StoreRecord, 'totalBytes' | 'validator'>,
    reserve = false,
  ): boolean {
    this.#written = bytes;
    const { url } = this.#record;
    if (!this.#save({ url, bytes, ...about, savedAt: Date.now() })) return false;
    if (reserve && about.totalBytes !== undefined) this.#data.truncate(about.totalBytes);
    this.#data.truncate(bytes);
    return true;
  }

  /** The bytes that begin() kept. */
  *kept(): Generator<Uint8Array> {
    const { bytes } = this.#record;
    for (let at = 0; at < bytes; at += PIECE_BYTES) {
      const piece = new Uint8Array(Math.min(PIECE_BYTES, bytes - at));
      if (this.#data.read(piece, { at }) !== piece.length)
        throw new DOMException(`byte ${at} could not be read`, 'NotReadableError');
      yield piece;
    }
  }

  append(bytes: Uint8Array): void {
    writeAll(this.#data, bytes, this.#written);
    this.#written += bytes.length;
    const isDue =
      this.#written - this.#record.bytes >= this.#interval.bytes ||
      performance.now() - this.#lastMs >= this.#interval.ms;
    if (isDue) this.checkpoint();
    else this.#checkpointLater();
  }

  /** A download that stalls appends no more: what had come is safe all the same. */
  #checkpointLater(): void {
    const { ms } = this.#interval;
    if (ms === Number.POSITIVE_INFINITY) return;
    this.#later ??= setTimeout(() => {
      this.#later = undefined;
      try {
        this.checkpoint();
      } catch {
        // The next record meets the same fault, or finds it gone.
      }
    }, ms);
  }

  /** What was written so far survives a kill from here on. */
  checkpoint(): void {
    if (this.#written === this.#record.bytes) return;
    this.#data.flush();
    this.#save({ ...this.#record, bytes: this.#written, savedAt: Date.now() });
  }

  /** The one step that makes a whole file out of a part. */
  commit(sha256: string): void {
    this.#data.flush();
    const bytes = this.#written;
    this.#save({ ...this.#record, bytes, totalBytes: bytes, sha256, savedAt: Date.now() });
  }

  close(): void {
    clearTimeout(this.#later);
    this.#records.close();
    this.#data.close();
  }

  #save(record: StoreRecord): boolean {
    clearTimeout(this.#later);
    this.#later = undefined;
    this.#lastMs = performance.now();
    if (!this.#records.write(record)) return false;
    this.#record = record;
    return true;
  }
}
