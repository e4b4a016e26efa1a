// Watches from the page how a module with threads starts in its worker: a browser may hang there and say nothing.
import { type HeadlightError, WorkerLostError } from './errors.js';
import type { StartStep } from './protocol.js';

/**
 * How long a thread pool may take once its module is compiled. Starting a worker takes 5-50 ms; where threads hang
 * (seen on iOS) they hang for good.
 */
const POOL_READY_MS = 10_000;

/**
 * A worker that makes a worker waits in `new Worker` for the page's thread. Firefox 153 sometimes never returns from there (on
 * a busy machine in 1 of 60 loads). It is given up when the page's thread was free to answer so many times in a row; a page
 * that is busy itself delays the looks as well.
 */
const LOOK_MS = 250;
const MAX_LOOKS = 16;

/** How often such a start is tried again before threads are done without: a hang is chance, and few follow each other. */
export const MAX_STUCK = 2;

/** The browser hangs in making the workers of a pool; another try does better. */
export class ThreadsStuckError extends WorkerLostError {}

export class StartWatch {
  readonly #threads: number;
  readonly #giveUp: (error: HeadlightError) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(threads: number, giveUp: (error: HeadlightError) => void) {
    this.#threads = threads;
    this.#giveUp = giveUp;
  }

  reached(step: StartStep): void {
    this.end();
    if (this.#threads === 1) return;
    if (step === 'creating threads') this.#look(MAX_LOOKS);
    // A slow network, over which the module comes, does not count against the pool.
    if (step === 'compiled') this.#timer = setTimeout(() => this.#late(), POOL_READY_MS);
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #look(left: number): void {
    this.#timer = setTimeout(() => {
      if (left > 1) this.#look(left - 1);
      else
        this.#giveUp(
          new ThreadsStuckError(
            `the browser hung in making the ${this.#threads - 1} worker(s) of the thread pool`,
          ),
        );
    }, LOOK_MS);
  }

  #late(): void {
    this.#giveUp(
      new WorkerLostError(
        `the ${this.#threads - 1} workers of the thread pool were not ready within ${POOL_READY_MS / 1000} s`,
      ),
    );
  }
}
