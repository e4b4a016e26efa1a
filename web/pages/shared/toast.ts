// A short message under the header, at most with one button (Undo). It leaves by itself, but not while the
// pointer or the focus is on it.
import { el } from './dom.js';

// Time to read a line and decide; WCAG asks that nothing is lost when it goes, so it only ever offers an extra.
const shownMs = 8000;

export class Toast {
  #root: HTMLElement;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(root: HTMLElement) {
    this.#root = root;
    root.addEventListener('pointerenter', () => this.#hold());
    root.addEventListener('pointerleave', () => this.#leaveLater());
    root.addEventListener('focusin', () => this.#hold());
    root.addEventListener('focusout', () => this.#leaveLater());
  }

  show(text: string, action?: { label: string; run: () => void }): void {
    this.#root.replaceChildren(el('span', {}, text));
    if (action) {
      const button = el(
        'button',
        { type: 'button', class: 'text-button', 'data-testid': 'toast-action' },
        action.label,
      );
      button.addEventListener('click', () => {
        this.hide();
        action.run();
      });
      this.#root.append(button);
    }
    this.#leaveLater();
  }

  hide(): void {
    this.#hold();
    this.#root.replaceChildren();
  }

  #hold(): void {
    clearTimeout(this.#timer);
  }

  #leaveLater(): void {
    this.#hold();
    this.#timer = setTimeout(() => this.hide(), shownMs);
  }
}
