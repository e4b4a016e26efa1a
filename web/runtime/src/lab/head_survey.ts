// Every head of a loaded model over a calibration text: its metrics, label and kind.
import type { LoadedEngine, TokenIds } from '../engine.js';
import { BadOptionError } from '../errors.js';
import {
  contentSpread,
  type HeadLabel,
  type HeadMetrics,
  headKind,
  headLabel,
  headMetrics,
} from './head_metrics.js';
import { SURVEY_TEXT } from './survey_text.js';

export interface SurveyedHead {
  layer: number;
  /** Query head. */
  head: number;
  /** Means over the parts. */
  metrics: HeadMetrics;
  label: HeadLabel;
  /** See contentSpread. */
  spread: number;
  kind: ReturnType<typeof headKind>;
}

export interface SurveyOptions {
  /** Tokens of a part; the text is cut into parts of this length, and what is left over is not used. Default 48. */
  partLength?: number;
  /** Called after each part. */
  onProgress?: (donePart: number, nParts: number) => void;
  signal?: AbortSignal;
}

const DEFAULT_PART = 48;

/**
 * Runs the parts of a text through the model, one after the other, and looks at every head's map. A part whose tokens come
 * twice tells about induction; at least two parts are needed to see what depends on the text.
 * Uses the engine's default session. Without tokens the text is SURVEY_TEXT. Throws BadOptionError for a text that is too
 * short, and where there is no engine.
 */
export async function surveyHeads(
  engine: LoadedEngine,
  tokens?: TokenIds,
  options: SurveyOptions = {},
): Promise<SurveyedHead[]> {
  if (typeof engine?.forward !== 'function') {
    throw new BadOptionError(
      'surveyHeads: the first argument is a loaded engine. Load one with Engine.load().',
      { option: 'engine', value: String(engine) },
    );
  }
  return surveyTokens(engine, tokens ?? (await engine.tokenize(SURVEY_TEXT)), options);
}

async function surveyTokens(
  engine: LoadedEngine,
  tokens: TokenIds,
  { partLength = DEFAULT_PART, onProgress, signal }: SurveyOptions,
): Promise<SurveyedHead[]> {
  const nParts = Math.floor(tokens.length / partLength);
  if (nParts < 2 || partLength < 2) {
    throw new BadOptionError(
      `surveyHeads: ${tokens.length} tokens give ${nParts} parts of ${partLength}; at least 2 parts of 2 are needed. ` +
        'Give a longer text, a smaller partLength, or no tokens at all for the built-in text.',
      { option: 'tokens', value: String(tokens.length), range: `at least ${2 * partLength}` },
    );
  }
  const heads = new Map<string, { layer: number; head: number; maps: Float32Array[] }>();
  const parts: number[][] = [];
  for (let p = 0; p < nParts; p++) {
    signal?.throwIfAborted();
    const part = Array.from(tokens.slice(p * partLength, (p + 1) * partLength));
    const { capture } = await engine.forward(part, { capture: { rows: 'all' } });
    parts.push(part);
    for (const { layer, heads: ids, attention } of capture?.layers ?? []) {
      ids.forEach((head, i) => {
        const key = `${layer}.${head}`;
        const found = heads.get(key) ?? { layer, head, maps: [] };
        const size = partLength * partLength;
        found.maps.push(attention.data.slice(i * size, (i + 1) * size));
        heads.set(key, found);
      });
    }
    onProgress?.(p + 1, nParts);
  }
  return [...heads.values()].map(({ layer, head, maps }) => {
    const metrics = meanOf(maps.map((map, p) => headMetrics(map, parts[p] ?? [])));
    const spread = contentSpread(maps, partLength);
    return { layer, head, metrics, label: headLabel(metrics), spread, kind: headKind(spread) };
  });
}

function meanOf(all: readonly HeadMetrics[]): HeadMetrics {
  const mean = (of: (metrics: HeadMetrics) => number) =>
    all.reduce((sum, metrics) => sum + of(metrics), 0) / all.length;
  const inductions = all.flatMap(({ induction }) => (induction === undefined ? [] : [induction]));
  return {
    previousToken: mean((m) => m.previousToken),
    firstToken: mean((m) => m.firstToken),
    self: mean((m) => m.self),
    uniform: mean((m) => m.uniform),
    induction:
      inductions.length === 0
        ? undefined
        : inductions.reduce((a, b) => a + b, 0) / inductions.length,
    entropy: mean((m) => m.entropy),
    distance: mean((m) => m.distance),
  };
}
