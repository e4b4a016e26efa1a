// One token by itself as text, for labels and logprobs: control tokens by their name, half characters as U+FFFD.
import type { Tokenizer } from '../text/tokenizer.js';

export function tokenText(tokenizer: Tokenizer, id: number): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(tokenizer.piece(id));
}
