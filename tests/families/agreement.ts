// How far the engine's probabilities are from llama.cpp's on a family's tiny model.
import { readFileSync } from 'node:fs';
import { families } from './families.mjs';
import { kDecoded, promptOf } from './prompts.mjs';

export type CacheType = 'f32' | 'f16';
export const cacheTypes: CacheType[] = ['f32', 'f16'];

/** Families with GELU, which llama.cpp looks up in a table of f16 numbers: each is off by up to a relative 2^-11. */
const withGelu = new Set([
  'gemma',
  'gemma2',
  'gemma3',
  'gpt2',
  'bloom',
  'mpt',
  'gptneox',
  'starcoder2',
]);

/**
 * Largest allowed |log p - log p'| over tokens above the golden files' floor of 1e-6, both sides with this cache. llama.cpp
 * rounds queries and weights too when the cache is f16. With f32 the files' rounding (5e-5) is most of what is left.
 */
export function maxLogDifference(name: string, cache: CacheType): number {
  if (cache === 'f16') return 5e-3;
  return withGelu.has(name) ? 2.5e-3 : 3e-4;
}

/** make_golden.mjs writes natural logarithms times this. */
const kScale = 1e4;

export interface Golden {
  cache: CacheType;
  n: number;
  logProbabilities: (number | null)[][];
}

export const familyNames = Object.keys(families);

export function goldenOf(name: string, cache: CacheType): Golden[] {
  const path = new URL(`../golden/families/${name}.json`, import.meta.url);
  const all = JSON.parse(readFileSync(path, 'utf8')) as Golden[];
  return all.filter((golden) => golden.cache === cache);
}

/** What is fed: the prompt at once, then the prompt and one more token, and so on: all but the last of each is cached. */
export function fedTokens(name: string, n: number): number[][] {
  const tokens = promptOf(n, families[name]?.vocab ?? 0);
  return Array.from({ length: kDecoded + 1 }, (_, i) => tokens.slice(0, n + i));
}

function logSoftmax(logits: ArrayLike<number>): number[] {
  const values = Array.from(logits);
  const max = Math.max(...values);
  const sum = values.reduce((total, value) => total + Math.exp(value - max), 0);
  return values.map((value) => value - max - Math.log(sum));
}

function argmax(values: readonly number[]): number {
  return values.indexOf(Math.max(...values));
}

export interface Agreement {
  maxDifference: number;
  sameTop: boolean;
}

/** Of one row of logits with one row of a golden file. */
export function agreement(logits: ArrayLike<number>, row: readonly (number | null)[]): Agreement {
  const ours = logSoftmax(logits);
  const theirs = row.map((value) => (value === null ? Number.NEGATIVE_INFINITY : value / kScale));
  const differences = theirs.flatMap((value, id) =>
    value === Number.NEGATIVE_INFINITY ? [] : [Math.abs(value - (ours[id] ?? Number.NaN))],
  );
  return { maxDifference: Math.max(...differences), sameTop: argmax(ours) === argmax(theirs) };
}
