// Functions of the user's that are called while a call is under way. What one throws ends the call that it belongs to:
// thrown into the event loop it would end a whole Node process, and in a page nobody would connect it with the call.
import { asHeadlightError, BadOptionError } from './errors.js';

/** Throws BadOptionError with what the callback threw as its cause; an AbortError, as of throwIfAborted(), stays one. */
export function callBack<T>(
  name: string,
  callback: ((value: T) => void) | undefined,
  value: T,
): void {
  try {
    callback?.(value);
  } catch (thrown) {
    const error = asHeadlightError(thrown);
    if (error.code === 'Aborted') throw error;
    throw new BadOptionError(
      `${name} threw, which ends the call: ${error.message}. Catch inside it what should not.`,
      { option: name },
      { cause: thrown },
    );
  }
}
