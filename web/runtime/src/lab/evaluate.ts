// What a model is worth on a text: perplexity of the answers, recall of facts stated before, bytes, speed.
import type { LoadedEngine } from '../engine.js';
import { abortSignal, callback, checkOptions, elsewhere, integer, type Rules } from '../options.js';
import type { ChatMessage } from '../types.js';
import { type LabCallOptions, labCall, labSession, type SessionKeeps } from './lab_call.js';
import type { RecallAnswer } from './lab_protocol.js';
import type { HeadRef } from './model_edit.js';
import type { LabModel } from './model_lab.js';
import { type RecallQuestion, sampleQuestions } from './sample_questions.js';
import { sampleDialogues } from './sample_text.js';

/**
 * With an eviction that goes by places ('sinks') or by attention ('h2o') every token is predicted from the keys that are left
 * by then. 'snapkv' gives keys up at the end of a prompt: a dialogue that is measured is one prompt, so the loss does not feel
 * it; recall, where an answer follows a prompt, does.
 */
export interface EvaluateOptions extends LabCallOptions, SessionKeeps {
  /** Default: the lab's own text. */
  dialogues?: readonly (readonly ChatMessage[])[];
  /** Default: the lab's own questions. */
  questions?: readonly RecallQuestion[];
  /** Tokens of an answer. Default 32. */
  maxTokens?: number;
}

const RULES: Rules<EvaluateOptions> = {
  kvCache: elsewhere,
  eviction: elsewhere,
  dialogues: elsewhere,
  questions: elsewhere,
  maxTokens: integer(1, 4096),
  onProgress: callback,
  signal: abortSignal,
};

export interface Evaluation {
  /** exp of the mean loss. */
  perplexity: number;
  /** Nats a counted token. */
  loss: number;
  /** Standard error of the loss over the dialogues. */
  lossError: number;
  countedTokens: number;
  /** Share of counted tokens that were the model's first choice. */
  firstChoiceShare: number;
  /** false: the model has no chat template, and every token counts. */
  answersOnly: boolean;
  recall: { right: number; asked: number; answers: RecallAnswer[] };
  /** In memory. */
  weightsBytes: number;
  /**
   * Of these, what no head reads any more: W_q rows of pruned and fixed heads, W_o columns of pruned ones. They stay in memory,
   * since heads are packed together; exportGguf() leaves those of pruned heads out.
   */
  weightsIdleBytes: number;
}

/** Share of the time that each part takes, roughly. */
const LOSSES_SHARE = 0.4;

export async function evaluate(
  engine: LoadedEngine,
  model: LabModel,
  options: EvaluateOptions,
): Promise<Evaluation> {
  checkOptions('evaluate', options, RULES);
  const { signal, onProgress, maxTokens = 32 } = options;
  const part = (from: number, to: number): LabCallOptions => ({
    ...(signal === undefined ? {} : { signal }),
    onProgress: ({ done, what }) => onProgress?.({ done: from + (to - from) * done, what }),
  });
  const shared = { variant: model.variant, ...labSession('evaluate', options) };
  const dialogues = (options.dialogues ?? sampleDialogues()) as ChatMessage[][];
  const questions = [...(options.questions ?? sampleQuestions())];
  const { connection } = engine.link;
  const losses = await labCall(
    connection,
    'losses',
    { ...shared, dialogues },
    part(0, LOSSES_SHARE),
  );
  const { answers } = await labCall(
    connection,
    'recall',
    { ...shared, questions, maxTokens },
    part(LOSSES_SHARE, 1),
  );
  const loss = losses.lossSum / Math.max(1, losses.nTokens);
  return {
    perplexity: Math.exp(loss),
    loss,
    lossError: standardError(losses.perDialogue),
    countedTokens: losses.nTokens,
    firstChoiceShare: losses.nLikeliest / Math.max(1, losses.nTokens),
    answersOnly: losses.answersOnly,
    recall: {
      right: answers.filter(({ isRight }) => isRight).length,
      asked: answers.length,
      answers,
    },
    weightsBytes: model.weightsBytes,
    weightsIdleBytes: await idleBytes(model),
  };
}

async function idleBytes(model: LabModel): Promise<number> {
  const { prune = [], fix = [] } = model.edit;
  let bytes = 0;
  for (const [layer, { dQk, dV }] of model.layers.entries()) {
    const count = (heads: readonly HeadRef[]) =>
      new Set(heads.filter((one) => one.layer === layer).map(({ head }) => head)).size;
    const [nPruned, nFixed] = [count(prune), count(fix)];
    if (nPruned + nFixed === 0) continue;
    const [q, o] = [await model.tensor(layer, 'q'), await model.tensor(layer, 'o')];
    bytes += ((nPruned + nFixed) * dQk * q.packedBytes) / q.rows;
    bytes += (nPruned * dV * o.packedBytes) / o.cols;
  }
  return Math.round(bytes);
}

function standardError(values: readonly number[]): number {
  const n = values.length;
  if (n < 2) return 0;
  const mean = values.reduce((a, b) => a + b, 0) / n;
  const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (n - 1);
  return Math.sqrt(variance / n);
}

export interface SpeedOptions extends LabCallOptions, SessionKeeps {
  /** In their place, for each model its own. */
  keeps?: readonly SessionKeeps[];
  /** Default 5. */
  rounds?: number;
  /** Tokens in the cache before the first measured one. Default 64. */
  nPrompt?: number;
  /** Tokens decoded a round. Default 32. */
  nTokens?: number;
}

const SPEED_RULES: Rules<SpeedOptions> = {
  kvCache: elsewhere,
  eviction: elsewhere,
  keeps: elsewhere,
  rounds: integer(1, 1000),
  nPrompt: integer(1),
  nTokens: integer(2),
  onProgress: callback,
  signal: abortSignal,
};

export interface SpeedResult {
  /** Of the median round. */
  tokensPerSecond: number;
  /** Slowest and fastest round. */
  lowest: number;
  highest: number;
  /** Of the prompt, in the median round. */
  prefillTokensPerSecond: number;
  /** Attention's own part of a decoded token, in the median round. */
  attentionMs: number;
  kvBytesPerToken: number;
  /** Of the whole context, with what the eviction keeps. */
  kvCacheBytes: number;
}

export async function measureSpeed(
  engine: LoadedEngine,
  models: readonly LabModel[],
  options: SpeedOptions,
): Promise<SpeedResult[]> {
  checkOptions('speed', options, SPEED_RULES);
  const { kvCache, eviction, keeps, rounds = 5, nPrompt = 64, nTokens = 32, ...call } = options;
  const shared = { ...(kvCache && { kvCache }), ...(eviction && { eviction }) };
  const variants = models.map(({ variant }, i) => ({
    variant,
    ...labSession('speed', keeps?.[i] ?? shared),
  }));
  const body = { variants, rounds, nPrompt, nTokens };
  const reply = await labCall(engine.link.connection, 'speed', body, call);
  return reply.variants.map((one) => {
    const sorted = [...one.msPerToken].sort((a, b) => a - b);
    return {
      tokensPerSecond: rate(median(one.msPerToken)),
      lowest: rate(sorted.at(-1) ?? 0),
      highest: rate(sorted[0] ?? 0),
      prefillTokensPerSecond: rate(median(one.prefillMsPerToken)),
      attentionMs: median(one.attentionMsPerToken),
      kvBytesPerToken: one.kvBytesPerToken,
      kvCacheBytes: one.kvCacheBytes,
    };
  });
}

const rate = (ms: number) => (ms > 0 ? 1000 / ms : 0);

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
