// The body of one answer: Markdown, with what the model thought folded away, also while it is still thinking. Parts are
// updated in place, so a fold that the reader opened stays open.
import { el } from '../shared/dom.js';
import { MarkdownView } from './markdown/view.js';
import { type Segment, splitThinking } from './text/thinking.js';

class Part {
  readonly element: HTMLElement;
  readonly kind: Segment['kind'];
  #markdown = new MarkdownView();
  #summary: HTMLElement | undefined;

  constructor(kind: Segment['kind']) {
    this.kind = kind;
    if (kind === 'answer') {
      this.element = this.#markdown.element;
      return;
    }
    this.#summary = el('summary', { 'data-testid': 'think-summary' });
    this.element = el(
      'details',
      { class: 'think', 'data-testid': 'think' },
      this.#summary,
      this.#markdown.element,
    );
  }

  update(segment: Segment, done: boolean): void {
    this.#markdown.update(segment.text, done || !segment.open);
    if (this.#summary === undefined) return;
    const label = !segment.open ? 'Thoughts' : done ? 'Thoughts, cut short' : 'Thinking…';
    if (this.#summary.textContent !== label) this.#summary.textContent = label;
    this.element.classList.toggle('is-open-ended', segment.open && !done);
  }
}

export class AnswerBody {
  readonly element = el('div', { class: 'answer-body', 'data-testid': 'answer-body' });
  #parts: Part[] = [];

  /** `text` is the model's whole output so far. */
  update(text: string, done: boolean): void {
    const segments = splitThinking(text, done);
    segments.forEach((segment, index) => {
      if (this.#parts[index]?.kind !== segment.kind) this.#truncate(index);
      let part = this.#parts[index];
      if (part === undefined) {
        part = new Part(segment.kind);
        this.#parts.push(part);
        this.element.append(part.element);
      }
      // A part that another one follows is complete; an answer part at the end is not until `done`.
      part.update(segment, done || index < segments.length - 1);
    });
    this.#truncate(segments.length);
  }

  #truncate(length: number): void {
    for (const part of this.#parts.splice(length)) part.element.remove();
  }
}
