// How long and from which seed the soak tests run, and what they found. Short in `npm test`; `npm run soak` says more through
// the environment and adds up the figures (run.mjs).
import { appendFileSync } from 'node:fs';

const minutes = Number(process.env.HEADLIGHT_SOAK_MINUTES ?? 0);

/** Of everything random in the soak tests. */
export const SEED = Number(process.env.HEADLIGHT_SEED ?? 1);

export const isLong = minutes > 0;

/** Minutes of the whole soak that a test may take, and the time that vitest gives it. */
export function timeFor(share: number): { ms: number; timeout: number } {
  const ms = minutes * share * 60_000;
  return { ms, timeout: 2 * ms + 300_000 };
}

/** Goes on until the time is over, and at least `least` times. */
export async function repeat(
  share: number,
  least: number,
  work: (i: number) => Promise<void>,
): Promise<number> {
  const end = performance.now() + timeFor(share).ms;
  let i = 0;
  for (; i < least || (isLong && performance.now() < end); i++) await work(i);
  return i;
}

export interface Figures {
  /** What was done, how often. */
  runs: number;
  /** Kills, stops, cuts that were caused on purpose. */
  faults: number;
  /** What should have been there afterwards and was not, or was something else. */
  lost: number;
  [more: string]: number | string;
}

/** Printed, and kept for the sum. */
export function report(name: string, figures: Figures): void {
  const line = JSON.stringify({ name, seed: SEED, ...figures });
  console.info(`soak: ${line}`);
  const file = process.env.HEADLIGHT_SOAK_FIGURES;
  if (file !== undefined) appendFileSync(file, `${line}\n`);
}
