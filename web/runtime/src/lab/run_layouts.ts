// Whole models of given layouts with random weights, run in turns: prefill and decode speed, attention's time as the cache
// fills, and what each cache format costs.
import type { LoadedEngine } from '../engine.js';
import { AbortedError, BadOptionError } from '../errors.js';
import { abortSignal, callback, checkOptions, elsewhere, type Rules } from '../options.js';
import type { CacheType, LoadOptions } from '../types.js';
import { ModelLab } from './model_lab.js';
import { randomModel, randomModelBytes } from './random_model.js';
import type { ModelShape } from './shape.js';
import { relativeRms, type Spread, spread } from './spread.js';

/** Rounds that count. */
export const LAYOUT_ROUNDS = 5;
/** Weights of one model that a run takes: a phone holds two of them. */
const maxWeightBytes = 80e6;
const vocabLimit = 4096;
/** Keys in the cache at which decoding is measured. */
export const LAYOUT_FILLINGS = [32, 128, 512, 1024] as const;
const prefillTokens = 512;
const measuredTokens = 12;
const caches: readonly CacheType[] = ['f32', 'f16', 'int8'];

/** A layout and what to call it. */
export interface NamedLayout {
  label: string;
  shape: ModelShape;
}

/**
 * The layout as far as a tab can run it: fewer layers where its weights are over 80 MB, at most 4,096 tokens, a gated
 * feed-forward; `note` says what was left out.
 */
export function fittedLayout({ label, shape }: NamedLayout): NamedLayout & { note: string } {
  const plain: ModelShape = {
    ...shape,
    ...{ tiedHead: true, nExtraBlocks: 0, nMemorySites: 0, nLanes: 1 },
    ...{ vocabSize: Math.min(shape.vocabSize, vocabLimit) },
    dFf: shape.feedForward === 'gated' && shape.dFf > 0 ? shape.dFf : 2 * shape.dModel,
  };
  const one = randomModelBytes({ ...plain, nLayers: 1 });
  const head = randomModelBytes({ ...plain, nLayers: 0 });
  const most = Math.floor((maxWeightBytes - head) / Math.max(1, one - head));
  const nLayers = Math.min(shape.nLayers, most);
  const notes = [
    nLayers < shape.nLayers ? `${nLayers} of its ${shape.nLayers} layers` : '',
    plain.vocabSize < shape.vocabSize ? `${plain.vocabSize} of its ${shape.vocabSize} tokens` : '',
    shape.feedForward === 'gated' ? '' : 'a gated feed-forward in place of its own',
  ].filter((note) => note !== '');
  return { label, shape: { ...plain, nLayers }, note: notes.join(', ') };
}

export interface LayoutRun {
  label: string;
  /** What was left out of the layout; '' for nothing. */
  note: string;
  weightsBytes: number;
  kvBytesPerToken: number;
  /** Milliseconds a token at each filling. */
  decode: { nKv: number; ms: Spread; attentionMs: Spread }[];
  /** Milliseconds a token of a prompt of 512. */
  prefill: Spread;
  /** Relative RMS of the logits against an f32 cache. */
  errors: { cache: CacheType; error: number }[];
}

export interface LayoutRunProgress {
  /** From 1; 0 while models are built and warmed up. */
  round: number;
  nRounds: number;
  /** The layout whose model is being built. */
  building?: string;
}

export interface RunLayoutsOptions {
  /** Engine.load of the same package. */
  load(source: Uint8Array, options: LoadOptions): Promise<LoadedEngine>;
  onProgress?(progress: LayoutRunProgress): void;
  signal?: AbortSignal;
}

const RULES: Rules<RunLayoutsOptions> = {
  load: callback,
  onProgress: callback,
  signal: abortSignal,
};
const LAYOUT_RULES: Rules<NamedLayout> = { label: elsewhere, shape: elsewhere };

interface Running {
  fitted: ReturnType<typeof fittedLayout>;
  engine: LoadedEngine;
  lab: ModelLab;
  decode: Map<number, { ms: number[]; attentionMs: number[] }>;
  prefill: number[];
  kvBytesPerToken: number;
}

async function start(layout: NamedLayout, options: RunLayoutsOptions): Promise<Running> {
  const own = fittedLayout(layout);
  if (own.shape.nLayers < 1) {
    throw new BadOptionError(
      `runLayouts: one layer of ${layout.label} is over ${maxWeightBytes / 1e6} MB; make it narrower`,
      { option: 'shape', label: layout.label },
    );
  }
  const nCtx = Math.max(...LAYOUT_FILLINGS) + 2 * measuredTokens;
  const { signal } = options;
  const engine = await options.load(randomModel(own.shape, { nCtx }), {
    ...{ nCtx, threads: 1 },
    ...(signal && { signal }),
  });
  return {
    ...{ fitted: own, engine, lab: new ModelLab(engine), prefill: [], kvBytesPerToken: 0 },
    decode: new Map(LAYOUT_FILLINGS.map((n) => [n, { ms: [], attentionMs: [] }])),
  };
}

/** One round of one model at one filling. */
async function measure(
  running: Running,
  nPrompt: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { lab, decode, prefill } = running;
  const [result] = await lab.speed([lab.original], {
    ...{ rounds: 1, nPrompt, nTokens: measuredTokens },
    ...(signal && { signal }),
  });
  if (result === undefined) return;
  decode.get(nPrompt)?.ms.push(1000 / result.tokensPerSecond);
  decode.get(nPrompt)?.attentionMs.push(result.attentionMs);
  if (nPrompt === prefillTokens) prefill.push(1000 / result.prefillTokensPerSecond);
  running.kvBytesPerToken = result.kvBytesPerToken;
}

async function cacheErrors({ lab }: Running): Promise<LayoutRun['errors']> {
  const vocabSize = lab.info.model.vocabSize;
  const tokens = Uint32Array.from({ length: 128 }, (_, i) => (i * 7919 + 13) % vocabSize);
  const exact = await lab.original.logits(tokens);
  const errors: LayoutRun['errors'] = [];
  for (const cache of caches) {
    const logits = await lab.original.logits(tokens, { k: cache, v: cache });
    errors.push({ cache, error: relativeRms(logits, exact) });
  }
  return errors;
}

function rowOf(one: Running, errors: LayoutRun['errors']): LayoutRun {
  return {
    ...{ label: one.fitted.label, note: one.fitted.note },
    weightsBytes: one.engine.info.memory.weightsBytes,
    kvBytesPerToken: one.kvBytesPerToken,
    decode: [...one.decode].map(([nKv, times]) => ({
      nKv,
      ms: spread(times.ms),
      attentionMs: spread(times.attentionMs),
    })),
    prefill: spread(one.prefill),
    errors,
  };
}

/**
 * Runs the layouts with random weights on one thread, in turns, so that what disturbs the machine disturbs all of them. Rejects
 * with BadOptionError for a layout that no model can have or whose single layer is too large, OutOfMemoryError, AbortedError.
 */
export async function runLayouts(
  layouts: readonly NamedLayout[],
  options: RunLayoutsOptions,
): Promise<LayoutRun[]> {
  checkOptions('runLayouts', options, RULES);
  for (const layout of layouts) checkOptions('runLayouts', layout, LAYOUT_RULES);
  const { signal, onProgress = () => {} } = options;
  const told = { nRounds: LAYOUT_ROUNDS };
  const running: Running[] = [];
  try {
    for (const layout of layouts) {
      onProgress({ ...told, round: 0, building: layout.label });
      running.push(await start(layout, options));
    }
    // Round 0 warms up and does not count.
    for (let round = 0; round <= LAYOUT_ROUNDS; round++) {
      onProgress({ ...told, round });
      for (const nKv of round === 0 ? LAYOUT_FILLINGS.slice(0, 1) : LAYOUT_FILLINGS) {
        for (const one of running) {
          if (signal?.aborted) throw new AbortedError();
          await measure(one, nKv, signal);
          if (round === 0)
            for (const times of one.decode.values()) times.ms.length = times.attentionMs.length = 0;
        }
      }
    }
    const rows: LayoutRun[] = [];
    for (const one of running) rows.push(rowOf(one, await cacheErrors(one)));
    return rows;
  } finally {
    for (const { engine } of running) void engine.dispose();
  }
}

/** Who decodes faster with a short and with a full cache, and whether the rounds overlap. */
export function layoutWinner(rows: readonly LayoutRun[]): string {
  const [a, b] = rows;
  if (a === undefined || b === undefined) return '';
  return [Math.min(...LAYOUT_FILLINGS), Math.max(...LAYOUT_FILLINGS)]
    .map((nKv) => {
      const [x, y] = [a, b].map((row) => row.decode.find((one) => one.nKv === nKv)?.ms);
      if (x === undefined || y === undefined) return '';
      const [fast, slow, name] = x.median <= y.median ? [x, y, a.label] : [y, x, b.label];
      const overlap = fast.high >= slow.low;
      return `With ${nKv} tokens in the cache ${name} is ${(slow.median / fast.median).toFixed(2)} times as fast${overlap ? ', but the rounds overlap: no safe winner' : ', in every round'}.`;
    })
    .join(' ');
}
