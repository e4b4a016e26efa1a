// Whether bytes that come later belong to the same version of a file as those that came before: what the answers' headers
// say about it (RFC 9110, sections 8.8, 13.1.5 and 14). No network here.

/** What a server says about a version of a file. Readable from other origins only where the server allows it. */
export interface Validator {
  etag?: string;
  lastModified?: string;
  /** Last-Modified is old enough that the file cannot have changed again within its one-second resolution. */
  dateIsStrong?: boolean;
}

/** RFC 9110, 8.8.2.2, asks for one second by the server's own clock; a minute allows for rounding and caches. */
const STRONG_BY_SERVER_MS = 60_000;
/** By our clock, which may be wrong, where the server's date cannot be read. */
const STRONG_BY_US_MS = 24 * 3600_000;

export function validatorOf(headers: Headers, nowMs: number): Validator {
  const etag = headers.get('etag');
  const lastModified = headers.get('last-modified');
  const modifiedMs = Date.parse(lastModified ?? '');
  const serverMs = Date.parse(headers.get('date') ?? '');
  const strong = Number.isNaN(serverMs)
    ? nowMs - modifiedMs >= STRONG_BY_US_MS
    : serverMs - modifiedMs >= STRONG_BY_SERVER_MS;
  return {
    ...(etag === null ? {} : { etag }),
    ...(lastModified === null ? {} : { lastModified, dateIsStrong: strong }),
  };
}

/** The field that identifies a version byte by byte: for If-Range, and to compare. */
export function strongField(validator: Validator | undefined): string | undefined {
  if (validator?.etag !== undefined) {
    return validator.etag.startsWith('W/') ? undefined : validator.etag;
  }
  return validator?.dateIsStrong ? validator.lastModified : undefined;
}

/** Nothing that both name differs. */
export function mayBeSame(a: Validator | undefined, b: Validator): boolean {
  const differs = (x: string | undefined, y: string | undefined) =>
    x !== undefined && y !== undefined && x !== y;
  return !differs(a?.etag, b.etag) && !differs(a?.lastModified, b.lastModified);
}

/** Both name the same version by a strong field. */
export function isSame(a: Validator | undefined, b: Validator): boolean {
  const field = strongField(a);
  return field !== undefined && (field === b.etag || field === b.lastModified) && mayBeSame(a, b);
}

export interface ContentRange {
  start: number;
  end: number;
  /** Undefined: the server does not know ('*'). */
  totalBytes: number | undefined;
}

export function contentRange(headers: Headers): ContentRange | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(headers.get('content-range') ?? '');
  if (match === null) return undefined;
  const [start, end, total] = match.slice(1);
  return {
    start: Number(start),
    end: Number(end) + 1,
    totalBytes: total === '*' ? undefined : Number(total),
  };
}

/** Bytes of the body; undefined when unknown, or when it would count compressed bytes. */
export function bodyBytes(headers: Headers): number | undefined {
  const encoded = (headers.get('content-encoding') ?? 'identity') !== 'identity';
  const length = Number(headers.get('content-length') ?? Number.NaN);
  return !encoded && Number.isSafeInteger(length) ? length : undefined;
}
