// Tasks one after another, in the order in which they came. A task whose signal fires while it waits leaves at once.

interface Waiting {
  start(): void;
}

export class SerialQueue {
  readonly #waiting: Waiting[] = [];
  #busy = false;

  /** Resolves with what `task` resolves with, or, when `signal` fires before its turn, with `left()`. */
  run<T>(task: () => Promise<T>, signal: AbortSignal, left: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const leave = () => {
        const place = this.#waiting.indexOf(entry);
        if (place < 0) return;
        this.#waiting.splice(place, 1);
        settle(left, resolve, reject);
      };
      const entry: Waiting = {
        start: () => {
          signal.removeEventListener('abort', leave);
          task()
            .then(resolve, reject)
            .finally(() => this.#next());
        },
      };
      if (signal.aborted) return settle(left, resolve, reject);
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(entry);
      if (!this.#busy) this.#next();
    });
  }

  #next(): void {
    const entry = this.#waiting.shift();
    this.#busy = entry !== undefined;
    entry?.start();
  }
}

function settle<T>(
  give: () => T,
  resolve: (value: T) => void,
  reject: (error: unknown) => void,
): void {
  try {
    resolve(give());
  } catch (error) {
    reject(error);
  }
}
