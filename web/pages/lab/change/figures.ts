// Before and after: the figures of an edit side by side, and how much each changed. No DOM.
import type { Evaluation, SpeedResult } from 'headlight-wasm/lab';
import { binaryBytes } from '../bytes/units.js';

export interface Measured {
  label: string;
  evaluation: Evaluation;
  speed: SpeedResult;
  /** What it writes to the visitor's prompt. */
  text: string;
}

export interface FigureRow {
  name: string;
  before: string;
  after: string;
  /** (after - before) / before. */
  change: number;
  /** Whether more is worse: the chart's colour. */
  lessIsBetter: boolean;
}

/** Rows and columns of heads that are gone stay in memory beside the others', but nobody reads them. */
export function weightsRead({ weightsBytes, weightsIdleBytes }: Evaluation): number {
  return weightsBytes - weightsIdleBytes;
}

const NAMES: readonly {
  name: string;
  value(measured: Measured): number;
  text(value: number, measured: Measured): string;
  lessIsBetter: boolean;
}[] = [
  {
    name: 'Perplexity of the answers',
    value: ({ evaluation }) => evaluation.perplexity,
    text: (value) => value.toFixed(3),
    lessIsBetter: true,
  },
  {
    name: 'Loss, nats a token',
    value: ({ evaluation }) => evaluation.loss,
    text: (value, { evaluation }) => `${value.toFixed(4)} ± ${evaluation.lossError.toFixed(4)}`,
    lessIsBetter: true,
  },
  {
    name: 'First choice right',
    value: ({ evaluation }) => evaluation.firstChoiceShare,
    text: (value) => `${(100 * value).toFixed(1)} %`,
    lessIsBetter: false,
  },
  {
    name: 'Facts recalled',
    value: ({ evaluation: { recall } }) => recall.right / Math.max(1, recall.asked),
    text: (_, { evaluation: { recall } }) => `${recall.right} of ${recall.asked}`,
    lessIsBetter: false,
  },
  {
    name: 'Tokens a second',
    value: ({ speed }) => speed.tokensPerSecond,
    text: (value, { speed }) =>
      `${value.toFixed(0)} (${speed.lowest.toFixed(0)} to ${speed.highest.toFixed(0)})`,
    lessIsBetter: false,
  },
  {
    name: 'Weights that are read',
    value: ({ evaluation }) => weightsRead(evaluation),
    text: (value) => binaryBytes(value),
    lessIsBetter: true,
  },
  {
    name: 'Cache, one token',
    value: ({ speed }) => speed.kvBytesPerToken,
    text: (value) => binaryBytes(value),
    lessIsBetter: true,
  },
  {
    name: 'Cache, whole context',
    value: ({ speed }) => speed.kvCacheBytes,
    text: (value) => binaryBytes(value),
    lessIsBetter: true,
  },
];

export function figureRows(before: Measured, after: Measured): FigureRow[] {
  return NAMES.map(({ name, value, text, lessIsBetter }) => {
    const [a, b] = [value(before), value(after)];
    return {
      ...{ name, lessIsBetter },
      before: text(a, before),
      after: text(b, after),
      change: a === 0 ? 0 : (b - a) / a,
    };
  });
}

export function percent(change: number): string {
  if (Math.abs(change) < 5e-5) return '0 %';
  const digits = Math.abs(change) < 0.1 ? 2 : 1;
  return `${change < 0 ? '−' : '+'}${Math.abs(100 * change).toFixed(digits)} %`;
}

/** One sentence for who reads nothing else. */
export function verdict(before: Measured, after: Measured): string {
  const loss = after.evaluation.loss - before.evaluation.loss;
  const error = before.evaluation.lossError;
  const lost = before.evaluation.recall.right - after.evaluation.recall.right;
  const size =
    Math.abs(loss) < 0.1 * error
      ? 'costs next to nothing'
      : loss < 0
        ? 'made the loss smaller on this text'
        : `costs ${loss.toFixed(3)} nats a token (${percent(loss / before.evaluation.loss)})`;
  const facts = lost > 0 ? ` and ${lost} of ${before.evaluation.recall.right} recalled facts` : '';
  const bytes = weightsRead(before.evaluation) - weightsRead(after.evaluation);
  const cache = before.speed.kvBytesPerToken - after.speed.kvBytesPerToken;
  const whole = before.speed.kvCacheBytes - after.speed.kvCacheBytes;
  const savings = [
    bytes > 0 ? `${binaryBytes(bytes)} of weights` : '',
    cache > 0 ? `${binaryBytes(cache)} of cache a token` : '',
    cache === 0 && whole > 0 ? `${binaryBytes(whole)} of the cache` : '',
  ].filter((part) => part !== '');
  const saved = savings.length > 0 ? ` and saves ${savings.join(' and ')}` : '';
  return `${after.label}: ${size}${facts}${saved}.`;
}
