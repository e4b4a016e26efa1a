// Requests and their answers over one worker: ids, events of requests under way, what happens when the worker dies.
// It does not know what a request does, and it never lets a call wait for an answer that cannot come.
import type { Endpoint } from './endpoint.js';
import {
  asHeadlightError,
  BadOptionError,
  fromWire,
  type HeadlightError,
  WorkerLostError,
} from './errors.js';
import type {
  FromWorker,
  Note,
  Replies,
  Request,
  RequestEvent,
  Requests,
  RequestType,
} from './protocol.js';

interface Pending {
  resolve(value: unknown): void;
  reject(error: HeadlightError): void;
  onEvent: ((event: RequestEvent) => void) | undefined;
}

export interface Call<K extends RequestType> {
  readonly id: number;
  readonly reply: Promise<Replies[K]>;
}

export class Connection {
  readonly #endpoint: Endpoint;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #closedBy: HeadlightError | undefined;
  /** What to do when the worker is lost, as a sentence: what works over this connection knows. */
  remedy = '';

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
    endpoint.listen(
      (message) => this.#receive(message),
      (why) => this.#lose(`The worker was lost: ${why}`),
    );
  }

  /** What every call from now on fails with, once the connection is closed. */
  get closedBy(): HeadlightError | undefined {
    return this.#closedBy;
  }

  call<K extends RequestType>(
    type: K,
    body: Requests[K],
    onEvent?: (event: RequestEvent) => void,
    transfer?: ArrayBuffer[],
  ): Call<K> {
    const id = this.#nextId++;
    if (this.#closedBy !== undefined) return { id, reply: Promise.reject(this.#closedBy) };
    const reply = new Promise<Replies[K]>((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as (value: unknown) => void, reject, onEvent });
    });
    if (this.#pending.size === 1) this.#endpoint.setBusy(true);
    try {
      this.#endpoint.post({ type, id, body } as Request, transfer);
    } catch (error) {
      // A value that cannot be cloned, e.g. a function among the tools.
      this.#settle(id)?.reject(asUncloneable(error));
    }
    return { id, reply };
  }

  request<K extends RequestType>(type: K, body: Requests[K]): Promise<Replies[K]> {
    return this.call(type, body).reply;
  }

  note(note: Note, transfer?: ArrayBuffer[]): void {
    if (this.#closedBy === undefined) this.#endpoint.post(note, transfer);
  }

  cancel(id: number): void {
    if (this.#pending.has(id)) this.note({ type: 'cancel', id });
  }

  /** Ends the worker; calls under way and later ones are rejected. */
  async close(
    pendingError: HeadlightError,
    laterError: HeadlightError = pendingError,
  ): Promise<void> {
    if (this.#closedBy === undefined) this.#fail(pendingError, laterError);
    else this.#closedBy = laterError;
    await this.#endpoint.terminate();
  }

  #receive(message: FromWorker): void {
    if (this.#closedBy !== undefined) return;
    switch (message.type) {
      case 'done':
        this.#settle(message.id)?.resolve(message.value);
        return;
      case 'failed':
        this.#settle(message.id)?.reject(fromWire(message.error));
        return;
      case 'fatal':
        this.#lose(message.why);
        return;
      default:
        this.#hear(message);
    }
  }

  /** A listener that throws ends its call: there is nobody else here who could take the error. */
  #hear(event: RequestEvent): void {
    try {
      this.#pending.get(event.id)?.onEvent?.(event);
    } catch (thrown) {
      this.cancel(event.id);
      this.#settle(event.id)?.reject(asHeadlightError(thrown));
    }
  }

  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#endpoint.setBusy(false);
    return pending;
  }

  #lose(why: string): void {
    if (this.#closedBy !== undefined) return;
    const error = new WorkerLostError(this.remedy === '' ? why : `${why}. ${this.remedy}`);
    this.#fail(error, error);
    void this.#endpoint.terminate();
  }

  #fail(pendingError: HeadlightError, laterError: HeadlightError): void {
    this.#closedBy = laterError;
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    this.#endpoint.setBusy(false);
    for (const pending of waiting) pending.reject(pendingError);
  }
}

function asUncloneable(thrown: unknown): BadOptionError {
  return new BadOptionError(
    `An argument cannot be sent to the worker: ${asHeadlightError(thrown).message}. Pass plain data, no functions.`,
    {},
    { cause: thrown },
  );
}
