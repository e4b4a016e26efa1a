// Generated tokens -> text, piece by piece, safe to show: no half characters (DetokenizerStream) and no
// half stop strings (StopStringFilter). For the worker's generation loop, in this order. Both give the
// same total text however the tokens are grouped. They decide nothing about end-of-generation tokens.

import { BadOptionError } from '../errors.js';

export interface DetokenizerOptions {
  /** Leave control tokens out. */
  readonly skipSpecial: boolean;
  /** Drop the one space in front of the first piece (SentencePiece adds it to a text's start). */
  readonly stripSpace: boolean;
}

/** The part of Tokenizer that the stream needs. */
export interface PieceSource {
  isControl(id: number): boolean;
  piece(id: number): Uint8Array;
}

const SPACE = 0x20;

export class DetokenizerStream {
  private readonly source: PieceSource;
  private readonly skipSpecial: boolean;
  private stripSpace: boolean;
  // Holds back bytes of an incomplete character between calls. A BOM is text like any other here.
  private readonly decoder = new TextDecoder('utf-8', { ignoreBOM: true });

  constructor(source: PieceSource, options: DetokenizerOptions) {
    this.source = source;
    this.skipSpecial = options.skipSpecial;
    this.stripSpace = options.stripSpace;
  }

  /** @returns the text that these tokens complete; whole characters only. */
  push(tokens: Iterable<number> | number): string {
    let text = '';
    for (const id of typeof tokens === 'number' ? [tokens] : tokens) {
      const control = this.source.isControl(id);
      if (control && this.skipSpecial) continue;
      let bytes = this.source.piece(id);
      if (this.stripSpace && !control) {
        if (bytes[0] === SPACE) bytes = bytes.subarray(1);
        this.stripSpace = false;
      }
      text += this.decoder.decode(bytes, { stream: true });
    }
    return text;
  }

  /** Ends the text: bytes still held back become U+FFFD. The stream can then start another text. */
  flush(): string {
    return this.decoder.decode();
  }
}

export interface FilteredText {
  /** Safe to show: contains no part of a stop string. */
  readonly text: string;
  /** The stop string that ended the text, once one has. */
  readonly stop: string | undefined;
}

/**
 * Ends the text before the first stop string: the one that is complete first; of those complete at the
 * same character, the longest. Text that may still become a stop string is held back.
 */
export class StopStringFilter {
  private readonly stops: readonly string[];
  private held = '';
  private found: string | undefined;

  /** @throws BadOptionError if a stop string is empty: it would end every text at once. */
  constructor(stops: readonly string[]) {
    stops.forEach((stop, i) => {
      if (typeof stop === 'string' && stop !== '') return;
      throw new BadOptionError(
        `stop[${i}] is ${JSON.stringify(stop)}; stop strings are strings of at least one character.`,
        { option: 'stop', index: i },
      );
    });
    this.stops = [...new Set(stops)];
  }

  /** The stop string that ended the text, or undefined while none has. */
  get stop(): string | undefined {
    return this.found;
  }

  push(text: string): FilteredText {
    if (this.found !== undefined) return { text: '', stop: this.found };
    const all = this.held + text;
    const match = this.firstMatch(all);
    if (match !== undefined) {
      this.found = match.stop;
      this.held = '';
      return { text: all.slice(0, match.start), stop: match.stop };
    }
    const safe = all.length - this.partialLength(all);
    this.held = all.slice(safe);
    return { text: all.slice(0, safe), stop: undefined };
  }

  /** Ends the text without a stop string: what was held back is text after all. */
  flush(): string {
    const rest = this.held;
    this.held = '';
    return rest;
  }

  private firstMatch(text: string): { stop: string; start: number } | undefined {
    let best: { stop: string; start: number; end: number } | undefined;
    for (const stop of this.stops) {
      const start = text.indexOf(stop);
      if (start < 0) continue;
      const end = start + stop.length;
      const first = best === undefined || end < best.end;
      if (first || (end === best?.end && start < best.start)) best = { stop, start, end };
    }
    return best;
  }

  /** Length of the longest end of the text that begins a stop string. */
  private partialLength(text: string): number {
    let longest = 0;
    for (const stop of this.stops) {
      for (let n = Math.min(stop.length - 1, text.length); n > longest; n--) {
        if (text.endsWith(stop.slice(0, n))) longest = n;
      }
    }
    return longest;
  }
}
