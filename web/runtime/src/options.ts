// Checks what users pass, once, and fills in the defaults. Every option has one line in a table that says its range;
// an unknown name or an impossible value throws BadOptionError with the name, the value and the range.
import { BadOptionError } from './errors.js';
import { MAX_THREADS } from './modules.js';
import type { DownloadOptionsWire, GenerateOptionsWire, SessionOptionsWire } from './protocol.js';
import { DEFAULT_RETRIES } from './store/transfer.js';
import type { ChatMessage, ChatOptions, Eviction, GenerateOptions, LoadOptions } from './types.js';

/** Says whether a value is good, and what is. */
export interface Rule {
  range: string;
  accepts(value: unknown): boolean;
}
export type Rules<T> = { readonly [K in keyof Required<T>]: Rule };

export function number(min: number, max: number, openMin = false): Rule {
  return {
    range: `a number in ${openMin ? '(' : '['}${min}, ${max}]`,
    accepts: (v) => typeof v === 'number' && (openMin ? v > min : v >= min) && v <= max,
  };
}

export function integer(min: number, max = Number.MAX_SAFE_INTEGER): Rule {
  const range =
    max === Number.MAX_SAFE_INTEGER
      ? `an integer of at least ${min}`
      : `an integer in [${min}, ${max}]`;
  return {
    range,
    accepts: (v) => Number.isSafeInteger(v) && (v as number) >= min && (v as number) <= max,
  };
}

export function oneOf(...values: readonly string[]): Rule {
  return {
    range: values.map((v) => `'${v}'`).join(' | '),
    accepts: (v) => typeof v === 'string' && values.includes(v),
  };
}

export const boolean: Rule = { range: 'true or false', accepts: (v) => typeof v === 'boolean' };
export const callback: Rule = { range: 'a function', accepts: (v) => typeof v === 'function' };
export const abortSignal: Rule = {
  range: 'an AbortSignal',
  accepts: (v) =>
    typeof v === 'object' &&
    v !== null &&
    ['aborted', 'addEventListener', 'removeEventListener'].every((name) => name in v),
};
export const float32Array: Rule = {
  range: 'a Float32Array',
  accepts: (v) => v instanceof Float32Array,
};

/** Checked by a function of its own, with a message of its own. */
export const elsewhere: Rule = { range: '', accepts: () => true };

function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (typeof value === 'object' && value !== null)
    return Array.isArray(value) ? 'an array' : 'an object';
  return String(value);
}

export function badOption(
  where: string,
  option: string,
  value: unknown,
  range: string,
): BadOptionError {
  const details = { option, value: shown(value), range };
  return new BadOptionError(`${where}: ${option} is ${shown(value)}; it must be ${range}`, details);
}

/** `undefined` stands for an option that was left out. */
export function checkOptions<T>(where: string, options: T, rules: Rules<T>): void {
  if (typeof options !== 'object' || options === null) {
    throw badOption(where, 'options', options, 'an object');
  }
  for (const [name, value] of Object.entries(options)) {
    const rule = Object.hasOwn(rules, name) ? rules[name as keyof T] : undefined;
    if (rule === undefined) {
      const known = Object.keys(rules).join(', ');
      throw new BadOptionError(`${where}: there is no option '${name}'. Known options: ${known}`, {
        option: name,
        value: shown(value),
        range: known,
      });
    }
    if (value !== undefined && !rule.accepts(value))
      throw badOption(where, name, value, rule.range);
  }
}

const CACHE_TYPE = oneOf('f32', 'f16', 'int8');
const CACHE_RULES: Rules<NonNullable<LoadOptions['kvCache']>> = { k: CACHE_TYPE, v: CACHE_TYPE };

/** More first keys than this have never helped; the module takes no more. */
const MAX_SINKS = 32;
const EVICTION_RULES: Record<Eviction['policy'], Rules<Record<string, unknown>>> = {
  none: { policy: elsewhere },
  sinks: { policy: elsewhere, sinks: integer(0, MAX_SINKS), window: integer(1) },
  h2o: { policy: elsewhere, budget: integer(1), window: integer(1) },
  snapkv: { policy: elsewhere, budget: integer(1), window: integer(1) },
};

/** `policy` decides which other options there are. */
export function checkEviction(where: string, eviction: LoadOptions['eviction']): void {
  if (eviction === undefined) return;
  const given: Record<string, unknown> = { ...eviction };
  const rules = Object.entries(EVICTION_RULES).find(([name]) => name === given.policy);
  if (rules === undefined) {
    const known = Object.keys(EVICTION_RULES).map((name) => `'${name}'`);
    throw badOption(`${where}: eviction`, 'policy', given.policy, known.join(' or '));
  }
  checkOptions(`${where}: eviction`, given, rules[1]);
  if ('budget' in rules[1] && given.budget === undefined) {
    throw badOption(`${where}: eviction`, 'budget', undefined, 'the number of keys to keep');
  }
}

const STORE_VALUES: readonly unknown[] = [true, false, 'require'];
const MAX_RETRIES = 1000;

const LOAD_RULES: Rules<LoadOptions> = {
  nCtx: integer(1),
  threads: integer(1, MAX_THREADS),
  kvCache: elsewhere,
  eviction: elsewhere,
  module: oneOf('auto', 'simd', 'relaxed'),
  activations: oneOf('int8', 'f32'),
  store: { range: "true, false or 'require'", accepts: (v) => STORE_VALUES.includes(v) },
  sha256: {
    range: '64 hex digits, or an array of such strings, one a file',
    accepts: (v) => (Array.isArray(v) ? v.every(isSha256) : isSha256(v)),
  },
  retries: integer(0, MAX_RETRIES),
  revalidate: boolean,
  onProgress: callback,
  signal: abortSignal,
};

function isSha256(value: unknown): boolean {
  return typeof value === 'string' && /^[0-9a-f]{64}$/i.test(value);
}

/** @param nFiles of the model: each needs its own hash, or none has one */
export function downloadOptions(options: LoadOptions, nFiles: number): DownloadOptionsWire {
  const { store = false, sha256, retries = DEFAULT_RETRIES, revalidate = false } = options;
  const given = sha256 === undefined ? [] : typeof sha256 === 'string' ? [sha256] : sha256;
  if (given.length > 0 && given.length !== nFiles) {
    const range = `one hash for each of the model's ${nFiles} files`;
    throw badOption('Engine.load', 'sha256', `${given.length} hashes`, range);
  }
  return {
    store: store === 'require' ? 'require' : store ? 'try' : 'off',
    sha256: given.map((hash) => hash.toLowerCase()),
    retries,
    revalidate,
  };
}

export function checkKvCache(where: string, kvCache: LoadOptions['kvCache']): void {
  if (kvCache !== undefined) checkOptions(`${where}: kvCache`, kvCache, CACHE_RULES);
}

export function checkLoadOptions(options: LoadOptions, where = 'Engine.load'): void {
  checkOptions(where, options, LOAD_RULES);
  checkKvCache(where, options.kvCache);
  checkEviction(where, options.eviction);
}

export type EvictionWire = Pick<
  SessionOptionsWire,
  'eviction' | 'evictionSinks' | 'evictionWindow' | 'evictionBudget'
>;

/** The prompt's last queries that 'snapkv' asks: the value of the paper's code. */
const SNAPKV_WINDOW = 32;

export function evictionWire(eviction: Eviction): EvictionWire {
  const wire = (sinks: number, window: number, budget: number): EvictionWire => ({
    eviction: eviction.policy,
    evictionSinks: sinks,
    evictionWindow: window,
    evictionBudget: budget,
  });
  switch (eviction.policy) {
    case 'none':
      return wire(0, 0, 0);
    case 'sinks':
      return wire(eviction.sinks ?? 4, eviction.window ?? 128, 0);
    case 'h2o':
      return wire(0, eviction.window ?? Math.ceil(eviction.budget / 2), eviction.budget);
    case 'snapkv':
      return wire(0, eviction.window ?? Math.min(SNAPKV_WINDOW, eviction.budget), eviction.budget);
  }
}

export function sessionOptions(options: LoadOptions): SessionOptionsWire {
  return {
    nCtx: options.nCtx ?? 0,
    kvCacheK: options.kvCache?.k ?? 'f32',
    kvCacheV: options.kvCache?.v ?? 'f32',
    activations: options.activations ?? 'int8',
    ...evictionWire(options.eviction ?? { policy: 'none' }),
  };
}

export const MAX_LOGPROBS = 20;
/** Beyond this every distribution is flat. */
const MAX_TEMPERATURE = 100;
/** What the module counts with. */
export const MAX_UINT32 = 2 ** 32 - 1;

const GENERATE_RULES: Rules<GenerateOptions> = {
  temperature: number(0, MAX_TEMPERATURE),
  topK: integer(0, MAX_UINT32),
  topP: number(0, 1, true),
  minP: { range: 'a number in [0, 1)', accepts: (v) => typeof v === 'number' && v >= 0 && v < 1 },
  repetitionPenalty: number(0, MAX_TEMPERATURE, true),
  frequencyPenalty: number(-2, 2),
  presencePenalty: number(-2, 2),
  penaltyLastN: integer(0, MAX_UINT32),
  seed: integer(0),
  logitBias: elsewhere,
  maxTokens: integer(1, MAX_UINT32),
  stop: elsewhere,
  logprobs: integer(0, MAX_LOGPROBS),
  ignoreEndOfGeneration: boolean,
  capture: elsewhere,
  signal: abortSignal,
};

const CHAT_RULES: Rules<ChatOptions> = {
  ...GENERATE_RULES,
  tools: { range: 'an array', accepts: Array.isArray },
  onContextFull: oneOf('error', 'drop-oldest'),
};

export function checkGenerateOptions(where: string, options: GenerateOptions): void {
  checkOptions(where, options, GENERATE_RULES);
}

export function checkChatOptions(where: string, options: ChatOptions): void {
  checkOptions(where, options, CHAT_RULES);
}

function stopStrings(where: string, stop: GenerateOptions['stop']): string[] {
  const list = stop === undefined ? [] : typeof stop === 'string' ? [stop] : stop;
  const range = 'a string or an array of strings, none of them empty';
  if (!Array.isArray(list)) throw badOption(where, 'stop', stop, range);
  for (const text of list) {
    if (typeof text !== 'string' || text === '') throw badOption(where, 'stop', text, range);
  }
  return [...list];
}

function logitBias(where: string, bias: GenerateOptions['logitBias'], vocabSize: number) {
  const entries = Object.entries(bias ?? {});
  const ids = new Uint32Array(entries.length);
  const values = new Float32Array(entries.length);
  entries.forEach(([key, value], i) => {
    const id = Number(key);
    if (!Number.isInteger(id) || id < 0 || id >= vocabSize) {
      throw badOption(where, 'logitBias', key, `keyed by token ids in [0, ${vocabSize})`);
    }
    if (typeof value !== 'number' || Number.isNaN(value) || value === Infinity) {
      throw badOption(where, `logitBias[${key}]`, value, 'a finite number or -Infinity');
    }
    ids[i] = id;
    values[i] = value;
  });
  return { ids, values };
}

/** 32 random bits: short enough to be noted down and typed in again. */
function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}

export function generateOptionsWire(
  where: string,
  options: GenerateOptions,
  vocabSize: number,
): GenerateOptionsWire {
  const bias = logitBias(where, options.logitBias, vocabSize);
  return {
    temperature: options.temperature ?? 0.8,
    topK: options.topK ?? 40,
    topP: options.topP ?? 0.95,
    minP: options.minP ?? 0.05,
    repetitionPenalty: options.repetitionPenalty ?? 1,
    frequencyPenalty: options.frequencyPenalty ?? 0,
    presencePenalty: options.presencePenalty ?? 0,
    penaltyLastN: options.penaltyLastN ?? 64,
    seed: options.seed ?? randomSeed(),
    logitBiasIds: bias.ids,
    logitBiasValues: bias.values,
    maxTokens: options.maxTokens ?? 0,
    stop: stopStrings(where, options.stop),
    logprobs: options.logprobs,
    ignoreEndOfGeneration: options.ignoreEndOfGeneration ?? false,
  };
}

export function checkMessages(where: string, messages: readonly ChatMessage[]): void {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw badOption(where, 'messages', messages, 'an array of at least one {role, content}');
  }
  messages.forEach((message: unknown, i) => {
    const { role, content } = (message ?? {}) as Record<string, unknown>;
    if (typeof role !== 'string' || role === '') {
      throw badOption(where, `messages[${i}].role`, role, "a role such as 'user'");
    }
    if (typeof content !== 'string')
      throw badOption(where, `messages[${i}].content`, content, 'a string');
  });
}

export function checkText(where: string, text: unknown): asserts text is string {
  if (typeof text !== 'string') throw badOption(where, 'text', text, 'a string');
}

export function checkTokens(
  where: string,
  tokens: ArrayLike<number>,
  vocabSize: number,
): Uint32Array {
  if (!Array.isArray(tokens) && !ArrayBuffer.isView(tokens)) {
    throw badOption(where, 'tokens', tokens, 'an array of token ids');
  }
  const list = tokens as ArrayLike<number>;
  for (let i = 0; i < list.length; i++) {
    const id = list[i];
    if (!Number.isInteger(id) || (id as number) < 0 || (id as number) >= vocabSize) {
      throw badOption(where, `tokens[${i}]`, id, `a token id in [0, ${vocabSize})`);
    }
  }
  return Uint32Array.from(list);
}
