// A whole file out of the store, as a stream of chunks. What is not whole, or not what was asked for, is left alone; the
// writing side is stored_source.ts.
import { AbortedError, asHeadlightError, IntegrityError } from '../errors.js';
import type { Release, StorePlace } from './place.js';
import { isOutdated } from './revalidate.js';
import { sha256, sha256OfText } from './sha256.js';
import { lockName, removeEntry, type WholeFile, wholeFile } from './stored_file.js';
import type { StoreContext, StreamedFile } from './stored_source.js';

const PIECE_BYTES = 1 << 20;

/** Other addresses (blob:, data:) name bytes that are here already. */
export function isStorable(url: string): boolean {
  return /^https?:/i.test(url);
}

/** Of an address without fragment. */
export async function keyOf(url: string): Promise<string> {
  return (await sha256OfText(url)).slice(0, 40);
}

/** Undefined where there is no whole file that will do; then the lock is free again. */
export async function openStored(
  place: StorePlace,
  key: string,
  lock: 'shared' | Release,
  context: StoreContext,
): Promise<StreamedFile | undefined> {
  const release = lock === 'shared' ? await place.lock(lockName(key), 'shared', context) : lock;
  try {
    const whole = await wholeFile(place, key);
    if (whole !== undefined && (await willDo(whole, context))) {
      const forget = () => forgetEntry(place, key, context);
      return {
        totalBytes: whole.data.size,
        lengthIsExact: true,
        contentType: '',
        fromStore: true,
        chunks: storedChunks(whole, release, context),
        forget,
      };
    }
  } catch (error) {
    context.report.notices.push(
      `the stored file could not be read: ${asHeadlightError(error).message}`,
    );
  }
  if (lock === 'shared') release();
  return undefined;
}

/** For who only looks: undefined where there is no store, no whole file, or another tab is writing it at the moment. */
export async function openIfThere(
  url: string,
  context: StoreContext,
): Promise<StreamedFile | undefined> {
  const impatience = new AbortController();
  let release: Release | undefined;
  try {
    const place = await context.openPlace();
    if (place === undefined) return undefined;
    const key = await keyOf(url);
    const wait = { signal: impatience.signal, onWait: () => impatience.abort() };
    release = await place.lock(lockName(key), 'shared', wait);
    const stored = await openStored(place, key, release, context);
    if (stored === undefined) release();
    return stored;
  } catch {
    release?.();
    return undefined;
  }
}

async function willDo({ record }: WholeFile, context: StoreContext): Promise<boolean> {
  const { expectedSha256, revalidate, signal, report } = context;
  if (expectedSha256 !== undefined) return expectedSha256 === record.sha256;
  return !revalidate || !(await isOutdated(record, signal, report.notices));
}

async function* storedChunks(
  { data, record }: WholeFile,
  release: Release,
  { report, expectedSha256, signal }: StoreContext,
): AsyncGenerator<Uint8Array> {
  // Who gives a hash wants to be certain of the bytes, not only of what was recorded once.
  const hash = expectedSha256 === undefined ? undefined : await sha256();
  try {
    for (let at = 0; at < data.size; at += PIECE_BYTES) {
      if (signal.aborted) throw new AbortedError();
      const piece = new Uint8Array(await data.slice(at, at + PIECE_BYTES).arrayBuffer());
      hash?.update(piece);
      report.fromStoreBytes += piece.length;
      yield piece;
    }
    if (hash !== undefined && hash.digest() !== record.sha256)
      throw new IntegrityError(`its SHA-256 is not ${record.sha256} any more`);
    report.kept = true;
    report.sha256 = record.sha256;
  } catch (error) {
    if (error instanceof AbortedError) throw error;
    const { message } = asHeadlightError(error);
    throw new IntegrityError(`The stored copy of ${record.url} is damaged: ${message}`);
  } finally {
    release();
  }
}

export async function forgetEntry(
  place: StorePlace,
  key: string,
  wait: StoreContext,
): Promise<void> {
  const release = await place.lock(lockName(key), 'exclusive', wait);
  try {
    await removeEntry(place, key);
  } finally {
    release();
  }
}
