// The field at the bottom: grows with its text, sends with Enter, says why it cannot send, and turns its button into Stop
// while an answer is written.
import { isRecallKey, isSubmitKey } from './keys.js';

export interface ComposerElements {
  form: HTMLFormElement;
  input: HTMLTextAreaElement;
  send: HTMLButtonElement;
  stop: HTMLButtonElement;
  note: HTMLElement;
}

export interface ComposerActions {
  send(text: string): void;
  stop(): void;
  editLast(): void;
  /** Sending was tried while `reason` forbids it. */
  refused(reason: string): void;
}

export interface ComposerState {
  running: boolean;
  /** Why nothing can be sent now; empty: it can. */
  blocked: string;
  /** Shown when nothing is blocked. */
  note: string;
}

export class Composer {
  #elements: ComposerElements;
  #actions: ComposerActions;
  #state: ComposerState = { running: false, blocked: '', note: '' };

  constructor(elements: ComposerElements, actions: ComposerActions) {
    this.#elements = elements;
    this.#actions = actions;
    const { form, input, stop } = elements;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    input.addEventListener('keydown', (event) => {
      if (isSubmitKey(event)) {
        event.preventDefault();
        this.#submit();
      } else if (isRecallKey(event, input.value)) {
        event.preventDefault();
        actions.editLast();
      }
    });
    input.addEventListener('input', () => this.#changed());
    stop.addEventListener('click', () => actions.stop());
    this.#changed();
  }

  get text(): string {
    return this.#elements.input.value;
  }

  set text(value: string) {
    this.#elements.input.value = value;
    this.#changed();
  }

  focus(): void {
    this.#elements.input.focus();
  }

  update(state: ComposerState): void {
    const { send, stop, note, input } = this.#elements;
    const stopHadFocus = document.activeElement === stop;
    this.#state = state;
    send.hidden = state.running;
    stop.hidden = !state.running;
    if (stopHadFocus && !state.running) input.focus();
    const text = state.blocked || state.note;
    if (note.textContent !== text) note.textContent = text;
    this.#changed();
  }

  #submit(): void {
    const text = this.text.trim();
    if (text === '' || this.#state.running) return;
    if (this.#state.blocked !== '') {
      this.#actions.refused(this.#state.blocked);
      return;
    }
    this.text = '';
    // The on-screen keyboard would cover the answer.
    if (matchMedia('(pointer: coarse)').matches) this.#elements.input.blur();
    this.#actions.send(text);
  }

  #changed(): void {
    const { input, send } = this.#elements;
    // aria-disabled, not disabled: the button keeps the focus and says why.
    const idle = input.value.trim() === '' || this.#state.blocked !== '';
    send.setAttribute('aria-disabled', String(idle));
    if (CSS.supports('field-sizing', 'content')) return;
    input.style.height = 'auto';
    input.style.height = `${input.scrollHeight}px`;
  }
}
