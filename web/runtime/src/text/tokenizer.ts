// Text <-> token ids, from a GGUF file's own vocabulary. For the engine's worker and the pages' tools.
// Special tokens are cut out here, by rules the caller chooses; the plain text between them is encoded
// by bpe.ts. It renders no chat template (chat_template.ts) and filters no stop strings (stream.ts).

import { BadOptionError } from '../errors.js';
import { createPieceEncoder, type PieceEncoder } from './bpe.js';
import type { GgufMetadata } from './metadata.js';
import { bytesOfToken } from './pieces.js';
import { type Fragment, type Range, SpecialMatcher } from './special_matcher.js';
import { type DetokenizerOptions, DetokenizerStream } from './stream.js';
import { TokenType } from './token_type.js';
import { readVocabulary, type Vocabulary } from './vocabulary.js';

export interface EncodeOptions {
  /** Add BOS and EOS where the file says so. Default true. */
  readonly addSpecial?: boolean;
  /**
   * Turn texts such as <|im_end|> into the control tokens of that name. Default false: they stay
   * text. Never true for text that a user or a document supplied.
   */
  readonly parseSpecial?: boolean;
}

/** A stretch of a rendered prompt; control tokens are recognised only where `special` is true. */
export interface TextSegment {
  readonly text: string;
  readonly special: boolean;
}

export interface DecodeOptions {
  /** Leave control tokens out of the text. Default true. */
  readonly skipSpecial?: boolean;
  /** The tokens continue a text: keep the space in front that SentencePiece adds to a text's start. */
  readonly continuation?: boolean;
}

export class Tokenizer {
  private readonly vocabulary: Vocabulary;
  private readonly matcher: SpecialMatcher;
  private readonly encodePlain: PieceEncoder;
  /** Characters (UTF-16) that one token covers at most; Infinity where that is not known. */
  private readonly longest: number;

  /**
   * @throws UnsupportedError for a tokenizer kind that is not implemented; BadModelError, naming the
   *   key and index, for a vocabulary that contradicts itself.
   */
  static fromMetadata(meta: GgufMetadata): Tokenizer {
    return new Tokenizer(readVocabulary(meta));
  }

  private constructor(vocabulary: Vocabulary) {
    this.vocabulary = vocabulary;
    this.matcher = new SpecialMatcher(vocabulary);
    this.encodePlain = createPieceEncoder(vocabulary);
    this.longest = longestToken(vocabulary);
  }

  get vocabSize(): number {
    return this.vocabulary.texts.length;
  }

  get bosId(): number | undefined {
    return this.vocabulary.ids.bos;
  }

  get eosId(): number | undefined {
    return this.vocabulary.ids.eos;
  }

  /** End of turn. */
  get eotId(): number | undefined {
    return this.vocabulary.ids.eot;
  }

  /** Every token after which generation stops: EOS, EOT, EOM and the well-known texts. */
  get endOfGenerationIds(): ReadonlySet<number> {
    return this.vocabulary.ids.endOfGeneration;
  }

  /** Whether encode() puts BOS in front by default. */
  get addsBos(): boolean {
    return this.vocabulary.addBos && this.vocabulary.ids.bos !== undefined;
  }

  /** Whether a text's first token carries a space that is not in the text. */
  get addsSpacePrefix(): boolean {
    return this.vocabulary.addSpacePrefix;
  }

  /** Control and unknown tokens: no text for a reader. */
  isControl(id: number): boolean {
    const type = this.vocabulary.types[this.checkId(id)];
    return type === TokenType.Control || type === TokenType.Unknown;
  }

  /** The token as the vocabulary spells it, e.g. '▁the' or 'Ġthe': for labels, not for output. */
  tokenText(id: number): string {
    return this.vocabulary.texts[this.checkId(id)] as string;
  }

  /** The id of the token that the vocabulary spells so, e.g. '<|im_start|>'. */
  idOf(tokenText: string): number | undefined {
    return this.vocabulary.special.get(tokenText) ?? this.vocabulary.plain.get(tokenText);
  }

  /** The bytes a token stands for; may end within a UTF-8 character. */
  piece(id: number): Uint8Array {
    return bytesOfToken(this.vocabulary, this.checkId(id));
  }

  encode(text: string, options: EncodeOptions = {}): Int32Array {
    const { addSpecial = true, parseSpecial = false } = options;
    const input = wellFormed(text);
    const ids = this.encodeFragments(
      this.matcher.split(input, parseSpecial ? 'anywhere' : 'nowhere'),
    );
    const { bos, eos } = this.vocabulary.ids;
    if (addSpecial && this.vocabulary.addBos && bos !== undefined) ids.unshift(bos);
    if (addSpecial && this.vocabulary.addEos && eos !== undefined) ids.push(eos);
    return Int32Array.from(ids);
  }

  /**
   * A number of tokens that a text of so many characters has at least. Costs nothing, where encoding a megabyte takes
   * seconds in which its thread hears of nothing else.
   */
  fewestTokens(nCharacters: number): number {
    return Math.ceil(nCharacters / this.longest);
  }

  /**
   * A rendered prompt. Segment borders do not cut words: the ids are those of the whole text, except
   * that no control token is found in, or reaching into, a segment that is not special. BOS is added
   * where the file says so and the prompt has none yet; EOS never, since the prompt is to go on.
   */
  encodeSegments(
    parts: readonly TextSegment[],
    options: { readonly addSpecial?: boolean } = {},
  ): Int32Array {
    const ranges: { start: number; end: number }[] = [];
    let text = '';
    for (const part of parts) {
      const piece = wellFormed(part.text);
      const last = ranges.at(-1);
      if (part.special && last?.end === text.length) last.end += piece.length;
      else if (part.special) ranges.push({ start: text.length, end: text.length + piece.length });
      text += piece;
    }
    const ids = this.encodeFragments(this.matcher.split(text, ranges satisfies Range[]));
    const { bos } = this.vocabulary.ids;
    const wantsBos = (options.addSpecial ?? true) && this.vocabulary.addBos;
    if (wantsBos && bos !== undefined && ids[0] !== bos) ids.unshift(bos);
    return Int32Array.from(ids);
  }

  /** Text of tokens; bytes that are not UTF-8 become U+FFFD. */
  decode(tokens: Iterable<number>, options: DecodeOptions = {}): string {
    const stream = this.stream(options);
    return stream.push(tokens) + stream.flush();
  }

  /** A decoder for tokens as they are generated. */
  stream(options: DecodeOptions = {}): DetokenizerStream {
    const full: DetokenizerOptions = {
      skipSpecial: options.skipSpecial ?? true,
      stripSpace: this.vocabulary.addSpacePrefix && !(options.continuation ?? false),
    };
    return new DetokenizerStream(this, full);
  }

  private encodeFragments(fragments: readonly Fragment[]): number[] {
    const ids: number[] = [];
    for (const fragment of fragments) {
      if (typeof fragment === 'number') ids.push(fragment);
      else for (const id of this.encodePlain(fragment)) ids.push(id);
    }
    return ids;
  }

  private checkId(id: number): number {
    if (Number.isInteger(id) && id >= 0 && id < this.vocabSize) return id;
    throw new BadOptionError(
      `Token id ${id} is not in the vocabulary; ids are integers from 0 to ${this.vocabSize - 1}.`,
      { id, vocabSize: this.vocabSize },
    );
  }
}

const N_BYTES = 256;

/** Each character of a token's spelling stands for one character of a text, or for one byte of it. */
function longestToken(vocabulary: Vocabulary): number {
  const { kind, texts, types, removeExtraWhitespaces, stripAfterSpecial } = vocabulary;
  const nBytes = types.reduce((n, type) => n + (type === TokenType.Byte ? 1 : 0), 0);
  // Spaces may be left out; without all byte tokens one token stands for any run of unknown characters.
  const anyLength =
    removeExtraWhitespaces || stripAfterSpecial || (kind === 'spm' && nBytes < N_BYTES);
  if (anyLength) return Number.POSITIVE_INFINITY;
  return texts.reduce((longest, text) => Math.max(longest, text.length), 1);
}

/** A surrogate without its partner cannot be UTF-8; everything else stays. */
function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}
