// Shows a growing Markdown text in an element: keeps the elements of finished blocks, replaces the open ones, and
// extends an open code block in place (so its scroll position and a selection in it survive). Adds what a reader needs
// around code (language, copy button) and tables (own scrolling).
import { el } from '../../shared/dom.js';
import { icon } from '../../shared/icons.js';
import { MarkdownStream } from './blocks.js';
import { sanitize } from './sanitize.js';

interface Block {
  html: string;
  /** Usually one; a text that sanitising empties has none. */
  nodes: ChildNode[];
}

export class MarkdownView {
  readonly element: HTMLElement;
  #stream = new MarkdownStream();
  #blocks: Block[] = [];

  constructor() {
    this.element = el('div', { class: 'markdown' });
  }

  /** `text` is the whole text so far; `done` renders it once more as one, for links defined after their use. */
  update(text: string, done: boolean): void {
    if (done) this.#stream = new MarkdownStream();
    const { from, html } = this.#stream.update(text);
    for (const block of this.#blocks.splice(from + html.length)) remove(block);
    html.forEach((blockHtml, offset) => {
      this.#put(from + offset, blockHtml);
    });
  }

  #put(index: number, html: string): void {
    const old = this.#blocks[index];
    if (old?.html === html) return;
    if (old && extendCode(old, html)) return;
    const fragment = sanitize(html);
    decorate(fragment);
    const nodes = [...fragment.childNodes];
    const next = this.#blocks.slice(index + 1).find((block) => block.nodes.length > 0)?.nodes[0];
    if (old) remove(old);
    this.element.insertBefore(fragment, next ?? null);
    this.#blocks[index] = { html, nodes };
  }
}

function remove(block: Block): void {
  for (const node of block.nodes) node.remove();
}

/** When both are one code block of the same language and the new one goes on from the old: appends the difference. */
function extendCode(old: Block, html: string): boolean {
  const opening = /^<pre><code[^>]*>/.exec(html)?.[0];
  if (opening === undefined || !old.html.startsWith(opening)) return false;
  const fragment = sanitize(html);
  const source = fragment.querySelector('pre > code')?.textContent ?? '';
  const text = old.nodes
    .find((node) => node instanceof HTMLElement)
    ?.querySelector('pre > code')?.firstChild;
  if (!(text instanceof Text)) return false;
  // blocks.ts ends code with a line end, which grows away while the last line does.
  const shown = text.data.replace(/\n$/, '');
  if (!source.startsWith(shown)) return false;
  text.replaceData(shown.length, text.data.length - shown.length, source.slice(shown.length));
  old.html = html;
  return true;
}

function decorate(fragment: DocumentFragment): void {
  for (const table of fragment.querySelectorAll('table')) {
    // Focusable, so that the keyboard can scroll what is wider than the page.
    const frame = el('div', {
      class: 'table-frame',
      tabindex: 0,
      role: 'group',
      'aria-label': 'Table',
    });
    table.replaceWith(frame);
    frame.append(table);
  }
  for (const pre of fragment.querySelectorAll('pre')) {
    const language = /^language-(.+)$/.exec(pre.firstElementChild?.className ?? '')?.[1];
    const button = el('button', { type: 'button', class: 'copy-code', 'data-copy-code': true });
    button.append(icon('copy'), el('span', {}, 'Copy'));
    button.setAttribute('aria-label', 'Copy code');
    const frame = el(
      'div',
      { class: 'code-frame' },
      el('div', { class: 'code-bar' }, el('span', {}, language ?? 'code'), button),
    );
    pre.replaceWith(frame);
    pre.tabIndex = 0;
    frame.append(pre);
  }
}
