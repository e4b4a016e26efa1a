// Splits a model's output into what it thinks (`<think>` or `<thinking>` blocks) and what it answers. Works on
// unfinished text while it streams: an open block is `open`, a tag that may still be completed is held back.
// A tag counts at the start of a line and outside fenced code only, so that an answer may write about tags.

export interface Segment {
  kind: 'think' | 'answer';
  text: string;
  /** A think block whose end has not come (yet). */
  open: boolean;
}

const openingTag = /^[ \t]*<(think|thinking)>/;
const anyClosingTag = /<\/(?:think|thinking)>/;
const fenceLine = /^ {0,3}(`{3,}|~{3,})/;
const longestTag = '</thinking>'.length;

interface Opening {
  at: number;
  end: number;
  tag: string;
}

/** The first opening tag from `from` on, skipping fenced code. */
function findOpening(text: string, from: number): Opening | undefined {
  let fence = '';
  for (let at = from; at < text.length; ) {
    const newline = text.indexOf('\n', at);
    const lineEnd = newline < 0 ? text.length : newline;
    const line = text.slice(at, lineEnd);
    const marker = fenceLine.exec(line)?.[1];
    if (marker !== undefined) {
      if (fence === '') fence = marker;
      else if (marker.startsWith(fence)) fence = '';
    } else if (fence === '') {
      const match = openingTag.exec(line);
      if (match) return { at, end: at + match[0].length, tag: match[1] ?? '' };
    }
    at = lineEnd + 1;
  }
  return undefined;
}

/** `text` without a last `<...` that could become one of `tags`. */
function withoutPartialTag(text: string, tags: readonly string[]): string {
  const at = text.lastIndexOf('<');
  if (at < 0 || text.length - at >= longestTag) return text;
  const rest = text.slice(at);
  return tags.some((tag) => tag.startsWith(rest)) ? text.slice(0, at) : text;
}

/**
 * The segments of `text` in order. `done`: the text is complete, so nothing is held back. Templates that open the
 * block in the prompt leave only the closing tag in the text: everything before it was thought.
 */
export function splitThinking(text: string, done: boolean): Segment[] {
  const segments: Segment[] = [];
  const push = (kind: Segment['kind'], part: string, open = false) => {
    if (open || part.trim() !== '') segments.push({ kind, text: part, open });
  };
  let at = 0;
  const first = findOpening(text, 0);
  const closing = anyClosingTag.exec(text);
  if (
    closing &&
    (first === undefined || closing.index < first.at) &&
    !inCode(text, closing.index)
  ) {
    push('think', text.slice(0, closing.index).trim());
    at = closing.index + closing[0].length;
  }
  for (;;) {
    const opening = findOpening(text, at);
    if (opening === undefined) {
      const rest = text.slice(at);
      push('answer', done ? rest : withoutPartialTag(rest, ['<think>', '<thinking>']));
      return segments;
    }
    push('answer', text.slice(at, opening.at));
    const closer = `</${opening.tag}>`;
    const end = text.indexOf(closer, opening.end);
    if (end < 0) {
      const rest = text.slice(opening.end);
      push('think', (done ? rest : withoutPartialTag(rest, [closer])).trim(), true);
      return segments;
    }
    push('think', text.slice(opening.end, end).trim());
    at = end + closer.length;
  }
}

/** Whether `index` lies in a code fence or between back-ticks of its line. */
function inCode(text: string, index: number): boolean {
  const before = text.slice(0, index);
  const lines = before.split('\n');
  const fences = lines.filter((line) => fenceLine.test(line)).length;
  const ticks = (lines.at(-1) ?? '').split('`').length - 1;
  return fences % 2 === 1 || ticks % 2 === 1;
}

/** The answer without its thoughts. While `done` is false it only ever grows with `text`. */
export function spokenText(text: string, done: boolean): string {
  return splitThinking(text, done)
    .filter(({ kind }) => kind === 'answer')
    .map((segment) => segment.text)
    .join('\n');
}
