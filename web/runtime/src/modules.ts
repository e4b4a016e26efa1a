// Which of the four modules to try, and in which order: a decision from probed features and the user's wishes, with
// its reasons in words. It starts nothing (launch.ts does), so that it can be tested as a table.
import { BadOptionError } from './errors.js';
import type { ModuleName } from './protocol.js';

export interface Features {
  simd: boolean;
  relaxedSimd: boolean;
  /** Memory can be shared between threads here. */
  sharedMemory: boolean;
  /** Why memory cannot be shared, with the remedy; '' when it can. */
  noSharedMemoryReason: string;
  crossOriginIsolated: boolean;
  /** Logical cores as the platform reports them. */
  cores: number;
}

export interface ModuleWishes {
  module: 'auto' | 'simd' | 'relaxed';
  /** Undefined: as many as are sensible. */
  threads: number | undefined;
}

export interface Candidate {
  name: ModuleName;
  relaxed: boolean;
  threads: number;
}

export interface ModuleChoice {
  /** Best first; never empty. */
  candidates: Candidate[];
  reasons: string[];
}

/** Decoding is bound by memory bandwidth, which a few cores saturate; more threads only add synchronisation. */
const MAX_DEFAULT_THREADS = 8;
/** More than any machine that runs a browser tab gains from; each thread costs a worker and a 1 MiB stack. */
export const MAX_THREADS = 64;

// The smallest modules that hold one instruction of the kind. Validation compiles nothing.
// (func (result v128) i32.const 0 i8x16.splat i8x16.popcnt)
const SIMD_MODULE = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15,
  253, 98, 11,
];
// (func (result v128) three splats, i32x4.relaxed_dot_i8x16_i7x16_add_s)
const RELAXED_MODULE = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 19, 1, 17, 0, 65, 0, 253, 15,
  65, 0, 253, 15, 65, 0, 253, 15, 253, 147, 2, 11,
];
// (memory 1 1 shared)
const THREADS_MODULE = [0, 97, 115, 109, 1, 0, 0, 0, 5, 4, 1, 3, 1, 1];

function validates(bytes: number[]): boolean {
  return typeof WebAssembly === 'object' && WebAssembly.validate(new Uint8Array(bytes));
}

export const hasSimd = (): boolean => validates(SIMD_MODULE);
export const hasRelaxedSimd = (): boolean => validates(RELAXED_MODULE);
export const hasSharedMemory = (): boolean =>
  typeof SharedArrayBuffer !== 'undefined' && validates(THREADS_MODULE);

function moduleName(relaxed: boolean, threads: number): ModuleName {
  const base = relaxed ? 'relaxed' : 'simd';
  return threads > 1 ? `${base}-threads` : base;
}

function chooseThreads(features: Features, wished: number | undefined, reasons: string[]): number {
  if (wished !== undefined) {
    if (wished > 1 && !features.sharedMemory) {
      throw new BadOptionError(
        `threads: ${wished} cannot be honoured: ${features.noSharedMemoryReason}. Leave the option out to run with one thread.`,
        { option: 'threads', value: wished, range: '1' },
      );
    }
    reasons.push(`threads: ${wished}, as asked`);
    return wished;
  }
  if (!features.sharedMemory) {
    reasons.push(`threads: 1, because ${features.noSharedMemoryReason}`);
    return 1;
  }
  const threads = Math.max(1, Math.min(MAX_DEFAULT_THREADS, Math.floor(features.cores / 2)));
  reasons.push(
    `threads: ${threads}, half of ${features.cores} cores and at most ${MAX_DEFAULT_THREADS}`,
  );
  return threads;
}

function chooseFamilies(
  features: Features,
  wished: ModuleWishes['module'],
  reasons: string[],
): boolean[] {
  if (wished === 'simd') {
    reasons.push('module: simd, as asked');
    return [false];
  }
  if (features.relaxedSimd) {
    reasons.push(
      wished === 'relaxed' ? 'module: relaxed, as asked' : 'module: relaxed SIMD is available',
    );
    return wished === 'relaxed' ? [true] : [true, false];
  }
  if (wished === 'relaxed') {
    throw new BadOptionError(
      "module: 'relaxed' cannot be honoured: this engine does not accept relaxed SIMD instructions. Use module: 'auto'.",
      { option: 'module', value: 'relaxed', range: "'auto' | 'simd'" },
    );
  }
  reasons.push('module: simd, because this engine has no relaxed SIMD');
  return [false];
}

/**
 * Throws BadOptionError for a wish that cannot be honoured here, and for an engine without WASM SIMD.
 */
export function chooseModules(features: Features, wishes: ModuleWishes): ModuleChoice {
  if (!features.simd) {
    throw new BadOptionError(
      'This engine has no WebAssembly SIMD, which Headlight needs. Chrome 91, Firefox 89, Safari 16.4 and Node 20 have it.',
    );
  }
  const reasons: string[] = [];
  const threads = chooseThreads(features, wishes.threads, reasons);
  const families = chooseFamilies(features, wishes.module, reasons);
  const counts = threads > 1 && wishes.threads === undefined ? [threads, 1] : [threads];
  const candidates: Candidate[] = [];
  for (const count of counts) {
    for (const relaxed of families)
      candidates.push({ name: moduleName(relaxed, count), relaxed, threads: count });
  }
  return { candidates, reasons };
}
