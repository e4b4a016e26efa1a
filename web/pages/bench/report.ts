// What a measurement means: rates beside what the machine would allow, as figures, as rows for people, and as the text
// that is copied. No DOM.
import type { EngineStats, StageTimes } from 'headlight-wasm';
import { formatBytes, formatCount, formatMilliseconds, formatRate } from '../shared/format.js';
import type { BenchResult } from './measure.js';

/** Of the text's first column. */
const columnWidth = 24;

/** Tokens a second, measured and allowed. */
export interface RateReport {
  name: 'decode' | 'prefill';
  best: number;
  median: number;
  /** The rate at which the ceiling would be met. */
  ceiling: number;
  /** median / ceiling. */
  share: number;
  /** Another ceiling worth knowing. */
  other: { label: string; rate: number };
}

export interface Figures {
  decode: RateReport;
  prefill: RateReport;
  /** Bytes that one decoded token reads: every matrix once, and the cache rows. */
  bytesPerToken: number;
  /** Multiply-adds of one token's matrix products, counted as two. */
  operationsPerToken: number;
}

function bestAndMedian(values: readonly number[]): { best: number; median: number } {
  const sorted = [...values].sort((a, b) => b - a);
  return { best: sorted[0] ?? 0, median: sorted[Math.floor(sorted.length / 2)] ?? 0 };
}

/** Of an untied embedding a token reads one row, of every other matrix all: the share of the weights that is read. */
export function weightBytesRead({ info }: Pick<BenchResult, 'info'>): number {
  const { model, memory } = info;
  if (model.tiedHead) return memory.weightsBytes;
  const embedding = model.vocabSize * model.dModel;
  return (memory.weightsBytes * model.parametersUsed) / (model.parametersUsed + embedding);
}

export function figures(result: BenchResult): Figures {
  const { info, limits, nPrompt, nGen, rounds } = result;
  const meanRows = nPrompt + nGen / 2;
  const bytesPerToken = weightBytesRead(result) + meanRows * info.memory.kvBytesPerToken;
  const operationsPerToken = 2 * info.model.parametersUsed;
  const decodeAt = (gbs: number) => (gbs * 1e9) / bytesPerToken;
  const prefillAt = (gops: number) => (gops * 1e9) / operationsPerToken;
  const report = (
    name: RateReport['name'],
    ceiling: number,
    other: RateReport['other'],
  ): RateReport => {
    const rates = bestAndMedian(rounds.map((round) => round[name]));
    return { name, ...rates, ceiling, share: rates.median / ceiling, other };
  };
  return {
    bytesPerToken,
    operationsPerToken,
    decode: report('decode', decodeAt(limits.modelReadGBs), {
      label: 'from memory',
      rate: decodeAt(limits.readGBs),
    }),
    prefill: report('prefill', prefillAt(limits.dotGops), {
      label: 'with f32',
      rate: prefillAt(limits.fmaGflops),
    }),
  };
}

export function formatShare(share: number): string {
  return Number.isFinite(share) ? `${Math.round(100 * share)} %` : '–';
}

/** Whether the answer was right, in words. */
export function verdict({ answer }: BenchResult): {
  state: 'right' | 'wrong' | 'unknown';
  text: string;
} {
  if (answer.expected === undefined) {
    return {
      state: 'unknown',
      text: 'No answer is known for this file. Every machine must get the same hash.',
    };
  }
  return answer.sha256 === answer.expected
    ? { state: 'right', text: 'The answer is right: its hash is the known one.' }
    : { state: 'wrong', text: `The answer is wrong: the hash must be ${answer.expected}.` };
}

export interface Row {
  term: string;
  value: string;
}

/** "prefillTokensPerSecond" -> "prefill tokens per second". */
function words(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Nested figures as "a: b" rows: whatever the engine tells of itself is shown. */
export function statRows(stats: EngineStats | Record<string, unknown>, prefix = ''): Row[] {
  return Object.entries(stats).flatMap(([key, value]): Row[] => {
    const term = prefix === '' ? words(key) : `${prefix}: ${words(key)}`;
    if (typeof value === 'number') return [{ term, value: shortNumber(value) }];
    if (typeof value === 'string' || typeof value === 'boolean')
      return [{ term, value: String(value) }];
    if (typeof value === 'object' && value !== null)
      return statRows(value as Record<string, unknown>, term);
    return [];
  });
}

function shortNumber(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
}

export interface Stage {
  name: string;
  /** Microseconds of one token. */
  decode: number;
  prefill: number;
}

const stageNames: Record<keyof StageTimes, string> = {
  embeddingMs: 'embedding',
  normsMs: 'norms, sums',
  projectionsMs: 'Q, K, V, output',
  positionsMs: 'positions, cache',
  attentionMs: 'attention',
  feedForwardMs: 'feed-forward',
  activationMs: 'activation',
  headMs: 'output head',
  samplingMs: 'sampling',
};

/** Where a token's time goes, of the last repetition; nothing before the first. */
export function stages({ stats }: Pick<BenchResult, 'stats'>): Stage[] {
  const times = stats.stages;
  if (times === undefined) return [];
  const perToken = (ms: number | undefined, n: number) => (n > 0 ? (1000 * (ms ?? 0)) / n : 0);
  return (Object.keys(stageNames) as (keyof StageTimes)[]).map((key) => ({
    name: stageNames[key],
    decode: perToken(times.decode[key], times.decodeSteps),
    prefill: perToken(times.prefill[key], times.promptTokens),
  }));
}

export function formatMicroseconds(us: number): string {
  return us >= 1000 ? `${(us / 1000).toFixed(1)} ms` : `${us.toFixed(us < 10 ? 1 : 0)} µs`;
}

function stageLines(result: BenchResult): string[] {
  const all = stages(result);
  if (all.length === 0) return [];
  const list = (pick: 'decode' | 'prefill') =>
    all
      .filter((stage) => stage[pick] > 0)
      .sort((a, b) => b[pick] - a[pick])
      .map((stage) => `${stage.name} ${formatMicroseconds(stage[pick])}`)
      .join(', ');
  return [
    `${'a token, writing:'.padEnd(columnWidth)} ${list('decode')}`,
    `${'a token, reading:'.padEnd(columnWidth)} ${list('prefill')}`,
    '',
  ];
}

export function limitRows({ limits, info }: BenchResult): Row[] {
  const isSmall = limits.modelReadGBs !== limits.readGBs;
  const size = formatBytes(info.memory.weightsBytes);
  return [
    { term: 'Reads from memory', value: `${limits.readGBs.toFixed(1)} GB/s` },
    ...(isSmall
      ? [
          {
            term: `Reads of ${size}, over and over`,
            value: `${limits.modelReadGBs.toFixed(1)} GB/s`,
          },
        ]
      : []),
    { term: '8-bit dot products', value: `${limits.dotGops.toFixed(0)} Gop/s` },
    { term: 'f32 multiply-adds', value: `${limits.fmaGflops.toFixed(0)} GFLOP/s` },
  ];
}

export function machineRows({ info, logicalCores, userAgent }: BenchResult): Row[] {
  const { runtime } = info;
  return [
    { term: 'Module', value: `${runtime.module}, dot form ${runtime.dotForm}` },
    { term: 'Threads', value: `${runtime.threads} of ${logicalCores} logical cores` },
    { term: 'Why', value: runtime.reasons.join('; ') || 'no reason was given' },
    { term: 'Cross-origin isolated', value: runtime.crossOriginIsolated ? 'yes' : 'no' },
    { term: 'Browser', value: userAgent },
  ];
}

export function modelRows(result: BenchResult): Row[] {
  const { info, modelName, nPrompt, nGen } = result;
  const { model, memory } = info;
  const { bytesPerToken, operationsPerToken } = figures(result);
  const name = model.name === '' ? modelName : `${modelName} (${model.name})`;
  return [
    { term: 'Model', value: name },
    {
      term: 'Size',
      value: `${formatCount(model.parametersUsed)} parameters in use, weights ${formatBytes(memory.weightsBytes)}`,
    },
    { term: 'Loaded in', value: formatMilliseconds(info.loadMs) },
    { term: 'WebAssembly memory', value: formatBytes(memory.wasmBytes) },
    { term: 'A round', value: `${nPrompt} tokens of prompt, ${nGen} tokens written` },
    {
      term: 'A token',
      value: `reads ${formatBytes(bytesPerToken)} while writing, takes ${formatCount(operationsPerToken)} operations`,
    },
  ];
}

function textRows(rows: readonly Row[]): string[] {
  return rows.map(({ term, value }) => `${`${term}:`.padEnd(columnWidth)} ${value}`);
}

/** What "Copy as text" copies. */
export function asText(result: BenchResult): string {
  const { decode, prefill } = figures(result);
  const rate = ({ name, median, best, ceiling, share, other }: RateReport) =>
    `${`${name}:`.padEnd(columnWidth)} ${formatRate(median)} tokens/s (best ${formatRate(best)}), ` +
    `${formatShare(share)} of the ceiling of ${formatRate(ceiling)} (${other.label}: ${formatRate(other.rate)})`;
  const { answer, rounds } = result;
  return [
    `Headlight bench, ${result.date.toISOString()}`,
    ...textRows(modelRows(result)),
    '',
    rate(decode),
    rate(prefill),
    `${'rounds:'.padEnd(columnWidth)} ${rounds.map((r) => `${formatRate(r.decode)} / ${formatRate(r.prefill)}`).join(', ')} (decode / prefill)`,
    '',
    ...stageLines(result),
    ...textRows(limitRows(result)),
    '',
    ...textRows(machineRows(result)),
    '',
    `${'SHA-256 of the answer:'.padEnd(columnWidth)} ${answer.sha256}`,
    verdict(result).text,
    '',
  ].join('\n');
}
