// The store's place in a browser: a folder of the origin private file system. Reading, listing and removing work on every
// thread; open() needs a dedicated worker, since only there are synchronous handles.
import { localLock, webLock } from './locks.js';
import type { StoreFile, StorePlace } from './place.js';
import type { SessionPlace } from './session_store.js';

const FOLDER = 'headlight-models';
/** The handle of a worker that was just ended may live on for a moment. */
const OPEN_TRIES = 20;
const OPEN_PAUSE_MS = 50;

/** In the type library of workers only. */
interface SyncFileHandle {
  createSyncAccessHandle?: () => Promise<StoreFile>;
}

const threadLock = localLock();

/** Undefined: the browser has no such file system. Throws where it has one and forbids it (private windows). */
export async function openOpfs(): Promise<StorePlace | undefined> {
  // Missing outside secure contexts and in old browsers, whatever the type library says.
  const storage = globalThis.navigator?.storage as StorageManager | undefined;
  if (typeof storage?.getDirectory !== 'function') return undefined;
  const root = await storage.getDirectory();
  const folder = await root.getDirectoryHandle(FOLDER, { create: true });
  const locks = globalThis.navigator.locks as LockManager | undefined;
  return {
    names: () => namesOf(folder),
    open: async (name) => openFile(await folder.getFileHandle(name, { create: true })),
    read: (name) =>
      orUndefined(async () => {
        const handle = await folder.getFileHandle(name);
        return handle.getFile();
      }),
    remove: async (name) => {
      await orUndefined(() => folder.removeEntry(name));
    },
    freeBytes: () => freeBytesOf(storage),
    lock: locks === undefined ? threadLock : webLock(locks),
  };
}

const SESSIONS = 'headlight-sessions';

/** Saved sessions. A writable stream takes effect as a whole when it is closed. Undefined: no such file system. */
export async function openSessions(): Promise<SessionPlace | undefined> {
  const storage = globalThis.navigator?.storage as StorageManager | undefined;
  if (typeof storage?.getDirectory !== 'function') return undefined;
  const root = await storage.getDirectory();
  const folder = await root.getDirectoryHandle(SESSIONS, { create: true });
  return {
    names: () => namesOf(folder),
    read: (name) =>
      orUndefined(async () => {
        const data = await (await folder.getFileHandle(name)).getFile();
        return { data, savedAt: data.lastModified };
      }),
    async write(name, bytes) {
      const handle = await folder.getFileHandle(name, { create: true });
      const writable = await handle.createWritable();
      try {
        await writable.write(bytes as Uint8Array<ArrayBuffer>);
        await writable.close();
      } catch (error) {
        await writable.abort().catch(() => {});
        throw error;
      }
    },
    remove: async (name) =>
      (await orUndefined(async () => {
        await folder.removeEntry(name);
        return true;
      })) ?? false,
  };
}

async function namesOf(folder: FileSystemDirectoryHandle): Promise<string[]> {
  const names: string[] = [];
  for await (const name of folder.keys()) names.push(name);
  return names;
}

async function openFile(handle: FileSystemFileHandle & SyncFileHandle): Promise<StoreFile> {
  if (handle.createSyncAccessHandle === undefined) {
    throw new DOMException('this browser cannot write files from a worker', 'NotSupportedError');
  }
  for (let tried = 1; ; tried++) {
    try {
      return await handle.createSyncAccessHandle();
    } catch (error) {
      const isOpen = error instanceof DOMException && OPEN_ELSEWHERE.includes(error.name);
      if (!isOpen || tried === OPEN_TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, OPEN_PAUSE_MS));
    }
  }
}

/** As Chromium and Firefox name it. */
const OPEN_ELSEWHERE = ['NoModificationAllowedError', 'InvalidStateError'];

async function orUndefined<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DOMException && error.name === 'NotFoundError') return undefined;
    throw error;
  }
}

async function freeBytesOf(storage: StorageManager): Promise<number | undefined> {
  try {
    const { quota, usage } = await storage.estimate();
    return quota === undefined ? undefined : quota - (usage ?? 0);
  } catch {
    return undefined;
  }
}
