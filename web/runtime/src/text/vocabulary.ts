// A model's vocabulary as its GGUF file gives it: token texts, types, scores, merges and special ids,
// checked once, here. For tokenizer.ts and bpe.ts. It does not split or merge text.

import { BadModelError, UnsupportedError } from '../errors.js';
import type { GgufMetadata } from './metadata.js';
import { type PreTokenizer, preTokenizerFor } from './pre_tokenizers.js';
import { classifyTokens, type SpecialIds } from './special_ids.js';
import { byteOfToken, TokenType, type VocabularyKind } from './token_type.js';

export interface Vocabulary {
  /** 'spm' (tokenizer.ggml.model "llama") or 'bpe' ("gpt2"). */
  readonly kind: VocabularyKind;
  readonly texts: readonly string[];
  /** One TokenType a token. Every end-of-generation token is Control, whatever the file says. */
  readonly types: Uint8Array;
  /** 'spm' only: one a token, the higher the earlier its merge. */
  readonly scores: Float32Array | Int32Array | Uint32Array | undefined;
  /** 'bpe' only: "left right", best first. */
  readonly merges: readonly string[];
  /** The id that each merge yields. */
  readonly mergeIds: Int32Array;
  readonly pre: PreTokenizer;
  readonly ids: SpecialIds;
  readonly addBos: boolean;
  readonly addEos: boolean;
  readonly addSpacePrefix: boolean;
  readonly removeExtraWhitespaces: boolean;
  /** Phi-3: white space after a special token belongs to that token. */
  readonly stripAfterSpecial: boolean;
  /** Text -> id of the tokens that merging may yield: normal ones, and for 'spm' bytes. */
  readonly plain: ReadonlyMap<string, number>;
  /** Text -> id of all others: control, unknown, user-defined, unused. */
  readonly special: ReadonlyMap<string, number>;
}

const KEY = 'tokenizer.ggml.';

/**
 * @throws UnsupportedError for a tokenizer model or pre-tokenizer that is not implemented,
 *   BadModelError for a vocabulary that contradicts itself; both name the key, and the index.
 */
export function readVocabulary(meta: GgufMetadata): Vocabulary {
  const kind = readKind(meta);
  const texts = meta.strings(`${KEY}tokens`);
  if (texts === undefined || texts.length === 0) {
    throw new BadModelError(
      `${KEY}tokens ${texts === undefined ? 'is missing' : 'is empty'}: the file has no vocabulary. ` +
        'Convert the model again.',
      { key: `${KEY}tokens`, count: 0 },
    );
  }
  const idOf = indexTexts(texts);
  const { ids, types } = classifyTokens(meta, kind, texts, idOf, readTypes(meta, texts));
  const scores = kind === 'spm' ? readScores(meta, texts.length) : undefined;
  const { merges, mergeIds } = kind === 'bpe' ? readMerges(meta, idOf) : NO_MERGES;
  const pre =
    kind === 'bpe' ? preTokenizerFor(text(meta, `${KEY}pre`)) : preTokenizerFor('default');
  const name = text(meta, 'general.name')?.toLowerCase() ?? '';
  return {
    kind,
    texts,
    types,
    scores,
    merges,
    mergeIds,
    pre,
    ids,
    special: takeOutSpecial(idOf, { kind, texts, types }),
    plain: idOf,
    // SentencePiece models start with BOS and a space unless the file says otherwise.
    addBos: flag(meta, `${KEY}add_bos_token`) ?? (kind === 'spm' || pre.addBos),
    addEos: flag(meta, `${KEY}add_eos_token`) ?? false,
    addSpacePrefix: kind === 'spm' && (flag(meta, `${KEY}add_space_prefix`) ?? true),
    removeExtraWhitespaces:
      kind === 'spm' && (flag(meta, `${KEY}remove_extra_whitespaces`) ?? false),
    stripAfterSpecial: name.includes('phi-3') || name.includes('phi3'),
  };
}

/** What llama.cpp's converter writes into a file without a tokenizer; older ones have no key at all. */
const NO_TOKENIZER = ['none', 'no_vocab'];

/** False for a file without a tokenizer: then only token ids can be used. */
export function hasTokenizer(meta: GgufMetadata): boolean {
  const model = text(meta, `${KEY}model`);
  return model !== undefined && !NO_TOKENIZER.includes(model);
}

export function noTokenizer(meta: GgufMetadata): UnsupportedError {
  const key = `${KEY}model`;
  const model = text(meta, key);
  return new UnsupportedError(
    `The file has no tokenizer (${key} is ${model === undefined ? 'missing' : `'${model}'`}); it takes and gives token ids ` +
      'only. Pass token ids instead of text to complete(), without stop strings, or use forward().',
    { key, value: model ?? '' },
  );
}

function readKind(meta: GgufMetadata): VocabularyKind {
  const key = `${KEY}model`;
  const model = text(meta, key);
  if (model === 'llama') return 'spm';
  if (model === 'gpt2') return 'bpe';
  if (model === undefined || !hasTokenizer(meta)) throw noTokenizer(meta);
  throw new UnsupportedError(
    `${key} is '${model}', which is not implemented; 'llama' (SentencePiece) and 'gpt2' ` +
      '(byte-level BPE) are. Use a model with one of those.',
    { key, value: model },
  );
}

function indexTexts(texts: readonly string[]): Map<string, number> {
  const idOf = new Map<string, number>();
  for (let id = 0; id < texts.length; id++) {
    const piece = texts[id] as string;
    if (piece === '') continue; // occurs in real files; such a token matches nothing
    const first = idOf.get(piece);
    if (first !== undefined) {
      throw new BadModelError(
        `${KEY}tokens[${id}] repeats ${JSON.stringify(piece)}, which is token ${first} already: the ` +
          'same text would have two ids. Convert the model again.',
        { key: `${KEY}tokens`, index: id, first },
      );
    }
    idOf.set(piece, id);
  }
  return idOf;
}

/** undefined when the file has none (old files): special_ids.ts then infers them. */
function readTypes(meta: GgufMetadata, texts: readonly string[]): Uint8Array | undefined {
  const key = `${KEY}token_type`;
  const given = meta.numbers(key);
  if (given === undefined) return undefined;
  checkLength(key, given.length, texts.length);
  const types = new Uint8Array(texts.length);
  for (let id = 0; id < texts.length; id++) {
    const type = given[id] as number;
    if (!Number.isInteger(type) || type < 0 || type > TokenType.Byte) {
      throw new BadModelError(`${key}[${id}] is ${type}; token types are 1 to 6.`, {
        key,
        index: id,
        value: type,
      });
    }
    if (type === TokenType.Byte) byteOfToken(texts[id] as string, id);
    types[id] = type === 0 ? TokenType.Normal : type;
  }
  return types;
}

function readScores(meta: GgufMetadata, nTokens: number): Vocabulary['scores'] {
  const key = `${KEY}scores`;
  const scores = meta.numbers(key);
  if (scores === undefined) {
    throw new BadModelError(
      `${key} is missing: a SentencePiece vocabulary cannot merge without scores. Convert again.`,
      { key },
    );
  }
  checkLength(key, scores.length, nTokens);
  const bad = scores.findIndex((score: number) => Number.isNaN(score));
  if (bad >= 0) throw new BadModelError(`${key}[${bad}] is NaN.`, { key, index: bad });
  return scores;
}

type Merges = Pick<Vocabulary, 'merges' | 'mergeIds'>;
const NO_MERGES: Merges = { merges: [], mergeIds: new Int32Array() };

function readMerges(meta: GgufMetadata, idOf: ReadonlyMap<string, number>): Merges {
  const key = `${KEY}merges`;
  const merges = meta.strings(key);
  if (merges === undefined) {
    throw new BadModelError(
      `${key} is missing: a BPE vocabulary needs its merges. Convert again.`,
      { key },
    );
  }
  const mergeIds = new Int32Array(merges.length);
  for (let index = 0; index < merges.length; index++) {
    const merge = merges[index] as string;
    const space = merge.indexOf(' ', 1); // tokens may begin with one, not contain one
    const left = merge.slice(0, Math.max(space, 0));
    const right = merge.slice(space + 1);
    const id = idOf.get(left + right);
    if (id === undefined || !idOf.has(left) || !idOf.has(right)) {
      const missing = [left, right, left + right].find((piece) => !idOf.has(piece)) ?? '';
      throw new BadModelError(
        `${key}[${index}] is ${JSON.stringify(merge)}, but the vocabulary has no token ` +
          `${JSON.stringify(missing)}. Convert the model again.`,
        { key, index, missing },
      );
    }
    mergeIds[index] = id;
  }
  return { merges, mergeIds };
}

/** Moves the tokens that plain text must not become out of `idOf` into a map of their own. */
function takeOutSpecial(
  idOf: Map<string, number>,
  { kind, texts, types }: Pick<Vocabulary, 'kind' | 'texts' | 'types'>,
): ReadonlyMap<string, number> {
  const special = new Map<string, number>();
  texts.forEach((text, id) => {
    const type = types[id];
    const plain = type === TokenType.Normal || (type === TokenType.Byte && kind === 'spm');
    if (plain || text === '') return;
    special.set(text, id);
    idOf.delete(text);
  });
  return special;
}

function checkLength(key: string, length: number, nTokens: number): void {
  if (length === nTokens) return;
  throw new BadModelError(
    `${key} has ${length} entries for ${nTokens} tokens. Convert the model again.`,
    { key, length, expected: nTokens },
  );
}

function text(meta: GgufMetadata, key: string): string | undefined {
  const value = meta.get(key);
  if (value === undefined || typeof value === 'string') return value;
  throw new BadModelError(`${key} is of type ${typeof value}; a string was expected.`, { key });
}

function flag(meta: GgufMetadata, key: string): boolean | undefined {
  const value = meta.get(key);
  if (value === undefined || typeof value === 'boolean') return value;
  throw new BadModelError(`${key} is of type ${typeof value}; a bool was expected.`, { key });
}
