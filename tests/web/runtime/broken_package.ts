// A copy of the built package whose module glue has a fault in it, for tests of what happens when a device fails.
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const dist = fileURLToPath(new URL('../../../web/runtime/dist/', import.meta.url));

export interface BrokenPackage {
  folder: string;
  /** Another number, say, in the worker itself: `from` must be in it. */
  changeWorker(from: string, to: string): void;
  /** The next worker has this fault. */
  break(fault: (glue: string) => string): void;
  /** The next worker is whole. */
  mend(): void;
  remove(): void;
}

/** In front of a glue: what only the workers of a thread pool do. Both ways of the two platforms to know them. */
const IN_THREAD = `const inThread = globalThis.name?.startsWith?.('em-pthread') ||
  (globalThis.process?.versions?.node && (await import('node:worker_threads')).workerData === 'em-pthread');`;

const NEW_WORKER = 'worker=new Worker(';
const CALL = 'getWasmTableEntry(entry)(argument)';

/** Claims a task as src/base/parallel.cc does, its counter a cache line before the one that the caller waits for, and dies. */
const DIES_IN_A_TASK = `for (const words = new Int32Array(wasmMemory.buffer), at = (waits - 64) >>> 2;;)
  if (Atomics.load(words, at) > 0 && Atomics.sub(words, at, 1) > 0) throw new WebAssembly.RuntimeError('injected');`;

export const FAULTS = {
  /** A trap in a thread of the pool, with a claimed task that is then never done. */
  threadTraps(glue: string): string {
    if (!glue.includes('headlight_run_thread')) return glue;
    if (!glue.includes(CALL)) throw new Error(`the glue does not hold ${CALL}`);
    return glue.replace(CALL, DIES_IN_A_TASK);
  },
  threadsDoNotStart: (glue: string) =>
    `${IN_THREAD}\nif (inThread) throw new Error('injected');\n${glue}`,
  /** What Firefox sometimes does: the worker never comes back from making another. */
  makingThreadsHangs(glue: string): string {
    if (!glue.includes('headlight_run_thread')) return glue;
    if (!glue.includes(NEW_WORKER)) throw new Error(`the glue does not hold ${NEW_WORKER}`);
    const hang = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);';
    return glue.replace(NEW_WORKER, `${hang}${NEW_WORKER}`);
  },
  memoryDoesNotGrow: (glue: string) =>
    `WebAssembly.Memory.prototype.grow = () => { throw new RangeError('injected'); };\n${glue}`,
  memoryGrowsOnce: (glue: string) => `let grown = 0; const grow = WebAssembly.Memory.prototype.grow;
    WebAssembly.Memory.prototype.grow = function (n) {
      if (grown++ > 0) throw new RangeError('injected');
      return grow.call(this, n);
    };\n${glue}`,
  /** An uncaught error of the worker itself, some time after its module has started. */
  workerDies: (glue: string) =>
    `${IN_THREAD}\nif (!inThread) setTimeout(() => { throw new Error('injected'); }, 1000);\n${glue}`,
};

export function breakPackage(fault: (glue: string) => string): BrokenPackage {
  const folder = mkdtempSync(path.join(tmpdir(), 'headlight-fault-'));
  cpSync(dist, folder, { recursive: true });
  const glues = readdirSync(path.join(folder, 'wasm')).filter((name) => name.endsWith('.mjs'));
  const write = (change: (glue: string) => string) => {
    for (const name of glues) {
      const glue = readFileSync(path.join(dist, 'wasm', name), 'utf8');
      writeFileSync(path.join(folder, 'wasm', name), change(glue));
    }
  };
  write(fault);
  return {
    folder,
    changeWorker(from, to) {
      const worker = path.join(folder, 'worker.js');
      const text = readFileSync(worker, 'utf8');
      if (!text.includes(from)) throw new Error(`worker.js does not hold ${from}`);
      writeFileSync(worker, text.replace(from, to));
    },
    break: write,
    mend: () => write((glue) => glue),
    remove: () => rmSync(folder, { recursive: true }),
  };
}
