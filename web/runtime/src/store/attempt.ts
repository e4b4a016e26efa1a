// One request for a file or the rest of it, and the reading of its answer: a success, a Fault (worth another try), a
// Mismatch (the rest is not that of the part at hand) or a final NetworkError.
import { AbortedError, NetworkError } from '../errors.js';
import { afterWakingTime } from '../waking_timer.js';
import {
  bodyBytes,
  contentRange,
  isSame,
  mayBeSame,
  strongField,
  type Validator,
  validatorOf,
} from './validator.js';

/** The leading part of a file that is at hand. */
export interface Have {
  bytes: number;
  totalBytes?: number;
  validator?: Validator;
}

/** Another request may do better. */
export class Fault extends Error {
  /** The server has answered. */
  readonly isAnswer: boolean;
  readonly details: Readonly<Record<string, number>>;
  constructor(message: string, status?: number) {
    super(message);
    this.isAnswer = status !== undefined;
    this.details = status === undefined ? {} : { status };
  }
}

/** The server has another version, or does not give parts. */
export class Mismatch extends Error {}

export interface AttemptContext {
  signal: AbortSignal;
  hashDecides: boolean;
  stallMs: number;
  bypassHttpCache: boolean;
  /** false: an answer with part of the file is compared here, by what it says of itself. */
  mayAskIfRange: boolean;
  /** No more than this is asked for; undefined for the rest of the file. */
  pieceBytes: number | undefined;
}

const REQUEST_TIMEOUT = 408;
const TOO_EARLY = 425;
const TOO_MANY = 429;
/** Answers of servers that are overloaded or being restarted. */
const PASSING = [REQUEST_TIMEOUT, TOO_EARLY, TOO_MANY, 500, 502, 503, 504];
const PARTIAL = 206;
const RANGE_NOT_SATISFIABLE = 416;
const REMEDIES: Readonly<Record<number, string>> = {
  401: 'the file needs a login: download it in the browser and open it from your disk',
  403: 'the server refuses access: the file may need a login, or the link has run out',
};

export class Attempt {
  /** The file's byte that the body begins with: that after the part, or 0 where the server gives the whole file. */
  readonly from: number;
  readonly totalBytes: number | undefined;
  readonly lengthIsExact: boolean;
  readonly validator: Validator;
  readonly contentType: string;
  /** The body ends with the piece that was asked for, not with the file. */
  readonly isPiece: boolean;
  readonly #response: Response;
  readonly #cancel: Cancel;

  /** Whether the rest could be asked for and recognised as the rest of this very part. */
  static canResume(have: Have, hashDecides: boolean): boolean {
    return have.bytes > 0 && (hashDecides || strongField(have.validator) !== undefined);
  }

  static async start(
    url: string,
    have: Have | undefined,
    context: AttemptContext,
  ): Promise<Attempt> {
    const cancel = new Cancel(context.signal);
    try {
      const response = await cancel.within(
        context.stallMs,
        fetch(url, requestFor(url, have, cancel, context)),
      );
      return new Attempt(url, response, cancel, have, context);
    } catch (error) {
      cancel.end();
      if (error instanceof Mismatch || error instanceof NetworkError) throw error;
      throw cancel.asFault(error);
    }
  }

  private constructor(
    url: string,
    response: Response,
    cancel: Cancel,
    have: Have | undefined,
    context: AttemptContext,
  ) {
    this.#response = response;
    this.#cancel = cancel;
    const { headers, status } = response;
    checkStatus(url, response, have, context);
    const range = contentRange(headers);
    const isPart = have !== undefined && status === PARTIAL;
    this.from = isPart ? have.bytes : 0;
    this.isPiece = status === PARTIAL && context.pieceBytes !== undefined;
    this.validator = validatorOf(headers, Date.now());
    this.contentType = headers.get('content-type') ?? '';
    const length = this.isPiece ? undefined : bodyBytes(headers);
    this.totalBytes = range?.totalBytes ?? (length === undefined ? undefined : this.from + length);
    // Of another origin's answer Content-Encoding cannot be read: its length may be that of compressed bytes.
    this.lengthIsExact =
      this.totalBytes !== undefined && (range !== undefined || response.type !== 'cors');
    if (isPart)
      this.#checkPart(have, range?.start, asksIfRange(url, have, context), context.hashDecides);
  }

  #checkPart(have: Have, start: number | undefined, asked: boolean, hashDecides: boolean): void {
    const { totalBytes } = this;
    if (start !== undefined && start !== have.bytes)
      throw new Mismatch('the server gave another part');
    if (have.totalBytes !== undefined && totalBytes !== undefined && totalBytes !== have.totalBytes)
      throw new Mismatch(`it has ${totalBytes} bytes now and had ${have.totalBytes}`);
    // The server has compared by itself, or we do.
    const recognised = asked || hashDecides;
    const same = recognised
      ? mayBeSame(have.validator, this.validator)
      : isSame(have.validator, this.validator);
    if (!same) throw new Mismatch('the server has another version');
  }

  /** The body. Throws Fault or AbortedError. */
  async *chunks(stallMs: number): AsyncGenerator<Uint8Array> {
    const reader = this.#response.body?.getReader();
    if (reader === undefined) return;
    for (;;) {
      let next: ReadableStreamReadResult<Uint8Array>;
      try {
        next = await this.#cancel.within(stallMs, reader.read());
      } catch (error) {
        throw this.#cancel.asFault(error);
      }
      if (next.done) return;
      yield next.value;
    }
  }

  /** Whoever stops early does not want the rest. */
  end(): void {
    this.#cancel.end();
  }
}

function requestFor(
  url: string,
  have: Have | undefined,
  cancel: Cancel,
  context: AttemptContext,
): RequestInit {
  const headers: Record<string, string> = {};
  const { pieceBytes } = context;
  const from = have?.bytes ?? 0;
  if (pieceBytes !== undefined) headers.range = `bytes=${from}-${from + pieceBytes - 1}`;
  else if (have !== undefined) headers.range = `bytes=${from}-`;
  if (have !== undefined) {
    const field = strongField(have.validator);
    if (field !== undefined && asksIfRange(url, have, context)) headers['if-range'] = field;
  }
  return {
    headers,
    signal: cancel.signal,
    cache: context.bypassHttpCache ? 'no-store' : 'default',
  };
}

/** From another origin If-Range would force a preflight, which many servers refuse: there the answer is compared. */
function asksIfRange(url: string, have: Have, { mayAskIfRange }: AttemptContext): boolean {
  return mayAskIfRange && isSameOrigin(url) && strongField(have.validator) !== undefined;
}

/** Without a page there are no origins, and every header can be read. */
function isSameOrigin(url: string): boolean {
  const here = (globalThis as { location?: { origin: string } }).location?.origin;
  return here === undefined || new URL(url).origin === here;
}

function checkStatus(
  url: string,
  { status, statusText }: Response,
  have: Have | undefined,
  { pieceBytes }: AttemptContext,
): void {
  const askedForPart = have !== undefined || pieceBytes !== undefined;
  if (askedForPart && status === RANGE_NOT_SATISFIABLE) throw new Mismatch('it is shorter now');
  if (status === 200 || (status === PARTIAL && askedForPart)) return;
  const said = `answered ${status} ${statusText}`.trimEnd();
  if (PASSING.includes(status)) throw new Fault(said, status);
  const remedy = REMEDIES[status] ?? 'check the address';
  throw new NetworkError(`${url} ${said}: ${remedy}`, { url, status });
}

/** Ends one request: when the caller's signal fires, when nothing comes for too long, or when it is not wanted any more. */
class Cancel {
  readonly #own = new AbortController();
  readonly #callers: AbortSignal;
  readonly #forward = () => this.#own.abort();
  #stalledAfterMs = 0;

  constructor(callers: AbortSignal) {
    this.#callers = callers;
    if (callers.aborted) this.#own.abort();
    else callers.addEventListener('abort', this.#forward, { once: true });
  }

  get signal(): AbortSignal {
    return this.#own.signal;
  }

  async within<T>(ms: number, work: Promise<T>): Promise<T> {
    const end = afterWakingTime(ms, () => {
      this.#stalledAfterMs = ms;
      this.#own.abort();
    });
    return work.finally(end);
  }

  asFault(error: unknown): Error {
    if (this.#callers.aborted) return new AbortedError();
    if (error instanceof Fault) return error;
    if (this.#stalledAfterMs > 0)
      return new Fault(`no byte came for ${this.#stalledAfterMs / 1000} s`);
    return new Fault(error instanceof Error ? error.message : String(error));
  }

  end(): void {
    this.#callers.removeEventListener('abort', this.#forward);
    this.#own.abort();
  }
}
