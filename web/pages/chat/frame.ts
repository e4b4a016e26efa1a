// Runs one piece of work at most once per animation frame, and less often when the work itself is slow, so that
// rendering never takes more than a share of the time.

// Rendering may take one part in four.
const restFactor = 3;

export class FrameScheduler {
  #work: () => void;
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #earliest = 0;

  constructor(work: () => void) {
    this.#work = work;
  }

  request(): void {
    if (this.#frame !== 0 || this.#timer !== undefined) return;
    const wait = this.#earliest - performance.now();
    if (wait <= 0) this.#nextFrame();
    else {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#nextFrame();
      }, wait);
    }
  }

  /** Runs now whatever was requested; hidden tabs have no frames. */
  flush(): void {
    this.cancel();
    this.#work();
  }

  cancel(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = 0;
    this.#timer = undefined;
  }

  #nextFrame(): void {
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      const start = performance.now();
      this.#work();
      const end = performance.now();
      this.#earliest = end + restFactor * (end - start);
    });
  }
}
