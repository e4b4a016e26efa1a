// Which tokens are special: BOS, EOS and their like, and every token that ends generation. Files name
// some of them by id, leave some out and mistype others, so well-known texts count too, as in llama.cpp.
// For vocabulary.ts. It does not match special tokens in text (special_matcher.ts does).

import { BadModelError } from '../errors.js';
import type { GgufMetadata } from './metadata.js';
import { TokenType, type VocabularyKind } from './token_type.js';

export interface SpecialIds {
  readonly bos: number | undefined;
  readonly eos: number | undefined;
  /** End of turn. */
  readonly eot: number | undefined;
  /** End of message (a tool call follows). */
  readonly eom: number | undefined;
  readonly unknown: number | undefined;
  readonly endOfGeneration: ReadonlySet<number>;
}

const KEY = 'tokenizer.ggml.';
/** How files write "there is no such token" (uint32 of -1). */
const NONE = 0xffffffff;

// Texts that end a turn; the first one present is the EOT token of a file that names none.
const END_OF_TURN: readonly string[] = [
  '<|eot_id|>',
  '<|im_end|>',
  '<|end|>',
  '<end_of_turn>',
  '<turn|>',
  '<|endoftext|>',
  '<|end_of_text|>',
  '<EOT>',
  '_<EOT>',
  '\u2581<EOT>',
  '< EOT >',
  '[EOT]',
  '<\uff5cend\u2581of\u2581sentence\uff5c>',
  '<end_of_utterance>',
];
// Further texts that end generation. The last group are file separators of code models: text
// after them belongs to another document.
const END_OF_GENERATION: readonly string[] = [
  ...END_OF_TURN,
  '</s>',
  '<eos>',
  '[EOS]',
  '<|eom_id|>',
  '<|return|>',
  '<|call|>',
  '<|calls|>',
  '<|flush|>',
  '<|tool_response>',
  '[e~[',
  '<|fim_pad|>',
  '<fim-pad>',
  '<fim_pad>',
  '<|fim_repo|>',
  '<|repo_name|>',
  '<fim-repo>',
  '<reponame>',
  '<|file_sep|>',
];
// gpt-oss writes these inside its answer and they must be seen, or channels could not be told apart.
const SHOWN_IN_TEXT: readonly string[] = [
  '<|channel|>',
  '<|message|>',
  '<|start|>',
  '<|constrain|>',
];

/** Special ids, and the token types with what the texts say about them put right. */
export function classifyTokens(
  meta: GgufMetadata,
  kind: VocabularyKind,
  texts: readonly string[],
  idOf: ReadonlyMap<string, number>,
  given: Uint8Array | undefined,
): { ids: SpecialIds; types: Uint8Array } {
  const nTokens = texts.length;
  // SentencePiece's own defaults, unless the token there is plainly another; BPE has none.
  const fallback = (id: number): number | undefined => {
    const type = given?.[id];
    const plain = type === TokenType.Normal || type === TokenType.Byte;
    return kind === 'spm' && id < nTokens && !plain ? id : undefined;
  };
  const bos = readId(meta, 'bos_token_id', nTokens, fallback(1));
  const eos = readId(meta, 'eos_token_id', nTokens, fallback(2));
  const unknown = readId(meta, 'unknown_token_id', nTokens, fallback(0));
  const firstOf = (names: readonly string[]): number | undefined =>
    names.map((name) => idOf.get(name)).find((id) => id !== undefined);
  const eot = readId(meta, 'eot_token_id', nTokens, firstOf(END_OF_TURN));
  const eom = readId(meta, 'eom_token_id', nTokens, idOf.get('<|eom_id|>'));

  const types = given ?? inferTypes(texts, [bos, eos], unknown);
  for (const name of SHOWN_IN_TEXT) setType(types, idOf.get(name), TokenType.UserDefined);
  const endOfGeneration = collectEndOfGeneration(idOf);
  for (const id of [eos, eot, eom]) if (id !== undefined) endOfGeneration.add(id);
  dropContinuing(endOfGeneration, idOf, types);
  for (const id of endOfGeneration) types[id] = TokenType.Control;
  return { ids: { bos, eos, eot, eom, unknown, endOfGeneration }, types };
}

function collectEndOfGeneration(idOf: ReadonlyMap<string, number>): Set<number> {
  const found = new Set<number>();
  for (const name of END_OF_GENERATION) {
    const id = idOf.get(name);
    if (id !== undefined) found.add(id);
  }
  return found;
}

/** Two families where a usual end token is no end: the model goes on after it. */
function dropContinuing(
  ends: Set<number>,
  idOf: ReadonlyMap<string, number>,
  types: Uint8Array,
): void {
  const has = (name: string): boolean => idOf.has(name);
  const drop = (name: string, type: number): void => {
    const id = idOf.get(name);
    if (id !== undefined && ends.delete(id)) types[id] = type;
  };
  const calls = has('<|call|>') || has('<|calls|>');
  // Harmony (gpt-oss, Solar Open): <|end|> closes one message of several.
  if (calls && (has('<|return|>') || has('<|flush|>'))) drop('<|end|>', TokenType.UserDefined);
  // Gemma 4: </s> is an HTML tag there.
  if (has('<|tool_response>')) drop('</s>', TokenType.Normal);
}

function inferTypes(
  texts: readonly string[],
  control: readonly (number | undefined)[],
  unknown: number | undefined,
): Uint8Array {
  const types = new Uint8Array(texts.length).fill(TokenType.Normal);
  texts.forEach((piece, id) => {
    if (/^<0x[0-9A-Fa-f]{2}>$/.test(piece)) types[id] = TokenType.Byte;
  });
  for (const id of control) setType(types, id, TokenType.Control);
  setType(types, unknown, TokenType.Unknown);
  return types;
}

function setType(types: Uint8Array, id: number | undefined, type: number): void {
  if (id !== undefined) types[id] = type;
}

function readId(
  meta: GgufMetadata,
  name: string,
  nTokens: number,
  fallback: number | undefined,
): number | undefined {
  const key = KEY + name;
  const value = meta.get(key);
  if (value === undefined) return fallback;
  if (typeof value !== 'number' && typeof value !== 'bigint') {
    throw new BadModelError(`${key} is of type ${typeof value}; an integer was expected.`, { key });
  }
  const id = Number(value);
  if (id === NONE || id === -1) return undefined;
  if (!Number.isInteger(id) || id < 0 || id >= nTokens) {
    throw new BadModelError(
      `${key} is ${id}, but the vocabulary has ${nTokens} tokens. Convert the model again.`,
      { key, value: id, count: nTokens },
    );
  }
  return id;
}
