// Engine.preflight(): what a model would take and how fast it would run, from its header and a short measurement, before
// anything else of it is downloaded. It runs in a worker of its own, with the module and threads that loading would take.
import type { Platform } from './endpoint.js';
import { AbortedError, OutOfMemoryError } from './errors.js';
import { launch } from './launch.js';
import {
  checkLoadOptions,
  checkOptions,
  elsewhere,
  number,
  type Rules,
  sessionOptions,
} from './options.js';
import type { PreflightWire } from './protocol.js';
import { openSources } from './source.js';
import type { CacheType, LoadOptions, ModelPlan, ModelSource, SpeedLimits } from './types.js';

export interface PreflightOptions
  extends Pick<LoadOptions, 'nCtx' | 'kvCache' | 'threads' | 'module' | 'activations' | 'signal'> {
  /** Time for measuring, in milliseconds. Default 200. */
  budgetMs?: number;
}

/** Load options that need less memory, and how much. */
export interface Alternative {
  nCtx: number;
  kvCache: { k: CacheType; v: CacheType };
  neededBytes: number;
}

export interface Preflight {
  plan: ModelPlan;
  /** Weights, cache and workspace together: what loading allocates. */
  neededBytes: number;
  /** The memory was there just now. */
  fits: boolean;
  /** What Engine.load() would reject with; missing when it fits. */
  error?: OutOfMemoryError;
  /** When it does not fit: what would, the longest context first; empty where the weights alone are too much. */
  alternatives: Alternative[];
  speed: {
    limits: SpeedLimits;
    /** With an empty context. */
    decodeTokensPerSecond: number;
    prefillTokensPerSecond: number;
  };
  /** As the browser tells it, at most 8 GiB; missing where it does not. */
  deviceMemoryBytes?: number;
}

const DEFAULT_BUDGET_MS = 200;
/** More than a cache holds, and little beside a model: it is allocated for the measurement. */
const READ_BYTES = 64e6;
/** What decoding makes of the streaming reads, and prefill of the dots: tests/bench/README.md, 135M parameters. */
const DECODE_SHARE = 0.65;
const PREFILL_SHARE = 0.7;

const RULES: Rules<PreflightOptions> = {
  nCtx: elsewhere,
  kvCache: elsewhere,
  threads: elsewhere,
  module: elsewhere,
  activations: elsewhere,
  signal: elsewhere,
  budgetMs: number(1, 60e3),
};

export async function preflightOn(
  platform: Platform,
  source: ModelSource,
  options: PreflightOptions,
): Promise<Preflight> {
  checkOptions('Engine.preflight', options, RULES);
  const { budgetMs = DEFAULT_BUDGET_MS, ...load } = options;
  checkLoadOptions(load, 'Engine.preflight');
  const opened = openSources(source, platform);
  const wishes = { module: load.module ?? 'auto', threads: load.threads };
  return launch(platform, wishes, load.signal, async ({ connection }) => {
    // A file that is no model is told before time is spent on measuring.
    const body = { sources: opened.sources, session: sessionOptions(load) };
    const found = await connection.call('preflight', body, (event) =>
      opened.serve(event, connection),
    ).reply;
    const limits = await connection.request('limits', { readBytes: READ_BYTES, budgetMs });
    await connection.close(new AbortedError());
    return preflightOf(found, limits);
  });
}

function preflightOf(found: PreflightWire, limits: SpeedLimits): Preflight {
  const { plan, fits, hadBytes, alternatives } = found;
  const neededBytes = plan.weightsBytes + plan.kvCacheBytes + plan.workspaceBytes;
  const gibibytes = (globalThis.navigator as { deviceMemory?: number } | undefined)?.deviceMemory;
  return {
    plan,
    neededBytes,
    fits,
    ...(fits ? {} : { error: tooMuch(plan, neededBytes, hadBytes, alternatives) }),
    alternatives,
    speed: { limits, ...speeds(plan, limits) },
    ...(gibibytes === undefined ? {} : { deviceMemoryBytes: gibibytes * 2 ** 30 }),
  };
}

function speeds(plan: ModelPlan, limits: SpeedLimits) {
  const { parametersUsed, tiedHead, vocabSize, dModel } = plan.model;
  // An embedding of its own is looked up, not read.
  const stored = parametersUsed + (tiedHead ? 0 : vocabSize * dModel);
  const readBytes = plan.weightsBytes * (parametersUsed / stored);
  return {
    decodeTokensPerSecond: (DECODE_SHARE * limits.readGBs * 1e9) / readBytes,
    prefillTokensPerSecond: (PREFILL_SHARE * limits.dotGops * 1e9) / (2 * parametersUsed),
  };
}

function tooMuch(
  plan: ModelPlan,
  neededBytes: number,
  hadBytes: number,
  alternatives: readonly Alternative[],
): OutOfMemoryError {
  const mib = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`;
  const { nCtx, weightsBytes, kvCacheBytes, workspaceBytes } = plan;
  const remedies = alternatives.map(
    ({ nCtx, kvCache: { k, v }, neededBytes }) =>
      `nCtx: ${nCtx} with kvCache: {k: '${k}', v: '${v}'} (${mib(neededBytes)})`,
  );
  const remedy =
    remedies.length === 0
      ? 'A smaller model is needed.'
      : `What would fit: ${remedies.join('; ')}.`;
  return new OutOfMemoryError(
    `The model needs ${mib(neededBytes)} (weights ${mib(weightsBytes)}, cache of ${nCtx} tokens ${mib(kvCacheBytes)}, ` +
      `workspace ${mib(workspaceBytes)}), which this device does not give. ${remedy}`,
    { neededBytes, hadBytes, weightsBytes, kvCacheBytes, workspaceBytes, nCtx },
  );
}
