// Finds special tokens (control, unknown and user-defined) in text and cuts the text there, longest
// token first, as llama.cpp does. For tokenizer.ts. Which of them may match where is the caller's to
// say: control tokens are never found in a chat message's content.

import { TokenType } from './token_type.js';
import type { Vocabulary } from './vocabulary.js';

/** A piece of plain text, or the id of a special token found in it. */
export type Fragment = string | number;

/** Half-open range of UTF-16 units where control tokens may be found. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

interface TrieNode {
  readonly next: Map<string, TrieNode>;
  id: number; // -1: no token ends here
}

/** Text not yet cut, and where it starts in the whole. */
interface Uncut {
  readonly text: string;
  readonly offset: number;
}

type Control = 'anywhere' | 'nowhere' | readonly Range[];

// User-defined tokens (type 4) match in any text. Those that look like a turn's delimiter must not in
// chat content, or content could start a turn of its own; files often give them this type.
const LOOKS_LIKE_CONTROL =
  /^(?:<\|.*>|<.*\|>|<\uff5c.*\uff5c>|<\/?s>|<(?:bos|eos|pad|unk|mask)>|<(?:start|end)_of_\w+>|\[\/?[A-Z][A-Z_]*\])$/s;
const WHITE_SPACE = /\s/u;

export class SpecialMatcher {
  private readonly root: TrieNode = newNode();
  private readonly nBytes = new Map<number, number>();
  private readonly texts: readonly string[];
  private readonly types: Uint8Array;
  private readonly stripAfter: ReadonlySet<number>;

  constructor(vocabulary: Vocabulary) {
    const { texts, types, ids } = vocabulary;
    this.texts = texts;
    this.types = types;
    const encoder = new TextEncoder();
    const strip = new Set<number>();
    for (let id = 0; id < texts.length; id++) {
      const piece = texts[id] as string;
      if (piece === '' || !isSpecial(types[id])) continue;
      this.insert(piece, id);
      this.nBytes.set(id, encoder.encode(piece).length);
      // As Phi-3's tokenizer.json has it: all but these three.
      const keeps = id === ids.unknown || id === ids.bos || piece === '<|endoftext|>';
      if (vocabulary.stripAfterSpecial && !keeps) strip.add(id);
    }
    this.stripAfter = strip;
  }

  /**
   * @param control where control and unknown tokens (and user-defined ones that look like them) may be
   *   found: a match must lie within one range. 'anywhere' and 'nowhere' leave the look-alikes alone.
   */
  split(text: string, control: Control): Fragment[] {
    let fragments: (Uncut | number)[] = text === '' ? [] : [{ text, offset: 0 }];
    for (const id of this.present(text)) {
      fragments = fragments.flatMap((fragment) =>
        typeof fragment === 'number' ? fragment : this.cut(fragment, id, control),
      );
    }
    return fragments.map((fragment) => (typeof fragment === 'number' ? fragment : fragment.text));
  }

  private insert(piece: string, id: number): void {
    let node = this.root;
    for (let i = 0; i < piece.length; i++) {
      const unit = piece[i] as string;
      let next = node.next.get(unit);
      if (next === undefined) {
        next = newNode();
        node.next.set(unit, next);
      }
      node = next;
    }
    node.id = id;
  }

  /** The special tokens that occur in the text, the longest first: a few of possibly thousands. */
  private present(text: string): number[] {
    const found = new Set<number>();
    for (let start = 0; start < text.length; start++) {
      let node = this.root.next.get(text[start] as string);
      for (let end = start + 1; node !== undefined; end++) {
        if (node.id >= 0) found.add(node.id);
        node = end < text.length ? node.next.get(text[end] as string) : undefined;
      }
    }
    const nBytes = (id: number): number => this.nBytes.get(id) ?? 0;
    return [...found].sort((a, b) => nBytes(b) - nBytes(a) || a - b);
  }

  private cut({ text, offset }: Uncut, id: number, control: Control): (Uncut | number)[] {
    const piece = this.texts[id] as string;
    const parts: (Uncut | number)[] = [];
    let done = 0;
    for (let at = text.indexOf(piece); at >= 0; ) {
      let end = at + piece.length;
      if (!this.allowed(id, { start: offset + at, end: offset + end }, control)) {
        at = text.indexOf(piece, at + 1);
        continue;
      }
      if (at > done) parts.push({ text: text.slice(done, at), offset: offset + done });
      parts.push(id);
      const strips = this.stripAfter.has(id);
      while (strips && end < text.length && WHITE_SPACE.test(text[end] as string)) end++;
      done = end;
      at = text.indexOf(piece, end);
    }
    if (done < text.length) parts.push({ text: text.slice(done), offset: offset + done });
    return parts;
  }

  private allowed(id: number, match: Range, control: Control): boolean {
    if (control === 'anywhere') return true;
    const userDefined = this.types[id] === TokenType.UserDefined;
    if (control === 'nowhere') return userDefined;
    if (userDefined && !LOOKS_LIKE_CONTROL.test(this.texts[id] as string)) return true;
    return control.some((range) => range.start <= match.start && match.end <= range.end);
  }
}

function newNode(): TrieNode {
  return { next: new Map(), id: -1 };
}

function isSpecial(type: number | undefined): boolean {
  return type === TokenType.Control || type === TokenType.UserDefined || type === TokenType.Unknown;
}
