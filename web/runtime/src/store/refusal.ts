// What a browser answers where its storage is forbidden, or holds what Headlight has not put there, as an error with a remedy.
import { asHeadlightError, HeadlightError, QuotaError } from '../errors.js';

export async function inStorage<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof HeadlightError) throw thrown;
    throw new QuotaError(
      `The browser's storage cannot be used: ${asHeadlightError(thrown).message}. Private windows and blocked site data forbid ` +
        'it: allow site data for this page, or do without storage.',
      {},
      { cause: thrown },
    );
  }
}
