// A worker with the kernels and no model, kept for many calls: attend() of the package starts one a call, which is too slow
// to follow a slider.
import { attendSpec } from '../attend.js';
import type { AttendOptions, AttendResult } from '../attend_types.js';
import type { Connection } from '../connection.js';
import type { Platform } from '../endpoint.js';
import { AbortedError, UnsupportedError, WorkerLostError } from '../errors.js';
import { launch } from '../launch.js';
import { MAX_THREADS } from '../modules.js';
import { abortSignal, badOption, checkOptions, integer, oneOf, type Rules } from '../options.js';
import type { RuntimeInfo } from '../types.js';
import {
  type PlacedRows,
  type RopeOptions,
  type RopeResult,
  ropeCall,
  sinusoidCall,
} from './positions.js';

/** The module's own limit (wasm/bind_positions.cc). */
const MAX_HEADS = 1024;

export interface HeadLabOptions {
  /** 'auto' (default) takes the fastest module that works here. */
  module?: 'auto' | 'simd' | 'relaxed';
  /** Default 1. */
  threads?: number;
  signal?: AbortSignal;
}

/** Options of one attention layer; module and threads are the lab's. */
export type LabAttendOptions = Omit<AttendOptions, 'module' | 'threads'>;

const RULES: Rules<HeadLabOptions> = {
  module: oneOf('auto', 'simd', 'relaxed'),
  threads: integer(1, MAX_THREADS),
  signal: abortSignal,
};

export class RunningHeadLab {
  /** What runs and why. */
  readonly runtime: RuntimeInfo;
  readonly #connection: Connection;

  /** @internal Made by HeadLab.start(). */
  constructor(connection: Connection, runtime: RuntimeInfo) {
    this.#connection = connection;
    this.runtime = runtime;
  }

  /** One attention layer on given rows, by the package's kernels. Calls are answered in their order. */
  async attend(options: LabAttendOptions): Promise<AttendResult> {
    if (this.#connection.closedBy !== undefined) throw this.#connection.closedBy;
    const { q, k, v } = options;
    return this.#connection.request('attend', { spec: attendSpec(options), q, k, v });
  }

  /**
   * Attention weights, [nTokens, nQHeads, nKv]: what attend() gives when every value row is a row of the identity matrix,
   * so that a blend of the values is the list of the weights themselves.
   */
  async weights(options: Omit<LabAttendOptions, 'v' | 'dV'>): Promise<Float32Array> {
    const nKv = options.k.length / (options.nKvHeads * options.dQk);
    const { out } = await this.attend({
      ...options,
      dV: nKv,
      v: identityValues(nKv, options.nKvHeads),
    });
    return out;
  }

  /** The frequencies of a rotary scheme, and rows rotated by it. */
  async rope(options: RopeOptions): Promise<RopeResult> {
    return this.#single().request('rope', ropeCall(options));
  }

  /** rows + sin and cos of pos / 10000^(2i / width), at places 2i and 2i + 1. */
  async sinusoids(rows: PlacedRows): Promise<Float32Array> {
    return this.#single().request('sinusoids', sinusoidCall(rows));
  }

  /** ALiBi's slope of each head (arXiv 2108.12409), for attend(). */
  async alibiSlopes(nHeads: number): Promise<Float32Array> {
    const rule = integer(1, MAX_HEADS);
    if (!rule.accepts(nHeads)) throw badOption('alibiSlopes', 'nHeads', nHeads, rule.range);
    return this.#single().request('alibiSlopes', { nHeads });
  }

  /** The position schemes are in the modules of one thread only. */
  #single(): Connection {
    if (this.#connection.closedBy !== undefined) throw this.#connection.closedBy;
    if (this.runtime.module.endsWith('threads'))
      throw new UnsupportedError(
        `Position schemes do not run in the module '${this.runtime.module}'. Start the lab with threads: 1.`,
        { option: 'threads' },
      );
    return this.#connection;
  }

  /** Ends the worker. */
  async dispose(): Promise<void> {
    await this.#connection.close(
      new AbortedError('The lab was disposed while the call was under way'),
      new WorkerLostError('The lab was disposed. Start another with HeadLab.start().'),
    );
  }
}

/** [nKv, nKvHeads, nKv]: row i has a one at place i in every head. */
function identityValues(nKv: number, nKvHeads: number): Float32Array {
  const values = new Float32Array(nKv * nKvHeads * nKv);
  for (let row = 0; row < nKv; row++) {
    for (let head = 0; head < nKvHeads; head++) values[(row * nKvHeads + head) * nKv + row] = 1;
  }
  return values;
}

export async function startOn<T>(
  platform: Platform,
  options: HeadLabOptions,
  make: (connection: Connection, runtime: RuntimeInfo) => T,
): Promise<T> {
  checkOptions('HeadLab.start', options, RULES);
  const wishes = { module: options.module ?? 'auto', threads: options.threads ?? 1 };
  return launch(platform, wishes, options.signal, async ({ connection, runtime }) => {
    connection.remedy = 'HeadLab.start() starts another.';
    return make(connection, runtime);
  });
}
