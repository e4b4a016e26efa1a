// Locks that several may share or one may have alone: between tabs where the browser has Web Locks, else within this thread.
import { AbortedError } from '../errors.js';
import type { LockMode, LockWait, Release } from './place.js';

export type Lock = (name: string, mode: LockMode, wait: LockWait) => Promise<Release>;

/** Over navigator.locks. The browser frees the locks of a tab or worker that has died. */
export function webLock(locks: LockManager): Lock {
  const take = (name: string, options: LockOptions): Promise<Release | undefined> =>
    new Promise((resolve, reject) => {
      const held = locks.request(name, options, (lock) => {
        if (lock === null) return resolve(undefined);
        return new Promise<void>((release) => resolve(release));
      });
      held.catch(reject);
    });
  return async (name, mode, { signal, onWait }) => {
    if (signal.aborted) throw new AbortedError();
    const free = await take(name, { mode, ifAvailable: true });
    if (free !== undefined) return free;
    onWait();
    try {
      const got = await take(name, { mode, signal });
      return got as Release;
    } catch (error) {
      if (signal.aborted) throw new AbortedError();
      throw error;
    }
  };
}

interface Held {
  shared: number;
  exclusive: boolean;
  waiting: (() => void)[];
}

/** First come, first served is not promised. */
export function localLock(): Lock {
  const all = new Map<string, Held>();
  return async (name, mode, { signal, onWait }) => {
    const held = all.get(name) ?? { shared: 0, exclusive: false, waiting: [] };
    all.set(name, held);
    const isFree = () => !held.exclusive && (mode === 'shared' || held.shared === 0);
    if (!signal.aborted && !isFree()) onWait();
    while (!signal.aborted && !isFree()) {
      await new Promise<void>((wake) => {
        held.waiting.push(wake);
        signal.addEventListener('abort', () => wake(), { once: true });
      });
    }
    if (signal.aborted) throw new AbortedError();
    if (mode === 'shared') held.shared += 1;
    else held.exclusive = true;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      if (mode === 'shared') held.shared -= 1;
      else held.exclusive = false;
      for (const wake of held.waiting.splice(0)) wake();
    };
  };
}
