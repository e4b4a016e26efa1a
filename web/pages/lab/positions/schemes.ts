// Position schemes: what the third article says of each, what a visitor has chosen, and its place in the address. No DOM.
import type { RopeOptions } from 'headlight-wasm/lab';
import type { UrlState } from '../url_state.js';

export const SCHEMES = ['none', 'sinusoidal', 'learned', 'rope', 'alibi'] as const;
export type Scheme = (typeof SCHEMES)[number];
export const SCALINGS = ['none', 'linear', 'ntk', 'dynamic', 'yarn'] as const;
export type Scaling = (typeof SCALINGS)[number];

export interface SchemeText {
  name: string;
  where: string;
  kind: string;
  /** Past the length of training. */
  beyond: string;
  /** What it does, in a sentence. */
  point: string;
}

export const schemeTexts: Readonly<Record<Scheme, SchemeText>> = {
  none: {
    name: 'None',
    where: 'nowhere',
    kind: 'none',
    beyond: 'nothing to extrapolate',
    point:
      'Nothing in softmax(Q Kᵀ) V knows where a token stands: shuffled tokens give the same outputs, shuffled.',
  },
  sinusoidal: {
    name: 'Sinusoidal',
    where: 'added to embeddings',
    kind: 'absolute (relative recoverable)',
    beyond: 'somewhat',
    point:
      'Sines and cosines of the position are added to the embedding; fast pairs first, like the hands of a clock.',
  },
  learned: {
    name: 'Learned table',
    where: 'added to embeddings',
    kind: 'absolute',
    beyond: 'no',
    point: 'One trained row for each position is added. Where the table ends, the context ends.',
  },
  rope: {
    name: 'RoPE',
    where: 'rotates Q and K in every layer',
    kind: 'relative',
    beyond: 'with scaling (PI, NTK, YaRN)',
    point:
      'Each pair of elements is turned by position × its frequency. Both turn alike, so that only the distance is left.',
  },
  alibi: {
    name: 'ALiBi',
    where: 'subtracted from the scores',
    kind: 'relative',
    beyond: 'yes, naturally',
    point:
      'Nothing is added or turned: a score loses slope × distance, and each head has a slope of its own.',
  },
};

export const scalingTexts: Readonly<Record<Scaling, string>> = {
  none: 'as trained',
  linear: 'position interpolation (÷ s)',
  ntk: 'NTK-aware (larger base)',
  dynamic: 'dynamic NTK (as the context grows)',
  yarn: 'YaRN (slow pairs only)',
};

/** Whole numbers that have a field each: key in the address, default and range. */
export const NUMBERS = {
  dQk: { key: 'posd', label: 'd_qk', usual: 128, min: 2, max: 512, slideTo: 256, step: 2 },
  nRot: {
    key: 'posr',
    label: 'Rotated elements',
    usual: 128,
    min: 2,
    max: 512,
    slideTo: 256,
    step: 2,
  },
  base: { key: 'posb', label: 'Base', usual: 10_000, min: 2, max: 100_000_000 },
  factor: { key: 'posf', label: 'Scaling factor s', usual: 8, min: 1, max: 64, slideTo: 64 },
  trained: { key: 'post', label: 'Trained on n', usual: 4096, min: 8, max: 131_072 },
  context: { key: 'posc', label: 'Context now', usual: 8192, min: 8, max: 1_048_576 },
  heads: { key: 'posh', label: 'Heads', usual: 8, min: 1, max: 256, slideTo: 64 },
  reach: {
    key: 'posn',
    label: 'Distances up to',
    usual: 256,
    min: 8,
    max: 2048,
    slideTo: 2048,
    step: 8,
  },
  moved: { key: 'posm', label: 'Move both by', usual: 1000, min: 1, max: 8192, slideTo: 8192 },
} as const;
export type NumberName = keyof typeof NUMBERS;
export const NUMBER_NAMES = Object.keys(NUMBERS) as NumberName[];

export type Setup = {
  scheme: Scheme;
  scaling: Scaling;
  style: 'interleaved' | 'half-split';
  vectors: 'equal' | 'random';
} & Record<NumberName, number>;

export function readSetup(state: UrlState): Setup {
  const numbers = Object.fromEntries(
    NUMBER_NAMES.map((name) => {
      const { key, usual, min, max } = NUMBERS[name];
      return [name, Math.round(state.number(key, min, max) ?? usual)];
    }),
  ) as Record<NumberName, number>;
  const even = (n: number) => n - (n % 2);
  const dQk = even(numbers.dQk);
  return {
    ...numbers,
    dQk,
    // Until it is set, the whole head is rotated.
    nRot: even(Math.min(dQk, state.number('posr', 2, 512) ?? dQk)),
    scheme: state.oneOf('pos', SCHEMES) ?? 'rope',
    scaling: state.oneOf('poss', SCALINGS) ?? 'none',
    style: state.oneOf('posp', ['interleaved', 'half-split']) ?? 'interleaved',
    vectors: state.oneOf('posv', ['equal', 'random']) ?? 'equal',
  };
}

export function ropeOptions(
  { nRot, base, style, factor, trained, context }: Setup,
  scaling: Scaling,
): RopeOptions {
  return {
    ...{ nRot, style, scaling, factor },
    freqBase: base,
    nCtxOriginal: trained,
    nCtx: scaling === 'dynamic' ? Math.max(trained, context) : trained,
  };
}

/** Which numbers of the setup count. */
export function usedNumbers({ scheme, scaling }: Setup): ReadonlySet<NumberName> {
  const used: NumberName[] = ['dQk', 'reach', 'moved'];
  if (scheme === 'learned') used.push('trained');
  if (scheme === 'alibi') used.push('heads');
  if (scheme === 'rope') {
    used.push('nRot', 'base', 'factor', 'trained');
    if (scaling === 'dynamic') used.push('context');
  }
  return new Set(used);
}
