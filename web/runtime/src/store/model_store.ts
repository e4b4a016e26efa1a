// What is stored, for users: list, size, delete, export. Works without a worker; downloads are Engine.load's. Where the browser
// forbids its storage each rejects with QuotaError.
import { AbortedError, asHeadlightError, BadOptionError, QuotaError } from '../errors.js';
import type { StorageUse, StoredModel } from '../types.js';
import type { Release, StorePlace } from './place.js';
import { inStorage } from './refusal.js';
import { dataName, keysIn, lockName, recordOf, removeEntry, wholeFile } from './stored_file.js';

export class ModelStore {
  readonly #openPlace: () => Promise<StorePlace | undefined>;
  readonly #isPersistent: () => Promise<boolean>;

  /** @internal */
  constructor(
    openPlace: () => Promise<StorePlace | undefined>,
    isPersistent: () => Promise<boolean>,
  ) {
    this.#openPlace = openPlace;
    this.#isPersistent = isPersistent;
  }

  /**
   * Whole files and parts of them, the latest first. Empty where there is no storage. What no load could go on with is removed
   * on the way: it would take space unseen.
   */
  async list(): Promise<StoredModel[]> {
    return inStorage(async () => {
      const place = await this.#openPlace();
      if (place === undefined) return [];
      const all = await Promise.all((await keysIn(place)).map((key) => entry(place, key)));
      return all.filter((one) => one !== undefined).sort((a, b) => b.savedAt - a.savedAt);
    });
  }

  /** What the stored models take, and what the browser would give. */
  async use(): Promise<StorageUse> {
    return inStorage(async () => {
      const place = await this.#openPlace();
      if (place === undefined) return { modelsBytes: 0, isPersistent: false };
      let modelsBytes = 0;
      for (const key of await keysIn(place))
        modelsBytes += (await place.read(dataName(key)))?.size ?? 0;
      const freeBytes = await place.freeBytes();
      return {
        modelsBytes,
        ...(freeBytes === undefined ? {} : { freeBytes }),
        isPersistent: await this.#isPersistent(),
      };
    });
  }

  /** The bytes of a whole stored file, to be saved elsewhere or loaded. Undefined where there is none. */
  async file(url: string | URL): Promise<Blob | undefined> {
    return inStorage(async () => {
      const place = await this.#openPlace();
      const key = place && (await keyOfUrl(place, url));
      if (place === undefined || key === undefined) return undefined;
      return (await wholeFile(place, key))?.data;
    });
  }

  /**
   * Resolves to whether there was something to delete. Throws BadOptionError while a tab downloads or loads it.
   */
  async delete(url: string | URL): Promise<boolean> {
    return inStorage(async () => {
      const place = await this.#openPlace();
      const key = place && (await keyOfUrl(place, url));
      if (place === undefined || key === undefined) return false;
      await remove(place, key, String(url));
      return true;
    });
  }

  /** Deletes everything, parts and remains included, but what is in use; resolves to the number of deleted files. */
  async clear(): Promise<number> {
    return inStorage(async () => {
      const place = await this.#openPlace();
      let nDeleted = 0;
      for (const key of place ? await keysIn(place) : []) {
        try {
          await remove(place as StorePlace, key, key);
          nDeleted += 1;
        } catch (error) {
          if (!(error instanceof BadOptionError)) throw error;
        }
      }
      return nDeleted;
    });
  }
}

async function entry(place: StorePlace, key: string): Promise<StoredModel | undefined> {
  // While another tab writes, its files may be out of reach for a moment.
  const found = recordOf(place, key).then((one) => one ?? removeRemains(place, key));
  const record = await found.catch(() => undefined);
  if (record === undefined) return undefined;
  const { url, bytes, totalBytes, sha256, savedAt } = record;
  return {
    url,
    isWhole: sha256 !== undefined,
    bytes,
    ...(totalBytes === undefined ? {} : { totalBytes }),
    ...(sha256 === undefined ? {} : { sha256 }),
    savedAt,
  };
}

async function keyOfUrl(place: StorePlace, url: string | URL): Promise<string | undefined> {
  const wanted = withoutFragment(absolute(url));
  for (const key of await keysIn(place)) {
    const record = await recordOf(place, key).catch(() => undefined);
    if (record !== undefined && withoutFragment(record.url) === wanted) return key;
  }
  return undefined;
}

/** As Engine.load() understands it: an address may be relative to the page. */
function absolute(url: string | URL): string {
  if (typeof url !== 'string' && !(url instanceof URL)) {
    const range = 'the URL that the model was loaded from';
    throw new BadOptionError(`modelStore: url is ${String(url)}; it must be ${range}`, {
      option: 'url',
      range,
    });
  }
  try {
    const base = globalThis.document?.baseURI ?? globalThis.location?.href;
    return new URL(url, base).href;
  } catch {
    return String(url);
  }
}

const withoutFragment = (url: string) => url.replace(/#.*$/, '');

/** A lock that is not free at once is in use: do not wait for a download's end. Rejects with AbortedError. */
function lockAtOnce(place: StorePlace, key: string): Promise<Release> {
  const impatience = new AbortController();
  const onWait = () => impatience.abort();
  return place.lock(lockName(key), 'exclusive', { signal: impatience.signal, onWait });
}

/** Data without a readable record: a tab was killed while it deleted them, or the record is damaged. */
async function removeRemains(place: StorePlace, key: string): Promise<undefined> {
  const release = await lockAtOnce(place, key);
  try {
    // A download that has just begun, and ended meanwhile.
    if ((await recordOf(place, key)) === undefined) await removeEntry(place, key);
  } finally {
    release();
  }
}

async function remove(place: StorePlace, key: string, what: string): Promise<void> {
  let release: Release;
  try {
    release = await lockAtOnce(place, key);
  } catch (error) {
    if (!(error instanceof AbortedError)) throw error;
    throw new BadOptionError(`${what} is being downloaded or loaded: try again when that is done`, {
      option: 'url',
      value: what,
    });
  }
  try {
    await removeEntry(place, key);
  } catch (error) {
    const { message } = asHeadlightError(error);
    throw new QuotaError(`${what} could not be deleted: ${message}`, {}, { cause: error });
  } finally {
    release();
  }
}
