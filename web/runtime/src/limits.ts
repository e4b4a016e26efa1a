// measureLimits(): what this machine allows (reads, integer dots, multiply-adds), measured in a worker of its own.
import type { Platform } from './endpoint.js';
import { AbortedError } from './errors.js';
import { launch } from './launch.js';
import { MAX_THREADS } from './modules.js';
import { abortSignal, checkOptions, integer, number, oneOf, type Rules } from './options.js';
import type { LimitsOptions, SpeedLimits } from './types.js';

/** The module's own limits (wasm/bind_runtime.cc). */
const MAX_READ_BYTES = 512e6;
const MAX_BUDGET_MS = 60e3;
/** More than the last-level cache of a desktop machine. */
const DEFAULT_READ_BYTES = 128e6;
const DEFAULT_BUDGET_MS = 300;

const RULES: Rules<LimitsOptions> = {
  readBytes: integer(0, MAX_READ_BYTES),
  budgetMs: number(1, MAX_BUDGET_MS),
  module: oneOf('auto', 'simd', 'relaxed'),
  threads: integer(1, MAX_THREADS),
  signal: abortSignal,
};

export async function limitsOn(platform: Platform, options: LimitsOptions): Promise<SpeedLimits> {
  checkOptions('measureLimits', options, RULES);
  const wishes = { module: options.module ?? 'auto', threads: options.threads ?? 1 };
  return launch(platform, wishes, options.signal, async ({ connection }) => {
    const { readBytes = DEFAULT_READ_BYTES, budgetMs = DEFAULT_BUDGET_MS } = options;
    const limits = await connection.request('limits', { readBytes, budgetMs });
    await connection.close(new AbortedError());
    return limits;
  });
}
