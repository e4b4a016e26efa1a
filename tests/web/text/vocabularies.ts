// Small vocabularies made by hand for the tests of the text layer, and a plain reference of both merging
// rules to hold the fast path against: the definition, quadratic, without caches or heaps.

import { MapMetadata, type MetadataValue } from './gguf_header.js';

export const NORMAL = 1;
export const UNKNOWN = 2;
export const CONTROL = 3;
export const USER_DEFINED = 4;
export const UNUSED = 5;
export const BYTE = 6;

export interface Special {
  readonly text: string;
  readonly type: number;
}

const byteName = (byte: number): string =>
  `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;

/**
 * A SentencePiece vocabulary: <unk>, <s>, </s>, the specials, 256 byte tokens, then the pieces, the
 * first with the highest score. Spaces in pieces are written as ▁.
 */
export function spmMetadata(
  pieces: readonly string[],
  specials: readonly Special[] = [],
  extra: Record<string, MetadataValue> = {},
): MapMetadata {
  const head: Special[] = [
    { text: '<unk>', type: UNKNOWN },
    { text: '<s>', type: CONTROL },
    { text: '</s>', type: CONTROL },
    ...specials,
    ...Array.from({ length: 256 }, (_, byte) => ({ text: byteName(byte), type: BYTE })),
  ];
  const texts = [...head.map(({ text }) => text), ...pieces];
  const scores = texts.map((_, id) => Math.min(head.length - id, 0));
  const types = texts.map((_, id) => head[id]?.type ?? NORMAL);
  return new MapMetadata([
    ['tokenizer.ggml.model', 'llama'],
    ['tokenizer.ggml.tokens', texts],
    ['tokenizer.ggml.scores', Float32Array.from(scores)],
    ['tokenizer.ggml.token_type', Int32Array.from(types)],
    ['tokenizer.ggml.bos_token_id', 1],
    ['tokenizer.ggml.eos_token_id', 2],
    ['tokenizer.ggml.unknown_token_id', 0],
    ...Object.entries(extra),
  ]);
}

/** GPT-2's way to write a byte as a printable character. */
export function byteLevel(text: string): string {
  const printable = (b: number): boolean =>
    (b > 32 && b < 127) || (b > 160 && b !== 173 && b < 256);
  const others = Array.from({ length: 256 }, (_, b) => b).filter((b) => !printable(b));
  return Array.from(new TextEncoder().encode(text), (b) =>
    String.fromCharCode(printable(b) ? b : 256 + others.indexOf(b)),
  ).join('');
}

/**
 * A byte-level BPE vocabulary: the 256 bytes, then what merging the given words from left to right
 * yields ("the": "th", "the"), then the specials. Earlier words have better ranks.
 */
export function bpeMetadata(
  pre: string,
  words: readonly string[],
  specials: readonly Special[] = [],
  extra: Record<string, MetadataValue> = {},
): MapMetadata {
  const texts = Array.from({ length: 256 }, (_, b) => byteLevelOfByte(b));
  const merges: string[] = [];
  for (const word of words.map(byteLevel)) {
    const characters = [...word];
    let built = characters[0] ?? '';
    for (const character of characters.slice(1)) {
      const merged = built + character;
      if (!texts.includes(merged)) {
        texts.push(merged);
        merges.push(`${built} ${character}`);
      }
      built = merged;
    }
  }
  const types = [...texts.map(() => NORMAL), ...specials.map(({ type }) => type)];
  return new MapMetadata([
    ['tokenizer.ggml.model', 'gpt2'],
    ['tokenizer.ggml.pre', pre],
    ['tokenizer.ggml.tokens', [...texts, ...specials.map(({ text }) => text)]],
    ['tokenizer.ggml.token_type', Int32Array.from(types)],
    ['tokenizer.ggml.merges', merges],
    ...Object.entries(extra),
  ]);
}

function byteLevelOfByte(byte: number): string {
  const printable = (b: number): boolean =>
    (b > 32 && b < 127) || (b > 160 && b !== 173 && b < 256);
  if (printable(byte)) return String.fromCharCode(byte);
  let index = 0;
  for (let b = 0; b < byte; b++) if (!printable(b)) index++;
  return String.fromCharCode(256 + index);
}

/** The pair with the best rank merges, the leftmost of equals, until none has a rank. */
function mergeAll(symbols: string[], rank: (left: string, right: string) => number): string[] {
  for (;;) {
    let best = -1;
    let bestRank = Infinity;
    for (let i = 0; i + 1 < symbols.length; i++) {
      const here = rank(symbols[i] as string, symbols[i + 1] as string);
      if (here < bestRank) [best, bestRank] = [i, here];
    }
    if (best < 0) return symbols;
    symbols.splice(best, 2, (symbols[best] as string) + (symbols[best + 1] as string));
  }
}

/** Ids of plain text by SentencePiece's rule; what is no piece becomes byte tokens. */
export function referenceSpm(meta: MapMetadata, text: string): number[] {
  const texts = meta.strings('tokenizer.ggml.tokens') ?? [];
  const types = meta.numbers('tokenizer.ggml.token_type') ?? [];
  const scores = meta.numbers('tokenizer.ggml.scores') ?? [];
  const pieces = new Map(texts.map((piece, id) => [piece, id]));
  const mergeable = (piece: string): number | undefined => {
    const id = pieces.get(piece);
    return id !== undefined && types[id] === NORMAL ? id : undefined;
  };
  const prefix = meta.get('tokenizer.ggml.add_space_prefix') === false || text === '' ? '' : ' ';
  const symbols = mergeAll([...(prefix + text).replaceAll(' ', '▁')], (left, right) => {
    const id = mergeable(left + right);
    return id === undefined ? Infinity : -(scores[id] as number);
  });
  const encoder = new TextEncoder();
  return symbols.flatMap((symbol) => {
    const id = mergeable(symbol);
    if (id !== undefined) return [id];
    return Array.from(encoder.encode(symbol), (byte) => pieces.get(byteName(byte)) as number);
  });
}

/** Ids of one word by the rule of byte-level BPE. */
export function referenceBpe(meta: MapMetadata, word: string): number[] {
  const ids = new Map((meta.strings('tokenizer.ggml.tokens') ?? []).map((text, id) => [text, id]));
  const ranks = new Map((meta.strings('tokenizer.ggml.merges') ?? []).map((pair, i) => [pair, i]));
  return mergeAll(
    [...byteLevel(word)],
    (left, right) => ranks.get(`${left} ${right}`) ?? Infinity,
  ).map((symbol) => ids.get(symbol) as number);
}

/** Deterministic pseudo-random integers below `n` (mulberry32). */
export function randomSource(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % n;
  };
}
