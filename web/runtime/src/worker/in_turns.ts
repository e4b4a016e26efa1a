// Long work of the module in pieces, between which other requests and a stop come through.
import { AbortedError } from '../errors.js';
import type { RunContext } from './generation.js';

/** What `advance` gives in the end; null is for more to be done. Throws AbortedError when the signal has fired. */
export async function inTurns<T>(
  advance: () => T | null,
  { signal, nextTurn }: Pick<RunContext, 'signal' | 'nextTurn'>,
): Promise<T> {
  for (;;) {
    const done = advance();
    if (done !== null) return done;
    await nextTurn();
    if (signal.aborted) throw new AbortedError();
  }
}
