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

interface Match {
  readonly id: number;
  readonly start: number;
  readonly end: number;
  readonly nBytes: number;
}

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
  split(text: string, control: 'anywhere' | 'nowhere' | readonly Range[]): Fragment[] {
    const matches = this.find(text).filter((match) => this.allowed(match, control));
    if (matches.length === 0) return text === '' ? [] : [text];
    return this.cut(text, this.choose(text, matches));
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

  private find(text: string): Match[] {
    const matches: Match[] = [];
    for (let start = 0; start < text.length; start++) {
      let node = this.root.next.get(text[start] as string);
      for (let end = start + 1; node !== undefined; end++) {
        if (node.id >= 0) {
          matches.push({ id: node.id, start, end, nBytes: this.nBytes.get(node.id) ?? 0 });
        }
        node = end < text.length ? node.next.get(text[end] as string) : undefined;
      }
    }
    return matches;
  }

  private allowed(match: Match, control: 'anywhere' | 'nowhere' | readonly Range[]): boolean {
    if (control === 'anywhere') return true;
    const userDefined = this.types[match.id] === TokenType.UserDefined;
    if (control === 'nowhere') return userDefined;
    if (userDefined && !LOOKS_LIKE_CONTROL.test(this.texts[match.id] as string)) return true;
    return control.some((range) => range.start <= match.start && match.end <= range.end);
  }

  /** The longest tokens win, then the leftmost; none overlap. In text order. */
  private choose(text: string, matches: Match[]): Match[] {
    matches.sort((a, b) => b.nBytes - a.nBytes || a.id - b.id || a.start - b.start);
    const taken = new Uint8Array(text.length);
    const chosen: Match[] = [];
    for (const match of matches) {
      // What was taken before is at least as long, so an overlap covers an end of this match.
      if (taken[match.start] || taken[match.end - 1]) continue;
      let end = match.end;
      if (this.stripAfter.has(match.id)) {
        while (end < text.length && !taken[end] && WHITE_SPACE.test(text[end] as string)) end++;
      }
      taken.fill(1, match.start, end);
      chosen.push({ ...match, end });
    }
    return chosen.sort((a, b) => a.start - b.start);
  }

  private cut(text: string, matches: readonly Match[]): Fragment[] {
    const fragments: Fragment[] = [];
    let done = 0;
    for (const { id, start, end } of matches) {
      if (start > done) fragments.push(text.slice(done, start));
      fragments.push(id);
      done = end;
    }
    if (done < text.length) fragments.push(text.slice(done));
    return fragments;
  }
}

function newNode(): TrieNode {
  return { next: new Map(), id: -1 };
}

function isSpecial(type: number | undefined): boolean {
  return type === TokenType.Control || type === TokenType.UserDefined || type === TokenType.Unknown;
}
