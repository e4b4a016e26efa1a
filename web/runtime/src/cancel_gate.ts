// Stopping a run through shared memory, where there is some: the page's thread stores a flag that WASM reads between
// layers, so that the stop does not wait for the worker's next turn. The flag belongs to a session, not to a run; the
// gate makes sure that a flag meant for one run never stops the next one on the same session.
//
// gate[0] changes once: open -> stopped (by the page's thread, before it stores the flag) or open -> closed (by the
// worker, when the run has ended). Who comes second sees it. The note 'cancel' follows the flag in every case.

const OPEN = 0;
const STOPPED = 1;
const CLOSED = 2;

export interface Gate {
  /** The WASM memory, shared. */
  flags: Int32Array;
  /** Index into `flags`. */
  cancelIndex: number;
  /** [1], shared; belongs to one run. */
  gate: Int32Array;
}

export function openGate(flags: Int32Array, cancelIndex: number): Gate {
  return {
    flags,
    cancelIndex,
    gate: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
  };
}

/** Page's thread: stops the run if it has not ended. */
export function stopThrough({ flags, cancelIndex, gate }: Gate): void {
  if (Atomics.compareExchange(gate, 0, OPEN, STOPPED) === OPEN)
    Atomics.store(flags, cancelIndex, 1);
}

/** Worker: the run has ended. True: the flag is or will be set; wait for the note, then call lowerFlag. */
export function closeGate({ gate }: Gate): boolean {
  return Atomics.compareExchange(gate, 0, OPEN, CLOSED) === STOPPED;
}

export function lowerFlag({ flags, cancelIndex }: Gate): void {
  Atomics.store(flags, cancelIndex, 0);
}
