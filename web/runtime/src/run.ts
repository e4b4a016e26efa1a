// A generation under way as the user holds it: an async iterator over chunks, and a promise of the result. Either can be
// used alone. It buffers what has arrived; it decides nothing about the generation itself.
import { callBack } from './callbacks.js';
import type { Connection } from './connection.js';
import { asHeadlightError, BadOptionError, type HeadlightError } from './errors.js';
import { badOption, callback } from './options.js';
import type { RequestEvent, Requests } from './protocol.js';
import { raise, type StopFlag } from './stop_flag.js';
import type { GenerateChunk, GenerateResult, PrefillProgress, Run } from './types.js';

type Step = IteratorResult<GenerateChunk, undefined>;
interface Waiter {
  resolve(step: Step): void;
  reject(error: HeadlightError): void;
}

const END: Step = { done: true, value: undefined };

export class RunHandle implements Run {
  readonly #connection: Connection;
  readonly #id: number;
  readonly #result: Promise<GenerateResult>;
  readonly #chunks: GenerateChunk[] = [];
  readonly #waiters: Waiter[] = [];
  readonly #prefillListeners: ((progress: PrefillProgress) => void)[] = [];
  #stopFlag: StopFlag | undefined;
  #ended = false;
  #error: HeadlightError | undefined;
  #iterated = false;

  constructor(connection: Connection, body: Requests['generate'], signal: AbortSignal | undefined) {
    this.#connection = connection;
    const { id, reply } = connection.call('generate', body, (event) => this.#onEvent(event));
    this.#id = id;
    const onAbort = () => this.abort();
    this.#result = reply
      .finally(() => signal?.removeEventListener('abort', onAbort))
      .then(
        (result) => {
          this.#end(undefined);
          return result;
        },
        (thrown: unknown) => {
          const error = asHeadlightError(thrown);
          this.#end(error);
          throw error;
        },
      );
    // Who only iterates gets the error there; the promise must not be reported as unhandled then.
    this.#result.catch(() => {});
    if (!body.aborted) signal?.addEventListener('abort', onAbort, { once: true });
  }

  result(): Promise<GenerateResult> {
    return this.#result;
  }

  abort(): void {
    if (this.#ended) return;
    if (this.#stopFlag !== undefined) raise(this.#stopFlag);
    this.#connection.cancel(this.#id);
  }

  onPrefill(listener: (progress: PrefillProgress) => void): this {
    if (!callback.accepts(listener))
      throw badOption('onPrefill', 'listener', listener, callback.range);
    this.#prefillListeners.push(listener);
    return this;
  }

  [Symbol.asyncIterator](): AsyncIterator<GenerateChunk, undefined> {
    if (this.#iterated) {
      throw new BadOptionError(
        'A run can be iterated once. Keep the chunks, or await result() for the whole text.',
      );
    }
    this.#iterated = true;
    return {
      next: () => this.#next(),
      return: async () => {
        this.abort();
        this.#error = undefined;
        this.#chunks.length = 0;
        this.#end(undefined);
        return END as IteratorReturnResult<undefined>;
      },
    };
  }

  async #next(): Promise<Step> {
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) return { done: false, value: chunk };
    if (this.#error !== undefined) {
      const error = this.#error;
      this.#error = undefined;
      throw error;
    }
    if (this.#ended) return END;
    return new Promise<Step>((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  #onEvent(event: RequestEvent): void {
    if (this.#ended) return;
    if (event.type === 'chunk') {
      const waiter = this.#waiters.shift();
      if (waiter !== undefined) waiter.resolve({ done: false, value: event.chunk });
      else this.#chunks.push(event.chunk);
    } else if (event.type === 'prefill') {
      for (const listener of this.#prefillListeners)
        callBack('onPrefill', listener, event.progress);
    } else if (event.type === 'stopFlag') {
      this.#stopFlag = event.flag;
    }
  }

  #end(error: HeadlightError | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    for (const waiter of this.#waiters.splice(0)) {
      if (this.#error === undefined) waiter.resolve(END);
      else {
        waiter.reject(this.#error);
        this.#error = undefined;
      }
    }
  }
}
