// One file from the network as a stream of chunks that goes on after faults: broken connections, stalls, servers that are
// busy. It takes up where it was only when it is certain that the file is still the same; otherwise it throws StartAnew.
// It stores nothing (stored_source.ts does) and does not look at the bytes.
import { AbortedError, type HeadlightError, NetworkError, shownAddress } from '../errors.js';
import { Attempt, Fault, type Have, Mismatch } from './attempt.js';
import type { Validator } from './validator.js';

export interface TransferOptions {
  /** How often in a row a fault is answered by another request; bytes that arrive start the count anew. */
  retries: number;
  /** Pause before the second request; doubles each time, up to maxBackoffMs, and varies by half. */
  backoffMs: number;
  maxBackoffMs: number;
  /** No byte for so long is a fault. */
  stallMs: number;
  /** The browser's own cache would keep a second copy of what the store keeps. */
  bypassHttpCache: boolean;
  /**
   * For who reads no further than a header: the file is asked for in pieces, this long and then twice as long each time, so that
   * the server sends no more than is read. undefined: in one request.
   */
  pieceBytes: number | undefined;
}

export const DEFAULT_RETRIES = 5;
/** Where nothing ever came: most often a wrong address, no network, or a server that does not allow this page (CORS). */
const RETRIES_BEFORE_FIRST_ANSWER = 2;

export const TRANSFER_DEFAULTS: TransferOptions = {
  retries: DEFAULT_RETRIES,
  backoffMs: 500,
  maxBackoffMs: 10_000,
  stallMs: 30_000,
  bypassHttpCache: false,
  pieceBytes: undefined,
};

/** What was given so far cannot be completed: whoever took it must begin again with the first byte. */
export class StartAnew extends Error {
  /** What to report when that is not done. */
  readonly failure: HeadlightError;
  constructor(failure: HeadlightError) {
    super(failure.message, { cause: failure });
    this.failure = failure;
  }
}

export interface TransferContext {
  signal: AbortSignal;
  /** The bytes will be hashed and compared: a version need not be certain, only possible. */
  hashDecides: boolean;
}

export class Transfer {
  readonly url: string;
  /** The file's byte that the first chunk begins with: Have.bytes where that part could be continued, else 0. */
  startsAt = 0;
  totalBytes: number | undefined;
  /** false: totalBytes may count compressed bytes; for showing only. */
  lengthIsExact = false;
  validator: Validator = {};
  contentType = '';
  readonly #context: TransferContext;
  readonly #options: TransferOptions;
  #attempt: Attempt | undefined;
  #received = 0;
  #faults = 0;
  #answered = false;
  #mayAskIfRange = true;
  #pieceBytes: number | undefined;

  /**
   * Resolves when the server has answered with success. Rejects with NetworkError or AbortedError. Nothing is requested
   * where all bytes are there.
   */
  static async open(
    url: string,
    have: Have | undefined,
    context: TransferContext,
    options: TransferOptions,
  ): Promise<Transfer> {
    const transfer = new Transfer(url, context, options);
    const resumable = have !== undefined && Attempt.canResume(have, context.hashDecides);
    await transfer.#open(resumable ? have : undefined);
    return transfer;
  }

  private constructor(url: string, context: TransferContext, options: TransferOptions) {
    this.url = url;
    // A header is only looked at: the load checks for itself what it is given.
    const isLook = options.pieceBytes !== undefined;
    this.#context = { ...context, hashDecides: context.hashDecides || isLook };
    this.#options = options;
    this.#pieceBytes = options.pieceBytes;
  }

  async #open(have: Have | undefined): Promise<void> {
    if (have?.totalBytes !== undefined && have.bytes === have.totalBytes) {
      this.#startFrom(have);
      return;
    }
    let wanted = have;
    while (this.#attempt === undefined) {
      try {
        this.#attempt = await this.#request(wanted);
        if (this.#attempt.from === 0) wanted = undefined;
        if (wanted !== undefined) this.#startFrom(wanted);
      } catch (error) {
        // The part is of no use any more: the whole file is asked for.
        if (error instanceof Mismatch) wanted = undefined;
        else await this.#pause(error);
      }
    }
    const { totalBytes, lengthIsExact, validator, contentType } = this.#attempt;
    this.totalBytes = totalBytes ?? wanted?.totalBytes;
    this.lengthIsExact = lengthIsExact;
    this.validator = this.startsAt > 0 ? { ...wanted?.validator, ...validator } : validator;
    this.contentType = contentType;
  }

  #startFrom({ bytes, totalBytes, validator = {} }: Have): void {
    this.startsAt = bytes;
    this.#received = bytes;
    this.totalBytes = totalBytes;
    this.lengthIsExact = totalBytes !== undefined;
    this.validator = validator;
  }

  /** Bytes from startsAt to the end. Ending early ends the request. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    try {
      while (!this.#isComplete()) {
        try {
          this.#attempt ??= await this.#continue();
          for await (const chunk of this.#attempt.chunks(this.#options.stallMs)) {
            this.#received += chunk.length;
            this.#faults = 0;
            yield chunk;
          }
          if (this.#takesNextPiece()) continue;
          if (this.#isWhole()) return;
          throw new Fault('it ended before its length');
        } catch (error) {
          this.#attempt?.end();
          this.#attempt = undefined;
          await this.#pause(error);
          this.#mayContinue(error);
        }
      }
    } finally {
      this.#attempt?.end();
    }
  }

  /** For who does not want the chunks. */
  end(): void {
    this.#attempt?.end();
  }

  #isComplete(): boolean {
    return this.#attempt === undefined && this.lengthIsExact && this.#received === this.totalBytes;
  }

  /** At the end of a body. A length that may be of compressed bytes says nothing. */
  #isWhole(): boolean {
    return (
      !this.lengthIsExact || this.totalBytes === undefined || this.#received >= this.totalBytes
    );
  }

  /** The piece that was asked for has come, and there may be more. */
  #takesNextPiece(): boolean {
    const piece = this.#pieceBytes;
    const attempt = this.#attempt;
    if (piece === undefined || !attempt?.isPiece) return false;
    if (this.#received < attempt.from + piece || this.#received === this.totalBytes) return false;
    attempt.end();
    this.#attempt = undefined;
    this.#pieceBytes = 2 * piece;
    return true;
  }

  #soFar(): Have | undefined {
    if (this.#received === 0) return undefined;
    return {
      bytes: this.#received,
      ...(this.totalBytes === undefined || !this.lengthIsExact
        ? {}
        : { totalBytes: this.totalBytes }),
      validator: this.validator,
    };
  }

  async #continue(): Promise<Attempt> {
    const attempt = await this.#request(this.#soFar());
    if (attempt.from === this.#received) return attempt;
    attempt.end();
    throw new Mismatch('the server gives the whole file only');
  }

  async #request(have: Have | undefined): Promise<Attempt> {
    const { stallMs, bypassHttpCache } = this.#options;
    const mayAskIfRange = this.#mayAskIfRange;
    const pieceBytes = this.#pieceBytes;
    const context = { ...this.#context, stallMs, bypassHttpCache, mayAskIfRange, pieceBytes };
    try {
      const attempt = await Attempt.start(this.url, have, context);
      this.#answered = true;
      return attempt;
    } catch (error) {
      // This site's address may lead to another site, where the preflight that If-Range asks for is refused.
      if (error instanceof Fault && !error.isAnswer) this.#mayAskIfRange = false;
      // Old browsers ask another site first whether they may send Range, which many sites refuse.
      if (!(error instanceof Fault && error.isAnswer)) this.#pieceBytes = undefined;
      throw error;
    }
  }

  /** Throws where the fault is final or was met too often. */
  async #pause(error: unknown): Promise<void> {
    if (this.#context.signal.aborted) throw new AbortedError();
    if (error instanceof Mismatch) return;
    if (!(error instanceof Fault)) throw error;
    this.#answered ||= error.isAnswer;
    const { retries, backoffMs, maxBackoffMs } = this.#options;
    const allowed = this.#answered ? retries : Math.min(retries, RETRIES_BEFORE_FIRST_ANSWER);
    if (this.#faults >= allowed) throw this.#failed(error);
    const pauseMs = Math.min(maxBackoffMs, backoffMs * 2 ** this.#faults);
    this.#faults += 1;
    await sleep(pauseMs * (0.75 + Math.random() / 2), this.#context.signal);
  }

  /** Bytes were given: only the same version can go on behind them. */
  #mayContinue(error: unknown): void {
    const have = this.#soFar();
    if (have === undefined) return;
    if (error instanceof Mismatch) {
      const message = `${this.url} changed at byte ${have.bytes} of its download (${error.message}): try again`;
      throw new StartAnew(new NetworkError(message, this.#details()));
    }
    if (!Attempt.canResume(have, this.#context.hashDecides)) {
      throw new StartAnew(this.#failed(error));
    }
  }

  #failed(error: unknown): NetworkError {
    const fault = error as Fault;
    const details = { ...this.#details(), ...fault.details };
    return new NetworkError(this.#what(fault), details, { cause: fault });
  }

  #what({ message, isAnswer }: Fault): string {
    if (this.#received > 0)
      return `The download of ${this.url} broke off after ${this.#received} bytes (${message}): try again`;
    if (isAnswer) return `${this.url} ${message}: its server is busy or broken, try again later`;
    if (!/^https?:/i.test(this.url)) {
      return (
        `${shownAddress(this.url)} could not be fetched (${message}): the page's Content-Security-Policy must allow ` +
        'it (connect-src). Or pass the Blob or the bytes themselves.'
      );
    }
    return (
      `${this.url} could not be fetched (${message}): check the connection, and that its server allows this page ` +
      '(CORS)'
    );
  }

  #details() {
    return { url: this.url, receivedBytes: this.#received };
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = () => {
      signal.removeEventListener('abort', left);
      resolve();
    };
    const timer = setTimeout(done, ms);
    const left = () => {
      clearTimeout(timer);
      reject(new AbortedError());
    };
    if (signal.aborted) left();
    else signal.addEventListener('abort', left, { once: true });
  });
}
