// What the store knows of one file, written so that a kill at any byte leaves it readable: two slots in one small file,
// the older of which is overwritten. Each slot has a counter and a checksum; the newest whole one counts.
import type { StoreFile } from './place.js';
import type { Validator } from './validator.js';

export interface StoreRecord {
  url: string;
  /** Leading bytes of the data file that are safe: flushed before this record was written. */
  bytes: number;
  /** Of the whole file; missing while unknown. */
  totalBytes?: number;
  validator?: Validator;
  /** All of the file is there, and this is its SHA-256 in hex. */
  sha256?: string;
  /** Milliseconds since 1970. */
  savedAt: number;
}

/** Room for addresses as long as servers take them (8 KB). */
const SLOT_BYTES = 16384;
const HEAD_BYTES = 16;
/** Another format takes another folder too (opfs.ts): list() removes data whose record it cannot read. */
const MAGIC = 0x31534c48; // "HLS1"

/** Slot: magic, counter, length and CRC-32 of counter, length and text as u32; then the record as JSON. */
function encode(record: StoreRecord, counter: number): Uint8Array | undefined {
  const text = new TextEncoder().encode(JSON.stringify(record));
  if (HEAD_BYTES + text.length > SLOT_BYTES) return undefined;
  const slot = new Uint8Array(HEAD_BYTES + text.length);
  const head = new DataView(slot.buffer);
  head.setUint32(0, MAGIC, true);
  head.setUint32(4, counter, true);
  head.setUint32(8, text.length, true);
  slot.set(text, HEAD_BYTES);
  head.setUint32(12, checksum(slot), true);
  return slot;
}

interface Slot {
  counter: number;
  record: StoreRecord;
}

function decode(slot: Uint8Array): Slot | undefined {
  if (slot.length < HEAD_BYTES) return undefined;
  const head = new DataView(slot.buffer, slot.byteOffset, slot.byteLength);
  const length = head.getUint32(8, true);
  if (head.getUint32(0, true) !== MAGIC || HEAD_BYTES + length > slot.length) return undefined;
  const whole = slot.subarray(0, HEAD_BYTES + length);
  if (head.getUint32(12, true) !== checksum(whole)) return undefined;
  const text = new TextDecoder().decode(whole.subarray(HEAD_BYTES));
  return { counter: head.getUint32(4, true), record: JSON.parse(text) as StoreRecord };
}

/** Everything but the magic and the checksum itself. */
function checksum(slot: Uint8Array): number {
  return crc32(slot.subarray(HEAD_BYTES), crc32(slot.subarray(4, 12), 0));
}

/** CRC-32 (IEEE 802.3), bit by bit: records are a few hundred bytes. */
function crc32(bytes: Uint8Array, start: number): number {
  let crc = ~start;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

function newest(file: Uint8Array): { slot: Slot; index: number } | undefined {
  const slots = [0, 1].map((index) => {
    const slot = decode(file.subarray(index * SLOT_BYTES, (index + 1) * SLOT_BYTES));
    return slot === undefined ? undefined : { slot, index };
  });
  const [first, second] = slots;
  if (first === undefined || second === undefined) return first ?? second;
  return first.slot.counter > second.slot.counter ? first : second;
}

/** The record in a file's bytes; undefined when there is no whole one. */
export function readRecord(file: Uint8Array): StoreRecord | undefined {
  return newest(file)?.slot.record;
}

/** Writes records into one file, each flushed. */
export class RecordFile {
  readonly #file: StoreFile;
  #latest: StoreRecord | undefined;
  #counter = 0;
  #next = 0;

  constructor(file: StoreFile) {
    this.#file = file;
    const bytes = new Uint8Array(Math.min(file.getSize(), 2 * SLOT_BYTES));
    file.read(bytes, { at: 0 });
    const found = newest(bytes);
    if (found === undefined) return;
    this.#latest = found.slot.record;
    this.#counter = found.slot.counter;
    this.#next = 1 - found.index;
  }

  get latest(): StoreRecord | undefined {
    return this.#latest;
  }

  /** False for a record that is too long to be kept (an address of more than 15 KB). */
  write(record: StoreRecord): boolean {
    const slot = encode(record, this.#counter + 1);
    if (slot === undefined) return false;
    writeAll(this.#file, slot, this.#next * SLOT_BYTES);
    this.#file.flush();
    this.#latest = record;
    this.#counter += 1;
    this.#next = 1 - this.#next;
    return true;
  }

  close(): void {
    this.#file.close();
  }
}

/** A full disk may take a part of the bytes without a word. */
export function writeAll(file: StoreFile, bytes: Uint8Array, at: number): void {
  const written = file.write(bytes, { at });
  if (written === bytes.length) return;
  throw new DOMException(
    `${written} of ${bytes.length} bytes could be written at byte ${at}`,
    'QuotaExceededError',
  );
}
