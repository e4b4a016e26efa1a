// What a screen reader hears: the answer in finished sentences, a few at a time (a live region per token would drown the
// listener), and short statuses. Old entries are removed, so that nobody reads the whole chat twice.
import { el } from '../shared/dom.js';
import { SentenceSplitter } from './text/sentences.js';

// Screen readers drop announcements that come faster than they can start speaking.
const gatherMs = 800;
const keptEntries = 30;

export class Announcer {
  #log: HTMLElement;
  #status: HTMLElement;
  #splitter = new SentenceSplitter();
  #waiting: string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(log: HTMLElement, status: HTMLElement) {
    this.#log = log;
    this.#status = status;
  }

  /** Loading, stopping, copying: said once. */
  status(text: string): void {
    // The same text twice would not be announced twice.
    const same = this.#status.textContent === text;
    this.#status.textContent = same ? `${text}\u00a0` : text;
  }

  startAnswer(): void {
    this.#splitter = new SentenceSplitter();
    this.#waiting = [];
  }

  /** `text` is the whole answer so far, without thoughts. */
  answer(text: string): void {
    this.#queue(this.#splitter.update(text));
  }

  endAnswer(text: string): void {
    this.#queue([...this.#splitter.update(text), ...this.#splitter.finish()]);
  }

  #queue(sentences: string[]): void {
    if (sentences.length === 0) return;
    this.#waiting.push(...sentences);
    this.#timer ??= setTimeout(() => this.#flush(), gatherMs);
  }

  #flush(): void {
    this.#timer = undefined;
    if (this.#waiting.length === 0) return;
    this.#log.append(el('p', {}, this.#waiting.join(' ')));
    this.#waiting = [];
    while (this.#log.childElementCount > keptEntries) this.#log.firstElementChild?.remove();
  }
}
