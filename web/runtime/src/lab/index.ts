// headlight-wasm/lab for browsers; node.ts is its twin for Node.
import { browserPlatform } from '../browser_platform.js';
import { type HeadLabOptions, RunningHeadLab, startOn } from './head_lab.js';

export * from './public.js';

/** The attention kernels in a worker of their own, without a model, for trying head layouts. */
export class HeadLab extends RunningHeadLab {
  /** Rejects with BadOptionError, WorkerLostError or, when `signal` fires, AbortedError. */
  static start(options: HeadLabOptions = {}): Promise<HeadLab> {
    return startOn(
      browserPlatform,
      options,
      (connection, runtime) => new HeadLab(connection, runtime),
    );
  }
}
