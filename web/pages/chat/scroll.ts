// Follows the growing conversation, but only while the reader is at its end: scrolling up lets go, coming back to the
// end follows again. The decision is a pure function; the class applies it to an element.

export interface ScrollState {
  scrollTop: number;
  clientHeight: number;
  scrollHeight: number;
}

// Less than a line and a half: rounding and the last margin do not count as having scrolled up.
const endSlackPx = 32;

export function isAtEnd({ scrollTop, clientHeight, scrollHeight }: ScrollState): boolean {
  return scrollHeight - clientHeight - scrollTop <= endSlackPx;
}

/** Whether to follow after a scroll event. Content that grows moves the end away without the reader's doing. */
export function followsAfter(following: boolean, before: ScrollState, now: ScrollState): boolean {
  if (isAtEnd(now)) return true;
  const movedUp = now.scrollTop < before.scrollTop;
  // A shorter page pulls scrollTop up by itself.
  const shrank = now.scrollHeight < before.scrollHeight || now.clientHeight > before.clientHeight;
  return following && (!movedUp || shrank);
}

export class ScrollFollower {
  #element: HTMLElement;
  #following = true;
  #active = true;
  #last: ScrollState;
  #onChange: (following: boolean) => void;

  constructor(element: HTMLElement, onChange: (following: boolean) => void) {
    this.#element = element;
    this.#last = this.#state();
    this.#onChange = onChange;
    element.addEventListener('scroll', () => this.#scrolled(), { passive: true });
    // The composer grows, the keyboard opens, an image of text is unfolded: stay at the end.
    new ResizeObserver(() => this.contentChanged()).observe(element);
  }

  /** An empty page has no end to follow: it is read from the top. */
  setActive(active: boolean): void {
    if (active === this.#active) return;
    this.#active = active;
    if (!active) this.#element.scrollTop = 0;
    this.#set(true);
  }

  /** Call after the content changed. */
  contentChanged(): void {
    if (this.#following && this.#active) this.#element.scrollTop = this.#element.scrollHeight;
    this.#last = this.#state();
  }

  /** Goes to the end and follows from now on. */
  toEnd(): void {
    this.#set(true);
    this.contentChanged();
  }

  #scrolled(): void {
    const now = this.#state();
    if (this.#active) this.#set(followsAfter(this.#following, this.#last, now));
    this.#last = now;
  }

  #set(following: boolean): void {
    if (following === this.#following) return;
    this.#following = following;
    this.#onChange(following);
  }

  #state(): ScrollState {
    const { scrollTop, clientHeight, scrollHeight } = this.#element;
    return { scrollTop, clientHeight, scrollHeight };
  }
}
