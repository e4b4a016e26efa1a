// The byte-level BPE splits that `tokenizer.ggml.pre` names: which regular expressions cut a text into
// words before merging, and the defaults that come with the name. Data for vocabulary.ts and bpe.ts.
// The expressions are those of the models' own tokenizer.json files, in the order they are applied
// (each cuts the pieces that the one before left); names are grouped as in llama.cpp's table.
// In doubt an expression is rewritten so that no input makes it quadratic; where, a comment says so.

import { UnsupportedError } from '../errors.js';

export interface PreTokenizer {
  /** Applied one after the other; what matches is a piece, and so is each gap between matches. */
  readonly patterns: readonly string[];
  /** A word that is itself a token is taken whole, without merging. */
  readonly ignoreMerges: boolean;
  /** Used when the file has no tokenizer.ggml.add_bos_token. */
  readonly addBos: boolean;
}

const CONTRACTIONS = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`;
const TAIL = `\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;
const PUNCTUATION_RUN = ` ?[^\\s\\p{L}\\p{N}]+`;

const GPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|${PUNCTUATION_RUN}|\\s+(?!\\S)|\\s+`;

/** cl100k's shape; models differ in how many digits make a word. */
function cl100k(digits: string): string {
  return (
    `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}|` +
    `${PUNCTUATION_RUN}[\\r\\n]*|${TAIL}`
  );
}

/** o200k's shape: a word ends where lower case turns into upper case. */
function o200k(digits: string, contractions: string): string {
  const start = `[^\\r\\n\\p{L}\\p{N}]?`;
  const upper = `[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]`;
  const lower = `[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]`;
  return (
    `${start}${upper}*${lower}+${contractions}|${start}${upper}+${lower}*${contractions}|` +
    `${digits}|${PUNCTUATION_RUN}[\\r\\n/]*|${TAIL}`
  );
}

// The cased letters that DeepSeek LLM lists by range (older than today's \p{Lu}\p{Ll}\p{Lt}).
const DEEPSEEK_LETTERS =
  'A-Za-z\\u{b5}\\u{c0}-\\u{d6}\\u{d8}-\\u{f6}\\u{f8}-\\u{1ba}\\u{1bc}-\\u{1bf}\\u{1c4}-\\u{293}' +
  '\\u{295}-\\u{2af}\\u{370}-\\u{373}\\u{376}\\u{377}\\u{37b}-\\u{37d}\\u{37f}\\u{386}' +
  '\\u{388}-\\u{38a}\\u{38c}\\u{38e}-\\u{3a1}\\u{3a3}-\\u{3f5}\\u{3f7}-\\u{481}\\u{48a}-\\u{52f}' +
  '\\u{531}-\\u{556}\\u{10a0}-\\u{10c5}\\u{13a0}-\\u{13f5}\\u{13f8}-\\u{13fd}\\u{1c90}-\\u{1cba}' +
  '\\u{1cbd}-\\u{1cbf}\\u{1d00}-\\u{1d2b}\\u{1d6b}-\\u{1d77}\\u{1d79}-\\u{1d9a}\\u{1e00}-\\u{1f15}' +
  '\\u{1f18}-\\u{1f1d}\\u{1f20}-\\u{1f45}\\u{1f48}-\\u{1f4d}\\u{1f50}-\\u{1f57}\\u{1f59}\\u{1f5b}' +
  '\\u{1f5d}\\u{1f5f}-\\u{1f7d}\\u{1f80}-\\u{1fb4}\\u{1fb6}-\\u{1fbc}\\u{1fbe}\\u{1fc2}-\\u{1fc4}' +
  '\\u{1fc6}-\\u{1fcc}\\u{1fd0}-\\u{1fd3}\\u{1fd6}-\\u{1fdb}\\u{1fe0}-\\u{1fec}\\u{1ff2}-\\u{1ff4}' +
  '\\u{1ff6}-\\u{1ffc}\\u{2102}\\u{2107}\\u{210a}-\\u{2113}\\u{2115}\\u{2119}-\\u{211d}\\u{2124}' +
  '\\u{2126}\\u{2128}\\u{212a}-\\u{212d}\\u{212f}-\\u{2134}\\u{2139}\\u{213c}-\\u{213f}' +
  '\\u{2145}-\\u{2149}\\u{214e}\\u{2183}\\u{2184}\\u{2c00}-\\u{2c7b}\\u{2c7e}-\\u{2ce4}' +
  '\\u{2ceb}-\\u{2cee}\\u{2cf2}\\u{2cf3}\\u{a640}-\\u{a66d}\\u{a680}-\\u{a69b}\\u{a722}-\\u{a76f}' +
  '\\u{a771}-\\u{a787}\\u{a78b}-\\u{a78e}\\u{ab70}-\\u{abbf}\\u{fb00}-\\u{fb06}\\u{fb13}-\\u{fb17}' +
  '\\u{ff21}-\\u{ff3a}\\u{ff41}-\\u{ff5a}\\u{10400}-\\u{1044f}\\u{104b0}-\\u{104d3}' +
  '\\u{104d8}-\\u{104fb}\\u{10c80}-\\u{10cb2}\\u{10cc0}-\\u{10cf2}\\u{118a0}-\\u{118df}' +
  '\\u{1e900}-\\u{1e943}';
const DEEPSEEK_CJK = '[\\u4e00-\\u9fa5\\u0800-\\u4e00\\uac00-\\ud7ff]+';

const DEEPSEEK_LLM = [
  '[\\r\\n]',
  `\\s?[${DEEPSEEK_LETTERS}]+`,
  '\\s?[!-/:-~\\uff01-\\uff0f\\uff1a-\\uff5e\\u2018-\\u201f\\u3000-\\u3002]+',
  // `\s+$`, tried at the start of a run only: from inside the run it fails again, for O(n^2).
  '(?<!\\s)\\s+$',
  DEEPSEEK_CJK,
  '\\p{N}+',
];
const DEEPSEEK_CODER = ['[\\r\\n]', '\\s?\\p{L}+', '\\s?\\p{P}+', DEEPSEEK_CJK, '\\p{N}'];
const DEEPSEEK_V3 = [
  '\\p{N}{1,3}',
  '[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff]+',
  '[!"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|' +
    '[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|' +
    TAIL,
];
const QWEN35 =
  `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|` +
  ` ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${TAIL}`;
const BAILING =
  `'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|` +
  `${PUNCTUATION_RUN}[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+`;
const SEED_CODER =
  `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|` + ` ?[^\\s\\p{L}\\p{N}\\r\\n]+|${TAIL}`;
const BLOOM = ' ?[^(\\s|.,!?\\u2026\\u3002\\uff0c\\u3001\\u0964\\u06d4\\u060c)]+';

interface Family {
  readonly names: readonly string[];
  readonly patterns: readonly string[];
  readonly ignoreMerges?: true;
  readonly addBos?: true;
}

const FAMILIES: readonly Family[] = [
  {
    names: ['default'],
    patterns: ['[\\p{P}\\$\\+<=>\\^~\\|]+', GPT2, '\\p{N}+', '[0-9][0-9][0-9]'],
  },
  {
    names: [
      'gpt-2',
      'phi-2',
      'mpt',
      'olmo',
      'jais',
      'exaone4',
      'gigachat',
      'jina-es',
      'jina-de',
      'jina-v1-en',
      'jina-v2-es',
      'jina-v2-de',
      'jina-v2-code',
      'roberta-bpe',
      'modern-bert',
      'mellum',
      'trillion',
      'granite-docling',
      'a.x-4.0',
    ],
    patterns: [GPT2],
  },
  {
    names: [
      'smollm',
      'starcoder',
      'refact',
      'command-r',
      'codeshell',
      'exaone',
      'minerva-7b',
      'mellum2',
    ],
    patterns: ['\\p{N}', GPT2],
  },
  { names: ['falcon'], patterns: ['[\\p{P}\\$\\+<=>\\^~\\|`]+', GPT2, '[0-9][0-9][0-9]'] },
  {
    names: [
      'llama-bpe',
      'llama3',
      'llama-v3',
      'falcon3',
      'falcon-h1',
      'pixtral',
      'midm-2.0',
      'lfm2',
      'jina-v5-nano',
    ],
    patterns: [cl100k('\\p{N}{1,3}')],
    ignoreMerges: true,
    addBos: true,
  },
  { names: ['dbrx', 'smaug-bpe', 'glm4', 'chatglm-bpe'], patterns: [cl100k('\\p{N}{1,3}')] },
  {
    names: [
      'qwen2',
      'deepseek-r1-qwen',
      'megrez',
      'stablelm2',
      'hunyuan',
      'solar-open',
      'grok-2',
      'kormo',
      'f2llmv2',
    ],
    patterns: [cl100k('\\p{N}')],
  },
  { names: ['qwen35'], patterns: [QWEN35] },
  {
    names: ['tekken'],
    patterns: [o200k('\\p{N}', '')],
    ignoreMerges: true,
    addBos: true,
  },
  {
    names: ['gpt-4o', 'llama4', 'kanana2', 'talkie', 'minimax-m2'],
    patterns: [o200k('\\p{N}{1,3}', `${CONTRACTIONS}?`)],
  },
  { names: ['deepseek-llm'], patterns: DEEPSEEK_LLM },
  { names: ['deepseek-coder'], patterns: DEEPSEEK_CODER },
  { names: ['deepseek-v3', 'hunyuan-dense', 'joyai-llm', 'hy_v4'], patterns: DEEPSEEK_V3 },
  { names: ['bailingmoe', 'bailingmoe2', 'llada-moe'], patterns: [BAILING] },
  { names: ['seed-coder'], patterns: [SEED_CODER] },
  { names: ['bloom', 'gpt3-finnish', 'poro-chat'], patterns: [BLOOM] },
  { names: ['viking'], patterns: [BLOOM, '\\p{N}'] },
];

export const PRE_TOKENIZER_NAMES: readonly string[] = FAMILIES.flatMap((family) => family.names);

/**
 * @param name the value of tokenizer.ggml.pre; undefined (older files) means 'default'.
 * @throws UnsupportedError naming the value and the supported ones.
 */
export function preTokenizerFor(name: string | undefined): PreTokenizer {
  const wanted = name ?? 'default';
  const family = FAMILIES.find((candidate) => candidate.names.includes(wanted));
  if (family === undefined) {
    throw new UnsupportedError(
      `tokenizer.ggml.pre is '${wanted}', a way of splitting text that this version does not know; ` +
        `it knows ${PRE_TOKENIZER_NAMES.join(', ')}. Token ids can still be passed to complete().`,
      { key: 'tokenizer.ggml.pre', value: wanted },
    );
  }
  return {
    patterns: family.patterns,
    ignoreMerges: family.ignoreMerges ?? false,
    addBos: family.addBos ?? false,
  };
}
