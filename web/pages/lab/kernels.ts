// The attention kernels for the page's sections: one worker, started with the first call, and answers that came too late
// dropped, since only the last state counts.
import { HeadLab } from 'headlight-wasm/lab';
import { messageOf } from '../shared/errors.js';

export class Kernels {
  #lab: Promise<HeadLab> | undefined;

  lab(): Promise<HeadLab> {
    this.#lab ??= HeadLab.start().catch((error: unknown) => {
      this.#lab = undefined;
      throw error;
    });
    return this.#lab;
  }
}

/** Work whose result is shown only if nothing newer was asked for meanwhile. */
export class Latest {
  #asked = 0;
  #failed: (message: string) => void;

  constructor(failed: (message: string) => void) {
    this.#failed = failed;
  }

  async run<T>(work: () => Promise<T>, show: (value: T) => void): Promise<void> {
    this.#asked += 1;
    const mine = this.#asked;
    try {
      const value = await work();
      if (mine === this.#asked) show(value);
    } catch (error) {
      if (mine === this.#asked) this.#failed(messageOf(error));
    }
  }
}
