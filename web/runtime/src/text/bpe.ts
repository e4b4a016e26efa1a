// Plain text -> token ids, by @huggingface/tokenizers: SentencePiece BPE (merges ranked by score, byte
// fallback) and byte-level BPE (ranked merges, words cut by regular expressions). For tokenizer.ts.
// It knows no special tokens: none of them can come out of here, whatever the text says.

import { type BPE, Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import { BadModelError } from '../errors.js';
import { BYTE_LEVEL_CHARS, SPACE_MARK } from './pieces.js';
import type { PreTokenizer } from './pre_tokenizers.js';
import { TokenType } from './token_type.js';
import type { Vocabulary } from './vocabulary.js';

/** Ids of a text without special tokens. @throws BadModelError if the vocabulary cannot spell it. */
export type PieceEncoder = (text: string) => readonly number[];

/**
 * Merging is O(n log n) in the length of one word, with some 200 bytes of heap a character. A "word"
 * of a megabyte (base64, or SentencePiece text without spaces) is cut, so that memory stays small;
 * merges across such a cut are lost. Longer than any word of a vocabulary, so natural text is exact.
 */
export const MAX_WORD_LENGTH = 16384;

// Stands for "no token spells this". It is no token, and text cannot become it.
const UNKNOWN = '\u0000unknown';
const NO_TOKEN = -1;
const NOT_MERGED = 0xffffffff;

export function createPieceEncoder(vocabulary: Vocabulary): PieceEncoder {
  const spm = vocabulary.kind === 'spm';
  const library = new LibraryTokenizer(
    {
      added_tokens: [],
      decoder: null,
      post_processor: null,
      normalizer: spm ? spmNormalizer(vocabulary) : null,
      pre_tokenizer: spm ? spmPreTokenizer(vocabulary) : bpePreTokenizer(vocabulary),
      model: {
        type: 'BPE',
        // The tables are set below: made from these they would pass through a second copy each.
        vocab: {},
        merges: [],
        unk_token: UNKNOWN,
        byte_fallback: spm,
        fuse_unk: spm,
        ignore_merges: vocabulary.pre.ignoreMerges,
      },
    },
    {},
  );
  const { plain, ids: special } = vocabulary;
  const model = library.model as BPE;
  model.tokens_to_ids = plain as Map<string, number>; // the library only reads it
  model.bpe_ranks = spm ? new ScoreRanks(vocabulary) : mergeRanks(vocabulary);
  model.unk_token_id = special.unknown ?? NO_TOKEN;

  return (text) => {
    const input = vocabulary.removeExtraWhitespaces ? collapseSpaces(text) : text;
    if (input === '') return [];
    const { ids } = library.encode(input, { add_special_tokens: false });
    if (special.unknown === undefined && ids.includes(NO_TOKEN)) {
      throw unspellable(text, spm, plain);
    }
    return ids;
  };
}

function spmNormalizer(vocabulary: Vocabulary): object {
  const spaces = { type: 'Replace', pattern: { String: ' ' }, content: SPACE_MARK };
  const prefix = { type: 'Prepend', prepend: SPACE_MARK };
  return {
    type: 'Sequence',
    normalizers: vocabulary.addSpacePrefix ? [spaces, prefix] : [spaces],
  };
}

/**
 * SentencePiece merges over the whole text. If no piece holds a space anywhere but in front, no merge
 * crosses the place before a space, so cutting there changes nothing and makes words cacheable.
 */
function spmPreTokenizer({ texts, types }: Vocabulary): object {
  const spaceInside = new RegExp(`[^${SPACE_MARK}]${SPACE_MARK}`);
  const crosses = texts.some(
    (text, id) => types[id] === TokenType.Normal && spaceInside.test(text),
  );
  const words = isolate(`${SPACE_MARK}*[^${SPACE_MARK}]+|${SPACE_MARK}+`);
  return {
    type: 'Sequence',
    pretokenizers: crosses ? [boundWords()] : [words, boundWords()],
  };
}

function bpePreTokenizer({ pre }: Vocabulary): object {
  return {
    type: 'Sequence',
    pretokenizers: [
      ...wordSplits(pre),
      { type: 'ByteLevel', add_prefix_space: false, use_regex: false },
      boundWords(),
    ],
  };
}

/** The library's configuration of a pre-tokenizer's splits, one after the other. */
export function wordSplits(pre: PreTokenizer): object[] {
  return pre.patterns.map(isolate);
}

function isolate(regex: string): object {
  return { type: 'Split', pattern: { Regex: regex }, behavior: 'Isolated', invert: false };
}

function boundWords(): object {
  return isolate(`[\\s\\S]{1,${MAX_WORD_LENGTH}}`);
}

// The library asks for the rank of a pair with the JSON of [left, right] as the key. Both tables below
// answer from what the file holds; a Map with such keys for all of a model's merges would take 40 MB
// and half of the start-up time at 280,000 merges, and SentencePiece has no list of merges at all.
function joinPair(key: string, separator: string): string {
  if (key.includes('\\')) return (JSON.parse(key) as string[]).join(separator);
  return key.slice(2, -2).replace('","', separator); // no backslash: quotes only around the two
}

/** Ranks by the file's own "left right" strings. */
class MergeRanks extends Map<string, number> {
  override get(key: string): number | undefined {
    return super.get(joinPair(key, ' '));
  }
}

/**
 * In SentencePiece any two neighbours merge if their concatenation is a piece, the highest score
 * first, then the leftmost.
 */
class ScoreRanks extends Map<string, number> {
  private readonly rankOfId: Uint32Array;
  private readonly pieces: ReadonlyMap<string, number>;

  constructor({ scores, types, plain }: Vocabulary) {
    super();
    this.pieces = plain;
    this.rankOfId = new Uint32Array(types.length).fill(NOT_MERGED);
    const ids = Array.from(types.keys()).filter((id) => types[id] === TokenType.Normal);
    const score = (id: number | undefined): number => scores?.[id as number] ?? 0;
    ids.sort((a, b) => score(b) - score(a));
    // Equal scores share a rank: the library breaks ties by position, as SentencePiece does.
    let rank = 0;
    ids.forEach((id, i) => {
      if (i > 0 && score(id) !== score(ids[i - 1])) rank++;
      this.rankOfId[id] = rank;
    });
  }

  override get(key: string): number | undefined {
    const id = this.pieces.get(joinPair(key, ''));
    if (id === undefined) return undefined;
    const rank = this.rankOfId[id];
    return rank === NOT_MERGED ? undefined : rank;
  }
}

function mergeRanks({ types, merges, mergeIds }: Vocabulary): MergeRanks {
  const ranks = new MergeRanks();
  // Backwards: of a merge that is listed twice the first counts.
  for (let rank = merges.length - 1; rank >= 0; rank--) {
    // Special tokens are not made by merging; those that match in any text were cut out before.
    const normal = types[mergeIds[rank] as number] === TokenType.Normal;
    if (normal) ranks.set(merges[rank] as string, rank);
  }
  return ranks;
}

/** What SentencePiece's remove_extra_whitespaces does. */
function collapseSpaces(text: string): string {
  return text.replace(/ {2,}/g, ' ').replace(/^ | $/g, '');
}

function unspellable(
  text: string,
  spm: boolean,
  known: ReadonlyMap<string, number>,
): BadModelError {
  const missing = spm
    ? [...text].find((character) => !known.has(character === ' ' ? SPACE_MARK : character))
    : missingByte(text, known);
  const shown = missing ?? text.slice(0, 40);
  return new BadModelError(
    `The vocabulary has no token for ${JSON.stringify(shown)} and none for unknown text ` +
      '(tokenizer.ggml.unknown_token_id). Leave it out of the text, or use another model.',
    { key: 'tokenizer.ggml.tokens', text: shown },
  );
}

function missingByte(text: string, known: ReadonlyMap<string, number>): string | undefined {
  const byte = new TextEncoder()
    .encode(text)
    .find((b) => !known.has(BYTE_LEVEL_CHARS[b] as string));
  return byte === undefined ? undefined : `byte 0x${byte.toString(16).padStart(2, '0')}`;
}
