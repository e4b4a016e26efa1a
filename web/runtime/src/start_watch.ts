// Watches from the page how a module with threads starts in its worker: a browser may hang there and say nothing.
import { type HeadlightError, WorkerLostError } from './errors.js';
import type { StartStep } from './protocol.js';
import { afterWakingTime } from './waking_timer.js';

/**
 * How long a thread pool may take once its module is compiled. Starting a worker takes 5-50 ms; where threads hang
 * (seen on iOS) they hang for good.
 */
const POOL_READY_MS = 10_000;

/**
 * A worker that makes a worker waits in `new Worker` for the page's thread. Firefox 153 sometimes never returned from there
 * (worker/pool_workers.ts keeps it out of that). A browser that does so is given up when the page's thread was free to answer
 * for so long.
 */
const MAKING_MS = 4000;

/** How often such a start is tried again before threads are done without: a hang is chance, and few follow each other. */
export const MAX_STUCK = 2;

/** The browser hangs in making the workers of a pool; another try does better. */
export class ThreadsStuckError extends WorkerLostError {}

export class StartWatch {
  readonly #threads: number;
  readonly #giveUp: (error: HeadlightError) => void;
  #endTimer: (() => void) | undefined;
  #isCompiled = false;

  constructor(threads: number, giveUp: (error: HeadlightError) => void) {
    this.#threads = threads;
    this.#giveUp = giveUp;
  }

  reached(step: StartStep): void {
    // A module that is compiled at once says so first.
    if (step === 'threads created' && this.#isCompiled) return;
    this.#isCompiled ||= step === 'compiled';
    this.end();
    if (this.#threads === 1) return;
    const nWorkers = `${this.#threads - 1}`;
    if (step === 'creating threads') {
      const why = `the browser hung in making the ${nWorkers} worker(s) of the thread pool`;
      this.#wait(MAKING_MS, () => new ThreadsStuckError(why));
    }
    // A slow network, over which the module comes, does not count against the pool.
    if (step === 'compiled') {
      const why = `the ${nWorkers} workers of the thread pool were not ready within ${POOL_READY_MS / 1000} s`;
      this.#wait(POOL_READY_MS, () => new WorkerLostError(why));
    }
  }

  end(): void {
    this.#endTimer?.();
  }

  #wait(ms: number, error: () => HeadlightError): void {
    this.#endTimer = afterWakingTime(ms, () => this.#giveUp(error()));
  }
}
