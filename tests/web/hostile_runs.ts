// Seeded damage, many times: what the tests of hostile input share. HEADLIGHT_FUZZ_RUNS: how often; HEADLIGHT_SEED: from where.
import { expect } from 'vitest';
import { randomSource } from './text/vocabularies.js';

const SEED = Number(process.env.HEADLIGHT_SEED ?? 1);
/** What a person may wait for, on a machine that does other things. */
const LONGEST_MS = 5000;

/** A whole number below its argument. */
export type Pick = (n: number) => number;

export const pickOf = <T>(pick: Pick, all: readonly T[]): T => all[pick(all.length)] as T;

export interface HostileRuns {
  runs: number;
  /** What was accepted: some, and not all. */
  taken: number;
}

/** Runs them all; `work` says whether the input was accepted. Names the seed of the one that fails or takes long. */
export function hostileRuns(
  name: string,
  defaultRuns: number,
  work: (pick: Pick) => boolean,
): HostileRuns {
  const runs = Number(process.env.HEADLIGHT_FUZZ_RUNS ?? defaultRuns);
  let taken = 0;
  for (let i = 0; i < runs; i++) {
    const start = performance.now();
    try {
      if (work(randomSource(SEED * 7919 + i))) taken += 1;
    } catch (error) {
      throw new Error(`${name}: run ${i} of seed ${SEED}`, { cause: error });
    }
    expect(performance.now() - start, `run ${i} of seed ${SEED}`).toBeLessThan(LONGEST_MS);
  }
  expect(taken).toBeGreaterThan(0);
  expect(taken).toBeLessThan(runs);
  return { runs, taken };
}
