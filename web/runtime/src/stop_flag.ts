// Stopping a run through shared memory, where there is some: the page's thread raises a flag that WASM reads between layers
// (wasm/bind_session.cc), so that the stop does not wait for the worker's next turn. Each run has a flag of its own, so a
// stop that comes too late stops nothing else. It is four bytes beside the WASM memory and not in it: who is given that
// memory keeps all of it alive, weights included, until the page's garbage is next collected.

/** [1], shared: 0 until the run is to end. */
export type StopFlag = Int32Array;

/** Undefined where the page's thread cannot share memory. */
export function newStopFlag(): StopFlag | undefined {
  // Node has no crossOriginIsolated, and shares always.
  const { crossOriginIsolated } = globalThis as { crossOriginIsolated?: boolean };
  if (typeof SharedArrayBuffer === 'undefined' || crossOriginIsolated === false) return undefined;
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

export function raise(flag: StopFlag): void {
  Atomics.store(flag, 0, 1);
}
