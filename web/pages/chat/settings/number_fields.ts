// Number fields of a settings form, made from their descriptions: label, text field, slider where it helps, hint, error.
// What is typed is checked at once; a wrong value is marked and not used.
import { el } from '../../shared/dom.js';
import { type NumberField, type NumberKey, parseNumber } from './schema.js';

export interface FieldValues {
  /** What the user set; undefined: the default. */
  value: number | undefined;
  /** What holds then; undefined where the field's `whenEmpty` says it. */
  fallback: number | undefined;
}

export interface FieldHandle {
  show(values: FieldValues): void;
}

/** @param onChange gets only values that are allowed */
export function numberField(
  field: NumberField,
  onChange: (key: NumberKey, value: number | undefined) => void,
): { element: HTMLElement; handle: FieldHandle } {
  const id = `field-${field.key}`;
  const input = el('input', {
    ...{ id, type: 'text', inputmode: field.integer ? 'numeric' : 'decimal', autocomplete: 'off' },
    ...{ 'aria-describedby': `${id}-hint ${id}-error`, 'data-testid': id },
  });
  const error = el('p', { class: 'field-error', id: `${id}-error`, role: 'alert' });
  const slider = makeSlider(field);
  const accept = (value: number | undefined) => {
    error.textContent = '';
    input.removeAttribute('aria-invalid');
    onChange(field.key, value);
  };
  input.addEventListener('input', () => {
    const parsed = parseNumber(field, input.value);
    if (parsed.ok) {
      if (parsed.value !== undefined && slider) slider.value = String(parsed.value);
      accept(parsed.value);
    } else {
      error.textContent = parsed.message;
      input.setAttribute('aria-invalid', 'true');
    }
  });
  slider?.addEventListener('input', () => {
    input.value = slider.value;
    accept(Number(slider.value));
  });
  const element = el(
    'div',
    { class: slider ? 'field has-slider' : 'field' },
    el('label', { for: id }, field.label),
    el('div', { class: 'field-inputs' }, slider, input),
    el('p', { class: 'hint', id: `${id}-hint` }, field.hint),
    error,
  );
  const show = ({ value, fallback }: FieldValues) => {
    input.value = value === undefined ? '' : String(value);
    input.placeholder = fallback === undefined ? (field.whenEmpty ?? '') : String(fallback);
    if (slider) slider.value = String(value ?? fallback ?? field.min);
    error.textContent = '';
    input.removeAttribute('aria-invalid');
  };
  return { element, handle: { show } };
}

function makeSlider({ sliderStep, label, min, max, openMin, openMax }: NumberField) {
  if (sliderStep === undefined) return undefined;
  const range = {
    min: openMin ? min + sliderStep : min,
    max: openMax ? max - sliderStep : max,
  };
  return el('input', {
    type: 'range',
    ...range,
    step: sliderStep,
    'aria-label': `${label}, slider`,
  });
}
