// The token types of GGUF vocabularies and the text form of byte tokens, for the files of the text layer.

import { BadModelError } from '../errors.js';

/** 'spm' (tokenizer.ggml.model "llama") or 'bpe' ("gpt2"). */
export type VocabularyKind = 'spm' | 'bpe';

/** tokenizer.ggml.token_type, as the GGUF documentation numbers them. */
export const TokenType = {
  Normal: 1,
  Unknown: 2,
  Control: 3,
  UserDefined: 4,
  Unused: 5,
  Byte: 6,
} as const;

/** The value of a byte token such as <0x0A>. */
export function byteOfToken(piece: string, id: number): number {
  const match = /^<0x([0-9A-Fa-f]{2})>$/.exec(piece);
  if (match === null) {
    const shown = JSON.stringify(piece);
    throw new BadModelError(
      `tokenizer.ggml.tokens[${id}] is of type byte but reads ${shown}, not like <0x0A>.`,
      { key: 'tokenizer.ggml.tokens', index: id },
    );
  }
  return Number.parseInt(match[1] as string, 16);
}
