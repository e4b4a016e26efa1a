// The calculator's numbers: a field each, with a slider where sliding helps. A value that cannot be is said beside the field.
import { el } from '../../shared/dom.js';

export interface NumberFieldOptions {
  id: string;
  label: string;
  min: number;
  max: number;
  /** A slider from min to this one; left out: no slider. */
  slideTo?: number;
  /** Of the slider and of the arrow keys. */
  step?: number;
  hint?: string;
}

export class NumberField {
  readonly root: HTMLElement;
  readonly id: string;
  #input: HTMLInputElement;
  #slider: HTMLInputElement | undefined;
  #error: HTMLElement;
  #options: NumberFieldOptions;

  /** @param changed called with a whole number within the range */
  constructor(options: NumberFieldOptions, changed: (value: number) => void) {
    this.#options = options;
    const { id, label, min, max, slideTo, step = 1, hint } = options;
    this.id = id;
    this.#error = el('p', { class: 'field-error', id: `${id}-error`, role: 'alert' });
    const describedBy = `${id}-error${hint ? ` ${id}-hint` : ''}`;
    this.#input = el('input', {
      type: 'number',
      id,
      min,
      max,
      step,
      inputmode: 'numeric',
      'data-testid': id,
      'aria-describedby': describedBy,
    });
    if (slideTo !== undefined) {
      const names = { 'aria-label': `${label}, slider`, 'data-testid': `${id}-slider` };
      this.#slider = el('input', { type: 'range', min, max: slideTo, step, ...names });
      this.#slider.addEventListener('input', () => {
        const value = Number(this.#slider?.value);
        this.show(value);
        changed(value);
      });
    }
    this.#input.addEventListener('input', () => {
      const value = this.#checked();
      if (value === undefined) return;
      if (this.#slider) this.#slider.value = String(value);
      changed(value);
    });
    this.root = el(
      'div',
      { class: 'number-field' },
      el('label', { for: id }, label),
      el('div', { class: 'number-inputs' }, this.#slider, this.#input),
      hint ? el('p', { class: 'hint', id: `${id}-hint` }, hint) : null,
      this.#error,
    );
  }

  show(value: number): void {
    if (document.activeElement !== this.#input || Number(this.#input.value) !== value) {
      this.#input.value = String(value);
    }
    if (this.#slider) this.#slider.value = String(value);
    this.fail('');
  }

  /** '' takes the complaint back. */
  fail(message: string): void {
    this.#error.textContent = message;
    if (message === '') this.#input.removeAttribute('aria-invalid');
    else this.#input.setAttribute('aria-invalid', 'true');
  }

  #checked(): number | undefined {
    const { min, max, label } = this.#options;
    const value = this.#input.value.trim() === '' ? Number.NaN : Number(this.#input.value);
    const good = Number.isInteger(value) && value >= min && value <= max;
    const range = `${min.toLocaleString('en-GB')} to ${max.toLocaleString('en-GB')}`;
    this.fail(good ? '' : `${label}: a whole number from ${range}.`);
    return good ? value : undefined;
  }
}
