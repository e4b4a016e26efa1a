// Token id -> the bytes it stands for. Bytes, not text: a token may end in the middle of a character.
// For tokenizer.ts and, through it, the stream. It does not assemble text.

import { byteOfToken, TokenType } from './token_type.js';
import type { Vocabulary } from './vocabulary.js';

/** SentencePiece's stand-in for a space. */
export const SPACE_MARK = '\u2581';

/**
 * Byte-level BPE writes byte b as BYTE_LEVEL_CHARS[b]: printable Latin-1 as itself, the other 68 bytes
 * as U+0100 onwards, in order (GPT-2's bytes_to_unicode).
 */
export const BYTE_LEVEL_CHARS: readonly string[] = byteLevelChars();

const BYTE_OF_CHAR: ReadonlyMap<string, number> = new Map(
  BYTE_LEVEL_CHARS.map((char, byte) => [char, byte]),
);
const ENCODER = new TextEncoder();

/** The bytes of one token; of a special token, its text. Spaces that SentencePiece adds stay. */
export function bytesOfToken({ kind, texts, types }: Vocabulary, id: number): Uint8Array {
  const text = texts[id] as string;
  const type = types[id];
  if (type === TokenType.Byte) return Uint8Array.of(byteOfToken(text, id));
  if (type !== TokenType.Normal && type !== TokenType.Unused) return ENCODER.encode(text);
  if (kind === 'spm') return ENCODER.encode(text.replaceAll(SPACE_MARK, ' '));
  return bytesOfByteLevel(text);
}

function bytesOfByteLevel(text: string): Uint8Array {
  const bytes: number[] = [];
  for (const char of text) {
    const byte = BYTE_OF_CHAR.get(char);
    if (byte !== undefined) bytes.push(byte);
    else bytes.push(...ENCODER.encode(char)); // not byte-level: a token added by hand
  }
  return Uint8Array.from(bytes);
}

function byteLevelChars(): string[] {
  const printable = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCharCode(printable(byte) ? byte : next++),
  );
}
