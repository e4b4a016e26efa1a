// Takes a file through the store as the loader does, for tests: to the end, or until enough has come.
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { IntegrityError } from '../../../web/runtime/src/errors.js';
import type { StorePlace } from '../../../web/runtime/src/store/place.js';
import {
  type DownloadReport,
  openFile,
  type StoreContext,
} from '../../../web/runtime/src/store/stored_source.js';
import { StartAnew, TRANSFER_DEFAULTS } from '../../../web/runtime/src/store/transfer.js';

export interface Taken {
  bytes: Uint8Array;
  report: DownloadReport;
  waits: number;
  restarts: number;
}

export interface TakeOptions extends Partial<Omit<StoreContext, 'report' | 'onWait' | 'transfer'>> {
  place?: StorePlace | undefined;
  transfer?: Partial<StoreContext['transfer']>;
  /** Leave after so many bytes. */
  until?: number;
}

/** Short pauses: the tests wait for them. */
const QUICK = { ...TRANSFER_DEFAULTS, backoffMs: 1, maxBackoffMs: 4, stallMs: 2000 };
const MAX_RESTARTS = 3;

export function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** toEqual() takes long over a hundred thousand elements. */
export function expectBytes(found: Uint8Array | undefined, expected: Uint8Array): void {
  expect(found?.length).toBe(expected.length);
  expect(sha256Of(found ?? new Uint8Array())).toBe(sha256Of(expected));
}

/** A file that begins as models do; other seeds give other bytes. */
export function modelBytes(nBytes: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(nBytes);
  let state = seed;
  for (let i = 0; i < nBytes; i++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    bytes[i] = state >>> 24;
  }
  bytes.set(new TextEncoder().encode('GGUF').subarray(0, nBytes));
  return bytes;
}

export async function take(url: string, options: TakeOptions = {}): Promise<Taken> {
  const { place, until = Number.POSITIVE_INFINITY, transfer, ...rest } = options;
  const taken: Taken = {
    bytes: new Uint8Array(),
    report: newReport(),
    waits: 0,
    restarts: 0,
  };
  for (;;) {
    taken.report = newReport();
    const context: StoreContext = {
      openPlace: async () => place,
      mode: 'try',
      expectedSha256: undefined,
      revalidate: false,
      signal: new AbortController().signal,
      checkpoints: { bytes: 8 << 20, ms: 500 },
      ...rest,
      transfer: { ...QUICK, ...transfer },
      onWait: () => {
        taken.waits += 1;
      },
      report: taken.report,
    };
    try {
      taken.bytes = await chunksOf(url, context, until);
      return taken;
    } catch (error) {
      if (!(error instanceof StartAnew)) throw error;
      if (taken.restarts++ === MAX_RESTARTS) throw error.failure;
    }
  }
}

function newReport(): DownloadReport {
  return { fromStoreBytes: 0, fromNetworkBytes: 0, kept: false, sha256: undefined, notices: [] };
}

async function chunksOf(url: string, context: StoreContext, until: number): Promise<Uint8Array> {
  const file = await openFile(url, context);
  const chunks: Uint8Array[] = [];
  let received = 0;
  try {
    for await (const chunk of file.chunks) {
      chunks.push(chunk.slice());
      received += chunk.length;
      if (received >= until) break;
    }
  } catch (error) {
    // As load_model.ts does it.
    if (!file.fromStore || !(error instanceof IntegrityError)) throw error;
    await file.forget();
    throw new StartAnew(error);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
