// The chat's settings as data: each number's bounds, wording and default, and the checks that everything typed or stored
// goes through. What is not set takes the loaded model's default. No DOM.
import type { GenerateOptions, LoadOptions } from 'headlight-wasm';
import { isRecord } from '../../shared/storage.js';

export type SamplingKey =
  | 'temperature'
  | 'topK'
  | 'topP'
  | 'minP'
  | 'repetitionPenalty'
  | 'maxTokens'
  | 'seed';
export type LoadKey = 'nCtx' | 'threads';
export type NumberKey = SamplingKey | LoadKey;

export interface NumberField {
  key: NumberKey;
  label: string;
  hint: string;
  min: number;
  max: number;
  /** Of the slider; a field without one is typed. */
  sliderStep?: number;
  integer: boolean;
  /** What an empty field means, for fields that may be empty. */
  whenEmpty?: string;
  /** The lower bound itself is not allowed. */
  openMin?: boolean;
  /** The upper bound itself is not allowed. */
  openMax?: boolean;
}

const largestSeed = Number.MAX_SAFE_INTEGER;

export const samplingFields: readonly NumberField[] = [
  {
    ...{
      key: 'temperature',
      label: 'Temperature',
      min: 0,
      max: 2,
      sliderStep: 0.05,
      integer: false,
    },
    hint: '0 always takes the likeliest token; higher is more varied.',
  },
  {
    ...{ key: 'topK', label: 'Top-k', min: 0, max: 1000, integer: true },
    hint: 'Choose among this many likeliest tokens; 0 is off.',
  },
  {
    ...{ key: 'topP', label: 'Top-p', min: 0, max: 1, sliderStep: 0.01, integer: false },
    ...{
      openMin: true,
      hint: 'Choose among the likeliest that add up to this probability; 1 is off.',
    },
  },
  {
    ...{ key: 'minP', label: 'Min-p', min: 0, max: 1, sliderStep: 0.01, integer: false },
    ...{ openMax: true, hint: 'Leave out tokens below this share of the likeliest; 0 is off.' },
  },
  {
    ...{ key: 'repetitionPenalty', label: 'Repetition penalty', min: 0.5, max: 2 },
    ...{
      sliderStep: 0.01,
      integer: false,
      hint: 'Above 1, words that were just used get rarer; 1 is off.',
    },
  },
  {
    ...{
      key: 'maxTokens',
      label: 'Longest answer, in tokens',
      min: 1,
      max: 1_000_000,
      integer: true,
    },
    ...{ whenEmpty: 'until the context is full', hint: 'Empty: until the context is full.' },
  },
  {
    ...{ key: 'seed', label: 'Seed', min: 0, max: largestSeed, integer: true },
    ...{
      whenEmpty: 'random',
      hint: 'The same seed gives the same answer. Empty: a new one each time.',
    },
  },
];

export const loadFields: readonly NumberField[] = [
  {
    ...{ key: 'nCtx', label: 'Context length, in tokens', min: 16, max: 1_048_576, integer: true },
    ...{
      whenEmpty: 'automatic',
      hint: "Empty: the model's own, at most 4096. Longer takes more memory.",
    },
  },
  {
    ...{ key: 'threads', label: 'Threads', min: 1, max: 64, integer: true },
    ...{ whenEmpty: 'automatic', hint: 'Empty: half of the cores, where memory can be shared.' },
  },
];

export type Sampling = Pick<GenerateOptions, SamplingKey>;
export type ModuleChoice = NonNullable<LoadOptions['module']>;
export type CacheChoice = NonNullable<NonNullable<LoadOptions['kvCache']>['k']>;

export interface Settings {
  systemPrompt: string;
  /** What the user set; the rest follows the model's defaults. */
  sampling: Sampling;
  load: { nCtx?: number; threads?: number; module: ModuleChoice; kvCache: CacheChoice };
  /** Keep the conversation in this browser. */
  keepChat: boolean;
}

export const moduleChoices: readonly ModuleChoice[] = ['auto', 'simd', 'relaxed'];
export const cacheChoices: readonly CacheChoice[] = ['f32', 'f16', 'int8'];

export function defaultSettings(): Settings {
  return {
    systemPrompt: '',
    sampling: {},
    load: { module: 'auto', kvCache: 'f32' },
    keepChat: true,
  };
}

/** For models that the user opens: what most small chat models are published with. */
const generalSampling: Sampling = {
  ...{ temperature: 0.7, topK: 40, topP: 0.95, minP: 0.05, repetitionPenalty: 1 },
};

/**
 * For the default model. Measured on 600 recall questions of its training grammar: 80.8 % right when greedy, 81.5 % at
 * 0.3, and no less up to 0.7; but greedy tells one story only, and stories hold together better the cooler they are.
 */
const defaultModelSampling: Sampling = {
  ...{ temperature: 0.3, topK: 40, topP: 0.95, minP: 0.1, repetitionPenalty: 1 },
};

export function samplingDefaults(isDefaultModel: boolean): Sampling {
  return isDefaultModel ? defaultModelSampling : generalSampling;
}

/** What a generation gets: the user's values over the model's defaults. */
export function effectiveSampling(settings: Settings, isDefaultModel: boolean): Sampling {
  return { ...samplingDefaults(isDefaultModel), ...settings.sampling };
}

export type Parsed = { ok: true; value: number | undefined } | { ok: false; message: string };

function bounds({ min, max, openMin, openMax }: NumberField): string {
  if (max === largestSeed) return `from ${min} to 2^53 - 1`;
  const low = openMin ? `above ${min}` : `from ${min}`;
  return openMax ? `${low} to below ${max}` : `${low} to ${max}`;
}

function isAllowed(field: NumberField, value: number): boolean {
  if (!Number.isFinite(value) || (field.integer && !Number.isSafeInteger(value))) return false;
  const low = field.openMin ? value > field.min : value >= field.min;
  const high = field.openMax ? value < field.max : value <= field.max;
  return low && high;
}

/** Reads what was typed. An empty text is `undefined`: the default. A decimal comma is understood. */
export function parseNumber(field: NumberField, typed: string): Parsed {
  const text = typed.trim().replace(',', '.');
  if (text === '') return { ok: true, value: undefined };
  const value = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
  if (isAllowed(field, value)) return { ok: true, value };
  const kind = field.integer ? 'a whole number' : 'a number';
  return { ok: false, message: `${field.label} must be ${kind} ${bounds(field)}.` };
}

function readNumbers<K extends NumberKey>(
  stored: unknown,
  fields: readonly NumberField[],
): Partial<Record<K, number>> {
  const numbers: Partial<Record<NumberKey, number>> = {};
  if (!isRecord(stored)) return numbers;
  for (const field of fields) {
    const value = stored[field.key];
    if (typeof value === 'number' && isAllowed(field, value)) numbers[field.key] = value;
  }
  return numbers;
}

function oneOf<T extends string>(choices: readonly T[], value: unknown, otherwise: T): T {
  return choices.find((choice) => choice === value) ?? otherwise;
}

/** Stored settings, each value checked; what is missing or wrong is as if it had never been set. */
export function readSettings(stored: unknown): Settings {
  const settings = defaultSettings();
  if (!isRecord(stored)) return settings;
  const load = isRecord(stored.load) ? stored.load : {};
  const prompt = stored.systemPrompt;
  return {
    systemPrompt: typeof prompt === 'string' ? prompt : '',
    sampling: readNumbers<SamplingKey>(stored.sampling, samplingFields),
    load: {
      ...readNumbers<LoadKey>(load, loadFields),
      module: oneOf(moduleChoices, load.module, 'auto'),
      kvCache: oneOf(cacheChoices, load.kvCache, 'f32'),
    },
    keepChat: stored.keepChat !== false,
  };
}

/** The options of Engine.load that the settings stand for. */
export function loadOptions({ load }: Settings): LoadOptions {
  const { module, kvCache, ...numbers } = load;
  return { ...numbers, module, kvCache: { k: kvCache, v: kvCache } };
}
