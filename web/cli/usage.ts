// What the commands take: one table of flags a command, from which arguments are parsed, mistakes are answered and the help
// is printed.
import { parseArgs } from 'node:util';

export interface Flag {
  type: 'string' | 'boolean';
  /** Stands for the value in the help. */
  value?: string;
  help: string;
}
export type Flags = Readonly<Record<string, Flag>>;

export interface Command {
  summary: string;
  flags: Flags;
  /** The command also works without a MODEL. */
  modelIsOptional?: boolean;
  /** What is expected in the MODEL's place. */
  takes?: string;
}

/** Where the explanations begin; a longer flag pushes its own to the right. */
const HELP_COLUMN = 34;

const json: Flag = { type: 'boolean', help: 'print one JSON value and nothing else on stdout' };
const nCtx: Flag = {
  type: 'string',
  value: 'N',
  help: "context in tokens (default: the model's, at most 4096)",
};
const kvCache: Flag = {
  type: 'string',
  value: 'f32|f16|int8',
  help: 'format of the KV cache (default f32)',
};
const evict: Flag = {
  type: 'string',
  value: 'sinks=4,window=128',
  help: 'keep the first keys and the last ones only; or h2o=N, snapkv=N: the most attended',
};
const engineFlags: Flags = {
  'n-ctx': nCtx,
  threads: { type: 'string', value: 'N', help: 'threads (default: half the cores, at most 8)' },
  module: { type: 'string', value: 'simd|relaxed|auto', help: 'WASM module (default auto)' },
  'kv-cache': kvCache,
  activations: {
    type: 'string',
    value: 'int8|f32',
    help: 'f32 is slow and exact, for checking (default int8)',
  },
  json,
};

export const commands = {
  generate: {
    summary: 'continue a prompt or answer a conversation',
    flags: {
      prompt: { type: 'string', value: 'TEXT', help: 'continue a text' },
      tokens: { type: 'string', value: '1,2,3', help: 'continue tokens' },
      chat: {
        type: 'string',
        value: 'FILE.json',
        help: 'answer a conversation: [{"role": "user", "content": "..."}]',
      },
      'max-tokens': {
        type: 'string',
        value: 'N',
        help: 'default: until the model ends or the context is full',
      },
      temperature: { type: 'string', value: 'T', help: '0 is greedy (default 0.8)' },
      'top-k': { type: 'string', value: 'K', help: '0 is off (default 40)' },
      'top-p': { type: 'string', value: 'P', help: 'default 0.95' },
      'min-p': { type: 'string', value: 'P', help: 'default 0.05' },
      seed: { type: 'string', value: 'S', help: 'default: random' },
      evict,
      ...engineFlags,
    },
  },
  logits: {
    summary: 'logits of given tokens, without generation',
    flags: {
      tokens: { type: 'string', value: '1,2,3', help: 'the tokens' },
      all: { type: 'boolean', help: 'of every position, one row each (default: of the last)' },
      ...engineFlags,
    },
  },
  tokenize: {
    summary: 'tokens of a text',
    flags: {
      text: { type: 'string', value: 'TEXT', help: 'the text' },
      'add-special': { type: 'boolean', help: 'with BOS and EOS as the model asks for' },
      json,
    },
  },
  info: {
    summary: 'what a model is and takes, from its header alone',
    flags: { 'n-ctx': nCtx, 'kv-cache': kvCache, json },
  },
  inspect: {
    summary:
      'where a query head looks: attention weights of a prompt, by the kernels that compute it',
    flags: {
      prompt: { type: 'string', value: 'TEXT', help: 'the text' },
      tokens: { type: 'string', value: '1,2,3', help: 'or its tokens' },
      layer: { type: 'string', value: 'L', help: 'layer, from 0' },
      head: { type: 'string', value: 'H', help: 'query head, from 0' },
      rows: { type: 'string', value: 'last|all', help: 'query rows (default last)' },
      what: {
        type: 'string',
        value: 'weights|scores|softcapped|scaled',
        help: 'how far a score has come (default weights)',
      },
      ...engineFlags,
    },
  },
  attend: {
    summary: 'runs Attention cases, one JSON object a line as in ONNX node tests, through a kernel',
    takes: 'CASES.jsonl',
    flags: {
      kernel: {
        type: 'string',
        value: 'reference|tiled|decode|auto',
        help: 'decode takes the query rows one by one (default auto)',
      },
      module: { type: 'string', value: 'simd|relaxed|auto', help: 'WASM module (default auto)' },
      threads: { type: 'string', value: 'N', help: 'threads (default 1)' },
      json,
    },
  },
  layout: {
    summary: 'what head layouts cost: file, cache, bytes and operations a token',
    modelIsOptional: true,
    flags: {
      preset: {
        type: 'string',
        value: 'NAME',
        help: 'seedA1|seedA2|llama8b|llama70b|heads|walk|needle2 instead of a MODEL',
      },
      layers: { type: 'string', value: 'N', help: 'change every row: layers' },
      'd-model': { type: 'string', value: 'N', help: 'width of the residual stream' },
      'q-heads': { type: 'string', value: 'N', help: 'query heads' },
      'kv-heads': { type: 'string', value: 'N', help: 'KV heads: a divisor of the query heads' },
      'd-qk': { type: 'string', value: 'N', help: 'width of queries and keys' },
      'd-v': { type: 'string', value: 'N', help: 'width of values' },
      'd-ff': { type: 'string', value: 'N', help: 'width of the feed-forward' },
      vocab: { type: 'string', value: 'N', help: 'tokens of the vocabulary' },
      weights: {
        type: 'string',
        value: 'f32|f16|bf16|q8_0|q4_0',
        help: "default: the preset's, f16",
      },
      cache: { type: 'string', value: 'f32|f16|int8', help: 'format of the cache (default f16)' },
      'n-ctx': { type: 'string', value: 'N', help: 'tokens in the cache (default 8192)' },
      run: { type: 'boolean', help: 'run each with random weights, in turns: speed and error' },
      json,
    },
  },
  lab: {
    summary: 'change the attention of a model and measure what it costs, before and after',
    flags: {
      label: {
        type: 'boolean',
        help: 'no change: what each head does, over the built-in text (as the page labels them)',
      },
      rank: {
        type: 'boolean',
        help: 'no change: stable rank of W_Q, W_K, W_V, W_O; with --json spectra',
      },
      trace: {
        type: 'string',
        value: 'L',
        help: 'no change: every tensor of layer L while it computes --prompt or --tokens',
      },
      prompt: { type: 'string', value: 'TEXT', help: 'for --trace' },
      tokens: { type: 'string', value: '1,2,3', help: 'for --trace' },
      prune: { type: 'string', value: '3.5,4.1', help: 'remove heads: LAYER.HEAD, from 0' },
      'pool-kv': { type: 'string', value: 'N', help: 'mean-pool the KV heads to N' },
      fix: { type: 'string', value: '2.0', help: 'replace heads by their fixed pattern' },
      'cut-qk': {
        type: 'string',
        value: 'N',
        help: 'width of queries and keys: drop rotary pairs',
      },
      'same-pairs': { type: 'boolean', help: 'drop the same pairs in every layer (for --out)' },
      'cut-v': { type: 'string', value: 'N', help: 'width of values: SVD of W_o W_v' },
      window: { type: 'string', value: 'W', help: 'a query sees the last W keys: a mask' },
      evict,
      layers: { type: 'string', value: '0,3', help: 'widths and windows of these layers only' },
      'kv-cache-after': {
        type: 'string',
        value: 'f32|f16|int8',
        help: 'format of the KV cache of the changed model',
      },
      out: { type: 'string', value: 'FILE.gguf', help: 'write the changed model' },
      ...engineFlags,
    },
  },
} as const satisfies Record<string, Command>;

export type CommandName = keyof typeof commands;
export type Values = Readonly<Record<string, string | boolean | undefined>>;

/** A mistake in the call itself. */
export class UsageError extends Error {
  readonly code = 'BadOption';
  readonly details = {};
}

export interface Call {
  command: CommandName;
  /** Empty where the command works without one and none was given. */
  model: string;
  values: Values;
}

export function isCommand(name: string | undefined): name is CommandName {
  return name !== undefined && Object.hasOwn(commands, name);
}

/** Throws UsageError. */
export function parseCall(args: readonly string[]): Call {
  const [name, ...rest] = args;
  if (!isCommand(name)) {
    const known = Object.keys(commands).join(', ');
    throw new UsageError(
      name === undefined
        ? `A command is missing: ${known}`
        : `There is no command '${name}'. Known: ${known}`,
    );
  }
  const { flags, modelIsOptional = false, takes }: Command = commands[name];
  const { values, positionals } = parseFlags(name, flags, rest);
  const [model = modelIsOptional ? '' : undefined, extra] = positionals;
  if (model === undefined)
    throw new UsageError(
      takes === undefined
        ? `${name}: the MODEL is missing: a path or URL of a GGUF file`
        : `${name}: ${takes} is missing`,
    );
  if (extra !== undefined)
    throw new UsageError(
      `${name}: '${extra}' is too much: one ${takes ?? 'MODEL'} is expected. Quote texts with spaces.`,
    );
  return { command: name, model, values };
}

function parseFlags(name: CommandName, flags: Flags, args: string[]) {
  const options = Object.fromEntries(
    Object.entries(flags).map(([flag, { type }]) => [flag, { type }]),
  );
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true });
  } catch (error) {
    const unknown = /Unknown option '(-[^']*)'/.exec(String(error))?.[1];
    if (unknown !== undefined) {
      const known = Object.keys(flags)
        .map((flag) => `--${flag}`)
        .join(' ');
      throw new UsageError(`${name}: there is no ${unknown}. Known: ${known}`);
    }
    throw new UsageError(`${name}: ${(error as Error).message}`);
  }
}

/** Undefined where the flag was not given. */
export function numberOf(values: Values, flag: string): number | undefined {
  const text = values[flag];
  if (text === undefined) return undefined;
  const number = typeof text === 'string' && text.trim() !== '' ? Number(text) : Number.NaN;
  if (Number.isNaN(number)) throw new UsageError(`--${flag} ${text}: a number is expected`);
  return number;
}

export function stringOf(values: Values, flag: string): string | undefined {
  const text = values[flag];
  return typeof text === 'string' ? text : undefined;
}

export function tokensOf(values: Values): number[] | undefined {
  const text = stringOf(values, 'tokens');
  if (text === undefined) return undefined;
  if (!/^\s*\d+(\s*,\s*\d+)*\s*$/.test(text)) {
    throw new UsageError(
      `--tokens '${text}': token ids separated by commas are expected, such as 1,2,3`,
    );
  }
  return text.split(',').map(Number);
}

/** Of all commands, or of one. */
export function helpText(only?: CommandName): string {
  const lines = [
    'headlight COMMAND MODEL [flags]',
    'MODEL is a path or URL of a GGUF file, or of the first file of a split model (x-00001-of-00003.gguf)',
    '',
  ];
  for (const [name, { summary, flags, takes }] of Object.entries(commands) as [string, Command][]) {
    if (only !== undefined && name !== only) continue;
    lines.push(`${name}${takes === undefined ? '' : ` ${takes}`}: ${summary}`);
    for (const [flag, { value, help }] of Object.entries(flags)) {
      const left = `  --${flag}${value === undefined ? '' : ` ${value}`}`;
      lines.push(`${left.padEnd(HELP_COLUMN - 2)}  ${help}`);
    }
    lines.push('');
  }
  return lines.join('\n');
}
