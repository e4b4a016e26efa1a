// Cuts a growing Markdown text into finished sentences for a screen reader: plain words without marks, one entry a
// sentence, list item, heading or table row; of a code block only its opening and its length. What has been returned is
// not returned again. Not for display.

const fenceLine = /^\s{0,3}(?:`{3,}|~{3,})\s*([\w+#.-]*)/;
const tableRule = /^\s*\|?[\s:|-]*-[\s:|-]*$/;
// The end of a sentence: its mark, closing quotes, and white space after it; CJK marks need none.
const sentenceEnd = /[.!?…]["'”’)\]*_]*(?=\s)|[。！？]["'”’」』）]*/g;
// "1." at the start of a line numbers an item and ends no sentence.
const listNumber = /^\s*\d{1,9}\.$/;

/** Markdown's marks taken out of one piece of a line. */
export function plainWords(markdown: string): string {
  return markdown
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+(?:\[[ xX]\]\s+)?)+/, '')
    .replace(/[`*~|]+/g, ' ')
    .replace(/(^|\s)_+|_+(?=\s|$|[.,;:!?])/g, '$1')
    .replace(/\s+/g, ' ')
    .trim();
}

export class SentenceSplitter {
  #seen = 0; // characters of the whole text that were taken
  #rest = ''; // the unfinished line
  #codeLines = -1; // lines of the open code block; -1: none is open

  /** Takes the whole text so far (which only grows) and returns the sentences that it finishes. */
  update(text: string): string[] {
    this.#rest += text.slice(this.#seen);
    this.#seen = Math.max(this.#seen, text.length);
    const finished: string[] = [];
    for (let newline = this.#rest.indexOf('\n'); newline >= 0; newline = this.#rest.indexOf('\n')) {
      this.#line(this.#rest.slice(0, newline), finished);
      this.#rest = this.#rest.slice(newline + 1);
    }
    // Within the last line only whole sentences, and nothing of what may become a fence or a table.
    if (this.#codeLines < 0 && !/^\s*[`~|]/.test(this.#rest)) {
      const cut = lastSentenceEnd(this.#rest);
      if (cut > 0) {
        this.#sentences(this.#rest.slice(0, cut), finished);
        this.#rest = this.#rest.slice(cut);
      }
    }
    return finished;
  }

  /** The text is complete: returns what remains. */
  finish(): string[] {
    const finished: string[] = [];
    this.#line(this.#rest, finished);
    this.#rest = '';
    if (this.#codeLines >= 0) this.#endCode(finished);
    return finished;
  }

  #line(line: string, finished: string[]): void {
    const fence = fenceLine.exec(line);
    if (fence) {
      if (this.#codeLines >= 0) this.#endCode(finished);
      else {
        this.#codeLines = 0;
        finished.push(fence[1] ? `Code block, ${fence[1]}.` : 'Code block.');
      }
    } else if (this.#codeLines >= 0) this.#codeLines += 1;
    else if (!tableRule.test(line)) this.#sentences(line, finished);
  }

  #endCode(finished: string[]): void {
    finished.push(`End of code, ${this.#codeLines} ${this.#codeLines === 1 ? 'line' : 'lines'}.`);
    this.#codeLines = -1;
  }

  #sentences(text: string, finished: string[]): void {
    let from = 0;
    for (const end of sentenceEnds(text)) {
      push(text.slice(from, end), finished);
      from = end;
    }
    push(text.slice(from), finished);
  }
}

function push(part: string, finished: string[]): void {
  const words = plainWords(part);
  if (/[\p{L}\p{N}\p{S}]/u.test(words)) finished.push(words);
}

function sentenceEnds(text: string): number[] {
  const ends: number[] = [];
  for (const match of text.matchAll(sentenceEnd)) {
    const end = match.index + match[0].length;
    if (!listNumber.test(text.slice(0, end))) ends.push(end);
  }
  return ends;
}

function lastSentenceEnd(text: string): number {
  return sentenceEnds(text).at(-1) ?? 0;
}
