// A disk in memory for tests of the store. It can be killed between any two operations, and then keeps what was flushed and,
// of the writes since, any beginning: the last of them torn at any byte.
import { localLock } from '../../../web/runtime/src/store/locks.js';
import type { StoreFile, StorePlace } from '../../../web/runtime/src/store/place.js';

type Change = { write: Uint8Array; at: number } | { truncate: number };

interface File {
  /** As of the last flush. */
  safe: Uint8Array;
  /** Since then. */
  changes: Change[];
  isOpen: boolean;
}

export interface DiskLimits {
  /** Operations until the kill. */
  killAfter?: number;
  /** Bytes of all files together; more is a QuotaExceededError. */
  quotaBytes?: number;
  /** What estimate() says, if not the truth. */
  freeBytes?: number;
}

function changed(bytes: Uint8Array, change: Change): Uint8Array {
  if ('truncate' in change) {
    const cut = new Uint8Array(change.truncate);
    cut.set(bytes.subarray(0, change.truncate));
    return cut;
  }
  const { write, at } = change;
  const grown = new Uint8Array(Math.max(bytes.length, at + write.length));
  grown.set(bytes);
  grown.set(write, at);
  return grown;
}

const now = ({ safe, changes }: File): Uint8Array => changes.reduce(changed, safe);

export class MemoryDisk {
  readonly files: Map<string, File>;
  limits: DiskLimits;
  operations = 0;
  /** What happened to handles: none may stay open. */
  openHandles = 0;

  constructor(limits: DiskLimits = {}, files = new Map<string, File>()) {
    this.limits = limits;
    this.files = files;
  }

  get isDead(): boolean {
    return this.operations > (this.limits.killAfter ?? Number.POSITIVE_INFINITY);
  }

  /** The disk as the next process finds it. @param pick a random integer below its argument */
  afterKill(pick: (n: number) => number): MemoryDisk {
    const files = new Map<string, File>();
    for (const [name, { safe, changes }] of this.files) {
      const nWhole = pick(changes.length + 1);
      let bytes = changes.slice(0, nWhole).reduce(changed, safe);
      const torn = changes[nWhole];
      if (torn !== undefined && 'write' in torn) {
        bytes = changed(bytes, {
          write: torn.write.subarray(0, pick(torn.write.length + 1)),
          at: torn.at,
        });
      }
      files.set(name, { safe: bytes, changes: [], isOpen: false });
    }
    return new MemoryDisk({}, files);
  }

  bytesOf(name: string): Uint8Array | undefined {
    const file = this.files.get(name);
    return file === undefined ? undefined : now(file);
  }

  place(): StorePlace {
    return {
      names: async () => {
        this.#step();
        return [...this.files.keys()];
      },
      open: async (name) => {
        this.#step();
        const file = this.files.get(name) ?? { safe: new Uint8Array(), changes: [], isOpen: false };
        this.files.set(name, file);
        if (file.isOpen) throw new DOMException('it is open', 'NoModificationAllowedError');
        file.isOpen = true;
        this.openHandles += 1;
        return this.#handle(file);
      },
      read: async (name) => {
        this.#step();
        const bytes = this.bytesOf(name);
        return bytes === undefined ? undefined : new Blob([bytes as Uint8Array<ArrayBuffer>]);
      },
      remove: async (name) => {
        this.#step();
        if (this.files.get(name)?.isOpen)
          throw new DOMException('it is open', 'NoModificationAllowedError');
        this.files.delete(name);
      },
      freeBytes: async () => this.limits.freeBytes,
      lock: localLock(),
    };
  }

  #handle(file: File): StoreFile {
    let isClosed = false;
    return {
      getSize: () => now(file).length,
      read: (to, { at }) => {
        this.#step();
        const part = now(file).subarray(at, at + to.length);
        to.set(part);
        return part.length;
      },
      write: (from, { at }) => {
        this.#step();
        const { quotaBytes = Number.POSITIVE_INFINITY } = this.limits;
        if (this.#usedBytes() + from.length > quotaBytes)
          throw new DOMException('the disk is full', 'QuotaExceededError');
        file.changes.push({ write: from.slice(), at });
        return from.length;
      },
      truncate: (nBytes) => {
        this.#step();
        file.changes.push({ truncate: nBytes });
      },
      flush: () => {
        this.#step();
        file.safe = now(file);
        file.changes = [];
      },
      close: () => {
        if (isClosed || this.isDead) return;
        isClosed = true;
        file.isOpen = false;
        this.openHandles -= 1;
        // A browser writes what was left at its leisure; the next process sees it.
        file.safe = now(file);
        file.changes = [];
      },
    };
  }

  #usedBytes(): number {
    let used = 0;
    for (const file of this.files.values()) used += now(file).length;
    return used;
  }

  #step(): void {
    this.operations += 1;
    if (this.isDead) throw new Error('the process was killed');
  }
}
