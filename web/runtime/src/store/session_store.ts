// Saved sessions in the browser's storage, by name: put, get, list, delete. What it keeps are the bytes of session.save();
// it does not look into them, engine.restore() does.
import { asHeadlightError, BadOptionError, QuotaError } from '../errors.js';
import { inStorage } from './refusal.js';

export interface SavedSession {
  name: string;
  bytes: number;
  /** Milliseconds since 1970. */
  savedAt: number;
}

/** Where they are: a flat folder whose writes take effect as a whole, when they are done, or not at all. */
export interface SessionPlace {
  names(): Promise<string[]>;
  read(fileName: string): Promise<{ data: Blob; savedAt: number } | undefined>;
  write(fileName: string, bytes: Uint8Array): Promise<void>;
  remove(fileName: string): Promise<boolean>;
}

const SUFFIX = '.session';
/** File systems take 255 bytes, and a character may become nine ("%E2%82%AC"). */
const MAX_FILE_NAME = 240;

function fileNameOf(name: unknown): string {
  const range = 'a name of 1 to about 200 characters';
  let encoded = '';
  try {
    if (typeof name === 'string') encoded = encodeURIComponent(name);
  } catch {
    // Half a surrogate pair.
  }
  if (encoded !== '' && encoded.length + SUFFIX.length <= MAX_FILE_NAME) return encoded + SUFFIX;
  throw new BadOptionError(`sessionStore: name is ${JSON.stringify(name)}; it must be ${range}`, {
    option: 'name',
    range,
  });
}

/** Undefined for a file that put() has not made. */
function nameOf(fileName: string): string | undefined {
  if (!fileName.endsWith(SUFFIX)) return undefined;
  try {
    return decodeURIComponent(fileName.slice(0, -SUFFIX.length));
  } catch {
    return undefined;
  }
}

export class SessionStore {
  readonly #open: () => Promise<SessionPlace | undefined>;

  /** @internal */
  constructor(open: () => Promise<SessionPlace | undefined>) {
    this.#open = open;
  }

  /**
   * Keeps the bytes under a name, in place of what was there; a tab that dies meanwhile leaves what was there. Rejects with
   * QuotaError where there is no storage or not enough of it.
   */
  async put(name: string, bytes: Uint8Array): Promise<void> {
    const fileName = fileNameOf(name);
    if (!(bytes instanceof Uint8Array)) {
      const range = 'the Uint8Array that session.save() resolved to';
      throw new BadOptionError(`sessionStore.put: bytes is ${String(bytes)}; it must be ${range}`, {
        option: 'bytes',
        range,
      });
    }
    try {
      const place = await this.#open();
      if (place === undefined) throw new QuotaError('there is no storage for files here');
      await place.write(fileName, bytes);
    } catch (error) {
      const { message } = asHeadlightError(error);
      throw new QuotaError(
        `The session '${name}' could not be kept in the browser's storage: ${message}. Free some space, or keep the bytes of ` +
          'session.save() elsewhere.',
        { neededBytes: bytes.byteLength },
        { cause: error },
      );
    }
  }

  /** Undefined where there is none of that name. */
  async get(name: string): Promise<Uint8Array | undefined> {
    const fileName = fileNameOf(name);
    return inStorage(async () => {
      const found = await (await this.#open())?.read(fileName);
      return found === undefined ? undefined : new Uint8Array(await found.data.arrayBuffer());
    });
  }

  /** The latest first. Empty where there is no storage. */
  async list(): Promise<SavedSession[]> {
    return inStorage(async () => {
      const place = await this.#open();
      const sessions: SavedSession[] = [];
      for (const fileName of (await place?.names()) ?? []) {
        const name = nameOf(fileName);
        if (name === undefined) continue;
        const found = await place?.read(fileName);
        if (found) sessions.push({ name, bytes: found.data.size, savedAt: found.savedAt });
      }
      return sessions.sort((a, b) => b.savedAt - a.savedAt);
    });
  }

  /** Resolves to whether there was one. */
  async delete(name: string): Promise<boolean> {
    const fileName = fileNameOf(name);
    return inStorage(async () => (await (await this.#open())?.remove(fileName)) ?? false);
  }
}
