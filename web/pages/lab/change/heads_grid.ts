// Every head of the model as a button, a row for each layer: a click goes on from "stays" to "pruned" to "fixed". How dark it is
// says how fixed its pattern is over the calibration text.
import type { LayerInfo } from 'headlight-wasm';
import type { ModelCalibration } from 'headlight-wasm/lab';
import { el } from '../../shared/dom.js';
import { FATES, type HeadFate, headKey } from './edit_state.js';

const SIGNS: Record<HeadFate, string> = { stays: '', pruned: '✕', fixed: '▣' };

export interface HeadsGridOptions {
  layers: readonly LayerInfo[];
  fateOf(key: string): HeadFate;
  calibration: ModelCalibration | undefined;
  changed(key: string, fate: HeadFate): void;
}

/** Least output error that a cheap pattern makes in the head's place. */
function leastError(calibration: ModelCalibration | undefined, layer: number, head: number) {
  const errors = calibration?.layers[layer]?.heads[head]?.outputErrors;
  return errors === undefined ? undefined : Math.min(errors.shift, errors.mean, errors.first);
}

function labelOf(layer: number, head: number, fate: HeadFate, error: number | undefined): string {
  const measured =
    error === undefined ? '' : `; a fixed pattern errs by ${Math.round(100 * error)} %`;
  return `Layer ${layer}, head ${head}: ${fate}${measured}`;
}

/** Numbers above the heads, as those of the layers beside them. */
function columnNames(nHeads: number): HTMLElement {
  const names = Array.from({ length: nHeads }, (_, head) =>
    el('span', { class: 'head-column-name' }, String(head)),
  );
  const corner = el('span', { class: 'head-row-name' });
  return el('div', { class: 'head-row', 'aria-hidden': 'true' }, corner, ...names);
}

export function headsGrid(options: HeadsGridOptions): HTMLElement {
  const { layers, calibration, fateOf, changed } = options;
  // The buttons' names say the same.
  const note = el('p', { class: 'hint head-note', 'aria-hidden': 'true' });
  const rows = layers.map(({ nQHeads }, layer) => {
    const cells = Array.from({ length: nQHeads }, (_, head) => {
      const key = headKey({ layer, head });
      const error = leastError(calibration, layer, head);
      const button = el('button', { type: 'button', class: 'head-cell', 'data-head-cell': key });
      // A head whose pattern errs by 100 % or more is content-based.
      const level = error === undefined ? 0 : Math.max(0, Math.min(4, Math.round(4 * (1 - error))));
      button.dataset.level = String(level);
      const show = (fate: HeadFate) => {
        button.dataset.fate = fate;
        button.textContent = SIGNS[fate];
        button.setAttribute('aria-label', labelOf(layer, head, fate, error));
      };
      show(fateOf(key));
      button.addEventListener('click', () => {
        const next = FATES[(FATES.indexOf(fateOf(key)) + 1) % FATES.length] ?? 'stays';
        changed(key, next);
        show(next);
      });
      for (const event of ['focus', 'pointerenter', 'click'])
        button.addEventListener(event, () => {
          note.textContent = labelOf(layer, head, fateOf(key), error);
        });
      return button;
    });
    return el(
      'div',
      { class: 'head-row', role: 'group', 'aria-label': `Layer ${layer}` },
      el('span', { class: 'head-row-name', 'aria-hidden': 'true' }, String(layer)),
      ...cells,
    );
  });
  const widest = Math.max(0, ...layers.map(({ nQHeads }) => nQHeads));
  const grid = el('div', { class: 'heads-grid' }, columnNames(widest), ...rows);
  note.textContent = 'Layers from top to bottom, heads from left to right.';
  return el('div', {}, grid, note);
}
