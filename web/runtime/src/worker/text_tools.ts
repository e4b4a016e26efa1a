// What turns a model's tokens into text and back, for a model whose file has a tokenizer; and what stays possible with one
// that has none: token ids go in and come out, and whatever needs text is refused by name.
import type { UnsupportedError } from '../errors.js';
import { ChatTemplate } from '../text/chat_template.js';
import type { GgufMetadata } from '../text/metadata.js';
import { type DecodeOptions, Tokenizer } from '../text/tokenizer.js';
import { hasTokenizer, noTokenizer } from '../text/vocabulary.js';
import { tokenText } from './token_text.js';

/** The part of DetokenizerStream that a generation needs. */
export interface TextStream {
  push(tokens: Iterable<number>): string;
  flush(): string;
}

const NO_TEXT: TextStream = { push: () => '', flush: () => '' };
/** Tokens that end an answer, as a file without a tokenizer may still name them. */
const END_KEYS = ['tokenizer.ggml.eos_token_id', 'tokenizer.ggml.eot_token_id'];

export class TextTools {
  readonly #tokenizer: Tokenizer | UnsupportedError;
  readonly #template: ChatTemplate | undefined;
  readonly endOfGenerationIds: ReadonlySet<number>;

  /** Throws UnsupportedError for a tokenizer that is not implemented, BadModelError for a broken one. */
  static fromMetadata(meta: GgufMetadata, vocabSize: number): TextTools {
    return new TextTools(meta, vocabSize);
  }

  private constructor(meta: GgufMetadata, vocabSize: number) {
    if (hasTokenizer(meta)) {
      const tokenizer = Tokenizer.fromMetadata(meta);
      this.#tokenizer = tokenizer;
      this.#template = ChatTemplate.fromMetadata(meta, tokenizer);
      this.endOfGenerationIds = tokenizer.endOfGenerationIds;
      return;
    }
    this.#tokenizer = noTokenizer(meta);
    this.#template = undefined;
    const ids = END_KEYS.map((key) => Number(meta.get(key)));
    this.endOfGenerationIds = new Set(
      ids.filter((id) => Number.isInteger(id) && id >= 0 && id < vocabSize),
    );
  }

  get hasTokenizer(): boolean {
    return this.#tokenizer instanceof Tokenizer;
  }

  get hasChatTemplate(): boolean {
    return this.#template?.source !== undefined;
  }

  /** Throws UnsupportedError where the model has none. */
  get tokenizer(): Tokenizer {
    if (this.#tokenizer instanceof Tokenizer) return this.#tokenizer;
    throw this.#tokenizer;
  }

  get template(): ChatTemplate {
    if (this.#template !== undefined) return this.#template;
    throw this.#tokenizer;
  }

  /** The texts of tokens as they come; empty ones where the model has no tokenizer. */
  stream(options: DecodeOptions): TextStream {
    return this.#tokenizer instanceof Tokenizer ? this.#tokenizer.stream(options) : NO_TEXT;
  }

  /** One token as a label; '' where the model has no tokenizer. */
  label(id: number): string {
    return this.#tokenizer instanceof Tokenizer ? tokenText(this.#tokenizer, id) : '';
  }
}
