// A promise that an AbortSignal can end at once, whatever the work behind it is doing.
import { AbortedError } from './errors.js';

/** Rejects with AbortedError as soon as the signal fires, after calling `cancel`, which tells those who work. */
export async function abortable<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  cancel: () => void,
): Promise<T> {
  if (signal === undefined) return work;
  // Once aborted, nobody waits for the work any more; its failure must not be reported as unhandled.
  work.catch(() => {});
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => {
      cancel();
      reject(new AbortedError());
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  return Promise.race([work, aborted]).finally(() => signal.removeEventListener('abort', onAbort));
}
