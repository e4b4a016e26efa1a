// Seeded damage to what a file says of its tokenizer and template, and to what a caller passes: a typed error, or something
// that works and ends. HEADLIGHT_FUZZ_RUNS: how often.
import { expect, it } from 'vitest';
import { BadOptionError, HeadlightError } from '../../../web/runtime/src/errors.js';
import {
  checkChatOptions,
  checkLoadOptions,
  checkMessages,
  checkTokens,
  generateOptionsWire,
} from '../../../web/runtime/src/options.js';
import { ChatTemplate } from '../../../web/runtime/src/text/chat_template.js';
import { Tokenizer } from '../../../web/runtime/src/text/tokenizer.js';
import { hostileRuns, type Pick, pickOf } from '../hostile_runs.js';
import type { MapMetadata, MetadataValue } from './gguf_header.js';
import { CONVERSATION, TEMPLATES } from './templates.js';
import { bpeMetadata, CONTROL, spmMetadata } from './vocabularies.js';

const RUNS = 5000;

const IM = ['<|im_start|>', '<|im_end|>'].map((text) => ({ text, type: CONTROL }));
const SOUND = [
  spmMetadata(['▁', 'a', '▁a', 'b', 'ab', '▁ab'], IM),
  bpeMetadata('qwen2', ['the', 'ab', ' the'], IM, { 'tokenizer.ggml.eos_token_id': 3 }),
];
const KEYS = [
  'model',
  'pre',
  'tokens',
  'scores',
  'token_type',
  'merges',
  'bos_token_id',
  'eos_token_id',
  'unknown_token_id',
  'add_bos_token',
  'add_space_prefix',
].map((key) => `tokenizer.ggml.${key}`);
const STRINGS = [
  '',
  ' ',
  '▁',
  'a',
  '<|im_end|>',
  '<0xZZ>',
  '\ud800',
  '\0',
  'x'.repeat(5000),
  '__proto__',
];
const NUMBERS = [0, 1, -1, 0.5, 255, 2 ** 31, 2 ** 32 - 1, 2 ** 53, NaN, Infinity, -Infinity];

function anyValue(pick: Pick): MetadataValue | undefined {
  switch (pick(7)) {
    case 0:
      return pickOf(pick, STRINGS);
    case 1:
      return pickOf(pick, NUMBERS);
    case 2:
      return pick(2) === 0;
    case 3:
      return Array.from({ length: pick(400) }, () => pickOf(pick, STRINGS));
    case 4:
      return Float32Array.from({ length: pick(400) }, () => pickOf(pick, NUMBERS));
    case 5:
      return Int32Array.from({ length: pick(400) }, () => pickOf(pick, NUMBERS));
    default:
      return undefined;
  }
}

/** One element of an array changed, or the value put in place of another's. */
function damaged(pick: Pick, meta: MapMetadata): MapMetadata {
  const key = pickOf(pick, KEYS);
  const strings = meta.strings(key);
  const numbers = meta.numbers(key);
  if (strings !== undefined && strings.length > 0 && pick(3) > 0) {
    const copy = [...strings];
    copy[pick(copy.length)] = pick(2) === 0 ? pickOf(pick, copy) : pickOf(pick, STRINGS);
    return meta.with({ [key]: copy });
  }
  if (numbers !== undefined && numbers.length > 0 && pick(3) > 0) {
    const copy = numbers.slice();
    copy[pick(copy.length)] = pickOf(pick, NUMBERS);
    return meta.with({ [key]: copy });
  }
  return meta.with({ [key]: anyValue(pick) });
}

/** What `work` gives; undefined for a typed error. Anything else that is thrown fails the test. */
function typed<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof HeadlightError && error.code !== 'Internal') return undefined;
    throw error;
  }
}

function each(name: string, work: (pick: Pick) => boolean): void {
  const { runs, taken } = hostileRuns(name, RUNS, work);
  console.info(`fuzz ${name}: ${runs} runs, ${taken} worked, ${runs - taken} typed errors`);
}

it('a damaged vocabulary: a typed error, or a tokenizer that gives ids of its own', () => {
  each('vocabulary', (pick) => {
    let meta = pickOf(pick, SOUND);
    for (let n = 1 + pick(3); n > 0; n--) meta = damaged(pick, meta);
    const tokenizer = typed(() => Tokenizer.fromMetadata(meta));
    if (tokenizer === undefined) return false;
    const text = Array.from({ length: pick(60) }, () =>
      pickOf(pick, [...'ab the <|im_end|>é😀\n']),
    ).join('');
    const ids = typed(() => tokenizer.encode(text));
    const nTokens = meta.strings('tokenizer.ggml.tokens')?.length ?? 0;
    for (const id of ids ?? []) expect(Number.isInteger(id) && id >= 0 && id < nTokens).toBe(true);
    if (ids !== undefined) typed(() => tokenizer.decode(Uint32Array.from(ids)));
    return true;
  });
});

it('a damaged template: a typed error, or a prompt', () => {
  const tokenizer = Tokenizer.fromMetadata(SOUND[0] as MapMetadata);
  const parts = [
    '{%',
    '%}',
    '{{',
    '}}',
    ' for m in messages ',
    ' endfor ',
    ' if true ',
    ' endif ',
    'm.content',
    '|',
    '~',
    '(',
    ')',
    '[',
    ']',
    "'",
    '*',
    '99999999',
    'range(',
    'loop',
    '.',
    '-',
    'x.x.x',
    'macro f() ',
  ];
  each('template', (pick) => {
    let { source } = pickOf(pick, TEMPLATES);
    for (let n = 1 + pick(4); n > 0; n--) {
      const at = pick(source.length);
      source =
        source.slice(0, at) +
        (pick(3) > 0 ? pickOf(pick, parts) : '') +
        source.slice(at + pick(20));
    }
    const meta = (SOUND[0] as MapMetadata).with({ 'tokenizer.chat_template': source });
    const segments = typed(() =>
      ChatTemplate.fromMetadata(meta, tokenizer).render(CONVERSATION, {
        addGenerationPrompt: true,
      }),
    );
    return segments !== undefined;
  });
});

function anyJson(pick: Pick, depth = 0): unknown {
  switch (pick(depth > 2 ? 5 : 8)) {
    case 0:
      return pickOf(pick, STRINGS);
    case 1:
      return pickOf(pick, NUMBERS);
    case 2:
      return pick(2) === 0;
    case 3:
      return null;
    case 4:
      return undefined;
    case 5:
      return Array.from({ length: pick(4) }, () => anyJson(pick, depth + 1));
    default:
      return Object.fromEntries(
        Array.from({ length: pick(4) }, () => [
          pickOf(pick, ['role', 'content', 'temperature', 'k', 'stop', 'seed', '0', '__proto__']),
          anyJson(pick, depth + 1),
        ]),
      );
  }
}

it('any options, messages and tokens: a BadOptionError at once, or they are right', () => {
  const names = [
    'temperature',
    'topK',
    'topP',
    'minP',
    'stop',
    'maxTokens',
    'logitBias',
    'seed',
    'tools',
    'nCtx',
    'kvCache',
    'threads',
    'logprobs',
    'signal',
    'unknown',
  ];
  const right = <T>(work: () => T): boolean => {
    try {
      work();
      return true;
    } catch (error) {
      expect(error).toBeInstanceOf(BadOptionError);
      return false;
    }
  };
  each('options', (pick) => {
    const options = Object.fromEntries(
      Array.from({ length: 1 + pick(2) }, () => [pickOf(pick, names), anyJson(pick)]),
    );
    const chat = right(() => {
      checkChatOptions('chat', options as never);
      const wire = generateOptionsWire('chat', options as never, 100);
      for (const value of Object.values(wire))
        if (typeof value === 'number') expect(Number.isNaN(value)).toBe(false);
      structuredClone(wire);
    });
    const load = right(() => checkLoadOptions(options as never));
    const messages = right(() => checkMessages('chat', [anyJson(pick)] as never));
    const tokens = right(() => checkTokens('complete', anyJson(pick) as never, 100));
    return chat || load || messages || tokens;
  });
});
