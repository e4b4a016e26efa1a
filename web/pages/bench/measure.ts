// The measurement: loads the model, checks a known answer, measures what the machine allows and how much of it the model
// gets. All of it in this tab, one step after the other, so that nothing competes with what is measured. No DOM.

import { sha256 } from 'hash-wasm';
import {
  AbortedError,
  Engine,
  type EngineInfo,
  type EngineStats,
  measureLimits,
  type SpeedLimits,
} from 'headlight-wasm';
import type { ModelChoice } from '../shared/model_source.js';
import { answerText, knownPrompts, knownSha256 } from './known_answer.js';

/** The usual sizes of such measurements: a page of prompt, a short answer. Smaller where the context is. */
const nPromptWanted = 256;
const nGenWanted = 64;
const nRounds = 3;
/** Timers tick in 0.1 ms or worse: a round of a small model is repeated until it has taken this long. */
const roundMs = 300;
const maxRepeats = 200;
/** Far more than the caches of a desktop machine. */
const memoryReadBytes = 128e6;
const limitsBudgetMs = 900;
/** What an unknown model continues, so that two machines can compare the hash of its text. */
const unknownPrompt = 'Once upon a time';
const nUnknownTokens = 48;

export type StepName = 'load' | 'answer' | 'limits' | 'round';

export interface Step {
  name: StepName;
  /** 1-based, for 'round'. */
  round?: number;
  /** Of the whole measurement, 0..1. */
  done: number;
}

export interface BenchOptions {
  choice: ModelChoice;
  module: 'auto' | 'simd' | 'relaxed';
  /** Undefined: as many as the engine takes by itself. */
  threads: number | undefined;
  signal: AbortSignal;
  onStep(step: Step): void;
}

/** Tokens a second. */
export interface Round {
  prefill: number;
  decode: number;
}

export interface Ceilings extends SpeedLimits {
  /** Streaming reads of as many bytes as the model's weights have: of a small model the caches' speed. */
  modelReadGBs: number;
}

export interface Answer {
  sha256: string;
  /** What it must be, where that is known. */
  expected?: string;
  text: string;
}

export interface BenchResult {
  modelName: string;
  info: EngineInfo;
  nPrompt: number;
  nGen: number;
  rounds: Round[];
  limits: Ceilings;
  answer: Answer;
  stats: EngineStats;
  date: Date;
  userAgent: string;
  logicalCores: number;
}

// Shares of the whole, roughly as long as the steps take.
const loadShare = 0.15;
const answerShare = 0.05;
const limitsShare = 0.2;
const roundsStart = loadShare + answerShare + limitsShare;

/** Rejects with the package's errors; AbortedError when `signal` fires. */
export async function measure(options: BenchOptions): Promise<BenchResult> {
  const { choice, signal, module, threads, onStep } = options;
  onStep({ name: 'load', done: 0 });
  const engine = await Engine.load(choice.source, {
    module,
    ...(threads === undefined ? {} : { threads }),
    signal,
    onProgress: ({ loadedBytes, totalBytes }) =>
      onStep({ name: 'load', done: totalBytes ? (loadShare * loadedBytes) / totalBytes : 0 }),
  });
  try {
    onStep({ name: 'answer', done: loadShare });
    const answer = await checkAnswer(engine, choice.kind === 'default', signal);
    onStep({ name: 'limits', done: loadShare + answerShare });
    const limits = await ceilings(engine.info, signal);
    const sizes = roundSizes(engine.info.nCtx);
    const rounds: Round[] = [];
    for (let round = 1; round <= nRounds; round++) {
      const onShare = (share: number) => {
        const done = roundsStart + ((1 - roundsStart) * (round - 1 + share)) / nRounds;
        onStep({ name: 'round', round, done });
      };
      onShare(0);
      rounds.push(await measureRound(engine, { ...sizes, round, signal, onShare }));
    }
    return {
      modelName: choice.name,
      info: engine.info,
      ...sizes,
      rounds,
      limits,
      answer,
      stats: await engine.stats(),
      date: new Date(),
      userAgent: navigator.userAgent,
      logicalCores: navigator.hardwareConcurrency,
    };
  } finally {
    await engine.dispose();
  }
}

async function checkAnswer(engine: Engine, isKnown: boolean, signal: AbortSignal): Promise<Answer> {
  const greedy = { temperature: 0, ignoreEndOfGeneration: true, signal };
  const continuations: number[][] = [];
  let text = '';
  const prompts = isKnown ? knownPrompts : [{ ids: unknownPrompt, nTokens: nUnknownTokens }];
  for (const { ids, nTokens } of prompts) {
    const result = await engine.complete(ids, { ...greedy, maxTokens: nTokens }).result();
    if (result.finishReason === 'aborted') throw new AbortedError();
    continuations.push(result.tokens);
    text ||= result.text;
  }
  const hash = await sha256(answerText(continuations));
  return { sha256: hash, text, ...(isKnown ? { expected: knownSha256 } : {}) };
}

/** Reads of memory and, where the model is smaller than that, of as many bytes as the model has. */
async function ceilings(info: EngineInfo, signal: AbortSignal): Promise<Ceilings> {
  const { runtime, memory } = info;
  const module = runtime.module.startsWith('relaxed') ? 'relaxed' : 'simd';
  const { threads } = runtime;
  const at = (readBytes: number) =>
    measureLimits({ readBytes, budgetMs: limitsBudgetMs, module, threads, signal });
  const limits = await at(memoryReadBytes);
  if (memory.weightsBytes >= memoryReadBytes) return { ...limits, modelReadGBs: limits.readGBs };
  const small = await at(memory.weightsBytes);
  return {
    readGBs: limits.readGBs,
    modelReadGBs: small.readGBs,
    dotGops: Math.max(limits.dotGops, small.dotGops),
    fmaGflops: Math.max(limits.fmaGflops, small.fmaGflops),
  };
}

export function roundSizes(nCtx: number): { nPrompt: number; nGen: number } {
  const nGen = Math.max(1, Math.min(nGenWanted, Math.floor(nCtx / 4)));
  return { nGen, nPrompt: Math.max(1, Math.min(nPromptWanted, nCtx - nGen)) };
}

/** Numerical Recipes' generator: the same prompts on every machine. */
export function promptTokens(nTokens: number, vocabSize: number, seed: number): Uint32Array {
  let state = (seed * 2654435761) >>> 0;
  return Uint32Array.from({ length: nTokens }, (_, i) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    // The first token is another one each time, so that nothing is found in the session's cache.
    return i === 0 ? seed % vocabSize : Math.floor((state / 2 ** 32) * vocabSize);
  });
}

interface RoundOptions {
  nPrompt: number;
  nGen: number;
  round: number;
  signal: AbortSignal;
  /** Of this round, 0..1. */
  onShare(share: number): void;
}

/** Mean rates over as many repetitions as the timer needs. */
async function measureRound(engine: Engine, options: RoundOptions): Promise<Round> {
  const { nPrompt, nGen, round, signal, onShare } = options;
  const { vocabSize } = engine.info.model;
  const sum = { prefillTokens: 0, prefillMs: 0, decodeTokens: 0, decodeMs: 0 };
  for (let repeat = 0; repeat < maxRepeats; repeat++) {
    const prompt = promptTokens(nPrompt, vocabSize, round + nRounds * repeat);
    const run = engine.complete(prompt, {
      temperature: 0,
      maxTokens: nGen,
      ignoreEndOfGeneration: true,
      signal,
    });
    const { timings, finishReason } = await run
      .onPrefill(({ doneTokens, totalTokens }) => {
        if (repeat === 0) onShare((0.6 * doneTokens) / totalTokens);
      })
      .result();
    if (finishReason === 'aborted') throw new AbortedError();
    sum.prefillMs += timings.prefillMs;
    sum.decodeMs += timings.decodeMs;
    sum.prefillTokens += (timings.prefillTokensPerSecond * timings.prefillMs) / 1000;
    sum.decodeTokens += (timings.decodeTokensPerSecond * timings.decodeMs) / 1000;
    const spent = sum.prefillMs + sum.decodeMs;
    onShare(Math.min(1, spent / roundMs));
    if (spent >= roundMs) break;
  }
  return {
    prefill: (1000 * sum.prefillTokens) / sum.prefillMs,
    decode: (1000 * sum.decodeTokens) / sum.decodeMs,
  };
}
