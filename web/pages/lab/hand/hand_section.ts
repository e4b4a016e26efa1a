// The section "One head by hand": its parts share the worker with the kernels.
import type { Kernels } from '../kernels.js';
import type { UrlState } from '../url_state.js';
import { Online } from './online.js';
import { Saturation } from './saturation.js';
import { SevenTokens } from './seven_tokens.js';
import { ThreeTokens } from './three_tokens.js';
import { TwoHeads } from './two_heads.js';

export class HandSection {
  #parts: readonly { update(): Promise<void> }[];

  constructor(state: UrlState, kernels: Kernels, failed: (message: string) => void) {
    const online = new Online(state, kernels, failed);
    const seven = new SevenTokens(state, kernels, {
      failed,
      changed: (row) => void online.showRow(row),
    });
    this.#parts = [
      new ThreeTokens(state, kernels, failed),
      new TwoHeads(state, kernels, failed),
      seven,
      online,
      new Saturation(state, kernels, failed),
    ];
  }

  /** Resolves when every number stands. */
  async start(): Promise<void> {
    for (const part of this.#parts) await part.update();
  }
}
