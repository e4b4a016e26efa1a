// Whole models of given layouts with random weights, run in this tab in turns: prefill and decode speed, attention's time as the
// cache fills, and what each cache format costs. No DOM.
import { type CacheType, Engine } from 'headlight-wasm';
import { ModelLab, type ModelShape, randomModel, randomModelBytes } from 'headlight-wasm/lab';
import { relativeRms, type Spread, spread } from '../bytes/try_layout.js';

export const nRounds = 5;
/** Weights of one model that a try takes. */
export const maxWeightBytes = 80e6;
const vocabLimit = 4096;
export const fillings = [32, 128, 512, 1024] as const;
const measuredTokens = 12;
export const caches: readonly CacheType[] = ['f32', 'f16', 'int8'];

export interface Runnable {
  label: string;
  shape: ModelShape;
}

/** The layout as far as a tab can run it: fewer layers, a smaller vocabulary, and what was left out. */
export function fitted({ label, shape }: Runnable): Runnable & { note: string } {
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

export interface RunRow {
  label: string;
  note: string;
  weightsBytes: number;
  kvBytesPerToken: number;
  /** Milliseconds a token at each filling. */
  decode: { nKv: number; ms: Spread; attentionMs: Spread }[];
  prefill: Spread;
  /** Relative RMS of the logits against an f32 cache. */
  errors: { cache: CacheType; error: number }[];
}

export interface RunOptions {
  models: readonly Runnable[];
  signal: AbortSignal;
  onProgress(text: string): void;
}

interface Running {
  fitted: ReturnType<typeof fitted>;
  engine: Engine;
  lab: ModelLab;
  decode: Map<number, { ms: number[]; attentionMs: number[] }>;
  prefill: number[];
  kvBytesPerToken: number;
}

async function load(model: Runnable, signal: AbortSignal): Promise<Running> {
  const own = fitted(model);
  if (own.shape.nLayers < 1) throw new Error(`${model.label}: one layer of it is over 80 MB`);
  const nCtx = Math.max(...fillings) + 2 * measuredTokens;
  const engine = await Engine.load(randomModel(own.shape, { nCtx }), { nCtx, threads: 1, signal });
  return {
    ...{ fitted: own, engine, lab: new ModelLab(engine), prefill: [], kvBytesPerToken: 0 },
    decode: new Map(fillings.map((n) => [n, { ms: [], attentionMs: [] }])),
  };
}

/** One round of one model at one filling. */
async function measure(running: Running, nPrompt: number, signal: AbortSignal): Promise<void> {
  const { lab, decode, prefill } = running;
  const [result] = await lab.speed([lab.original], {
    ...{ rounds: 1, nPrompt, nTokens: measuredTokens, signal },
  });
  if (result === undefined) return;
  decode.get(nPrompt)?.ms.push(1000 / result.tokensPerSecond);
  decode.get(nPrompt)?.attentionMs.push(result.attentionMs);
  if (nPrompt === 512) prefill.push(1000 / result.prefillTokensPerSecond);
  running.kvBytesPerToken = result.kvBytesPerToken;
}

async function cacheErrors({ lab }: Running): Promise<RunRow['errors']> {
  const vocabSize = lab.info.model.vocabSize;
  const tokens = Uint32Array.from({ length: 128 }, (_, i) => (i * 7919 + 13) % vocabSize);
  const exact = await lab.original.logits(tokens);
  const errors: RunRow['errors'] = [];
  for (const cache of caches) {
    const logits = await lab.original.logits(tokens, { k: cache, v: cache });
    errors.push({ cache, error: relativeRms(logits, exact) });
  }
  return errors;
}

/** Throws the signal's reason when it fires, and what loading throws. */
export async function runModels({ models, signal, onProgress }: RunOptions): Promise<RunRow[]> {
  const running: Running[] = [];
  try {
    for (const model of models) {
      onProgress(`Building ${model.label} …`);
      running.push(await load(model, signal));
    }
    // Round 0 warms up and does not count.
    for (let round = 0; round <= nRounds; round++) {
      onProgress(round === 0 ? 'Warming up …' : `Round ${round} of ${nRounds} …`);
      for (const nKv of round === 0 ? fillings.slice(0, 1) : fillings) {
        for (const one of running) {
          signal.throwIfAborted();
          await measure(one, nKv, signal);
          if (round === 0)
            for (const times of one.decode.values()) times.ms.length = times.attentionMs.length = 0;
        }
      }
    }
    const rows: RunRow[] = [];
    for (const one of running) {
      rows.push({
        ...{ label: one.fitted.label, note: one.fitted.note },
        weightsBytes: one.engine.info.memory.weightsBytes,
        kvBytesPerToken: one.kvBytesPerToken,
        decode: [...one.decode].map(([nKv, times]) => ({
          nKv,
          ms: spread(times.ms),
          attentionMs: spread(times.attentionMs),
        })),
        prefill: spread(one.prefill),
        errors: await cacheErrors(one),
      });
    }
    return rows;
  } finally {
    for (const { engine } of running) void engine.dispose();
  }
}

/** Who decodes faster with a short and with a full cache, and whether the rounds overlap. */
export function runWinner(rows: readonly RunRow[]): string {
  const [a, b] = rows;
  if (a === undefined || b === undefined) return '';
  return [Math.min(...fillings), Math.max(...fillings)]
    .map((nKv) => {
      const [x, y] = [a, b].map((row) => row.decode.find((one) => one.nKv === nKv)?.ms);
      if (x === undefined || y === undefined) return '';
      const [fast, slow, name] = x.median <= y.median ? [x, y, a.label] : [y, x, b.label];
      const overlap = fast.high >= slow.low;
      return `With ${nKv} tokens in the cache ${name} is ${(slow.median / fast.median).toFixed(2)} times as fast${overlap ? ', but the rounds overlap: no safe winner' : ', in every round'}.`;
    })
    .join(' ');
}
