// How long a stop takes to be seen: from abort() on the caller's thread to the end of the run, at random moments of a long
// prompt and of generation, in a model of any shape.
import type * as Headlight from '../../../web/runtime/src/index.js';
import { isLong } from '../../soak/plan.js';
import type { Shape } from './random_model.js';

/** On a core of its own. */
const PROMISED_MS = 50;
/** From here on the median is late, in time of a core of its own. */
export const LATE_MS = isLong ? PROMISED_MS : 5 * PROMISED_MS;
/** Of the promise: for the one in a hundred that meets a pause of the machine. */
const P99_SLACK = 2;

/**
 * Whether stops were late, in time of a core of its own. `npm run soak` holds them to the promise; `npm test`, which times
 * nothing, to a fraction of what a stop that nobody sees would take.
 * @param share of a core that was there (coreShare)
 */
export function areLate({ p50, p99 }: Latencies, share: number): boolean {
  return p50 * share > LATE_MS || (isLong && p99 * share > P99_SLACK * PROMISED_MS);
}

/** SmolLM2-135M's layers, a fifth of them. */
export const MIDDLE: Shape = {
  layers: 6,
  d: 576,
  heads: 9,
  kv: 3,
  dqk: 64,
  dv: 64,
  ffn: 1536,
  vocab: 2048,
  ctx: 16384,
};

export interface Latencies {
  runs: number;
  p50: number;
  p99: number;
  max: number;
}

export function latenciesOf(all: readonly number[]): Latencies {
  const sorted = [...all].sort((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { runs: sorted.length, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 };
}

/** Rounded, as `report` prints them. */
export function msOf({ p50, p99, max }: Latencies, prefix = ''): Record<string, number> {
  const rounded = (ms: number) => Math.round(ms * 10) / 10;
  return {
    [`${prefix}p50Ms`]: rounded(p50),
    [`${prefix}p99Ms`]: rounded(p99),
    [`${prefix}maxMs`]: rounded(max),
  };
}

/** The part of a core that this process gets at the moment: other work makes every answer late. (0, 1] */
export function coreShare(): number {
  const used = process.cpuUsage();
  const start = performance.now();
  while (performance.now() - start < 300) Math.sqrt(start);
  const { user, system } = process.cpuUsage(used);
  return Math.min(1, (user + system) / 1000 / (performance.now() - start));
}

export interface AbortPlan {
  engine: Headlight.Engine;
  /** Other tokens each time, so that nothing is reused. */
  promptTokens: number;
  /** The stop is at a random share of the prompt below this; (0, 1]. */
  below: number;
  /** A whole number below its argument. */
  pick(n: number): number;
}

/** Stops while the prompt is computed, at a random share of it. */
export async function abortInPrefill(plan: AbortPlan): Promise<number[]> {
  const prompt = Array.from({ length: plan.promptTokens }, () => 3 + plan.pick(250));
  const share = (plan.pick(100) / 100) * plan.below;
  const run = plan.engine.complete(prompt, { maxTokens: 1 });
  const reached = new Promise<void>((resolve) =>
    run.onPrefill(({ doneTokens, totalTokens }) => doneTokens >= share * totalTokens && resolve()),
  );
  await Promise.race([reached, run.result()]);
  // Not always right behind a message of the worker's.
  await new Promise((resolve) => setTimeout(resolve, plan.pick(30)));
  return stop(run);
}

/** Stops while tokens are generated. */
export async function abortInDecode(plan: AbortPlan): Promise<number[]> {
  const run = plan.engine.complete([3 + plan.pick(250), 7], { ignoreEndOfGeneration: true });
  const chunks = run[Symbol.asyncIterator]();
  for (let left = 1 + plan.pick(4); left > 0; left--) await chunks.next();
  return stop(run);
}

/** Nothing where the run was done before. */
async function stop(run: Headlight.Run): Promise<number[]> {
  const start = performance.now();
  run.abort();
  const { finishReason } = await run.result();
  return finishReason === 'aborted' ? [performance.now() - start] : [];
}
