// Whether the server has another version of a stored file than the one that is stored. Asked only where the caller wishes it;
// a server that cannot be reached, or does not tell, has none.
import type { StoreRecord } from './record.js';
import { bodyBytes, mayBeSame, validatorOf } from './validator.js';

/** A page that starts without a network must not wait long for it. */
const PATIENCE_MS = 4000;

export async function isOutdated(
  { url, validator, totalBytes }: StoreRecord,
  signal: AbortSignal,
  notices: string[],
): Promise<boolean> {
  const impatience = new AbortController();
  const stop = () => impatience.abort();
  const timer = setTimeout(stop, PATIENCE_MS);
  signal.addEventListener('abort', stop);
  try {
    // HEAD and a comparison here: conditional headers would cost other origins a preflight request.
    const response = await fetch(url, {
      method: 'HEAD',
      cache: 'no-store',
      signal: impatience.signal,
    });
    if (!response.ok) {
      notices.push(`the stored copy was used: its server answered ${response.status}`);
      return false;
    }
    const nBytes = bodyBytes(response.headers);
    const hasOtherLength = nBytes !== undefined && nBytes !== (totalBytes ?? nBytes);
    const isOther =
      hasOtherLength || !mayBeSame(validator, validatorOf(response.headers, Date.now()));
    if (isOther) notices.push('the stored copy was outdated: its server has another version');
    return isOther;
  } catch {
    if (!signal.aborted) notices.push('the stored copy was used: its server cannot be reached');
    return false;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}
