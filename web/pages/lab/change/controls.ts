// The numbers of an edit: KV heads, widths, window, cache. Built anew for each model, since the ranges are the model's.
import type { CacheType, LayerInfo } from 'headlight-wasm';
import { el } from '../../shared/dom.js';
import { NumberField } from '../bytes/fields.js';
import { CACHES, type EditState } from './edit_state.js';

export interface ControlsOptions {
  layers: readonly LayerInfo[];
  nCtx: number;
  state: EditState;
  changed(change: Partial<EditState>): void;
}

function divisors(n: number): number[] {
  return Array.from({ length: n }, (_, i) => n - i).filter((d) => n % d === 0);
}

function choice(
  id: string,
  label: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string,
  changed: (value: string) => void,
): HTMLElement {
  const select = el('select', { id, 'data-testid': id });
  for (const [value, text] of options) select.add(new Option(text, value, false, value === chosen));
  select.addEventListener('change', () => changed(select.value));
  return el('div', { class: 'number-field' }, el('label', { for: id }, label), select);
}

function widths({ layers, state, changed }: ControlsOptions, first: LayerInfo): HTMLElement[] {
  const least = (name: 'dQk' | 'dV') => Math.min(...layers.map((layer) => layer[name]));
  const [dQk, dV] = [least('dQk'), least('dV')];
  const qk = new NumberField(
    {
      ...{
        id: 'edit-qk',
        label: 'Width of queries and keys',
        min: 2,
        max: dQk,
        slideTo: dQk,
        step: 2,
      },
      hint: `${first.dQk} as loaded; rotary pairs go in the order of their share in the scores`,
    },
    (value) => changed({ dQk: value === first.dQk ? 0 : value - (value % 2) }),
  );
  qk.show(state.dQk || first.dQk);
  const v = new NumberField(
    {
      ...{ id: 'edit-v', label: 'Width of values', min: 1, max: dV, slideTo: dV },
      hint: `${first.dV} as loaded; the least singular values of W_o W_v go first`,
    },
    (value) => changed({ dV: value === first.dV ? 0 : value }),
  );
  v.show(state.dV || first.dV);
  return [qk.root, v.root];
}

function windows({ nCtx, state, changed }: ControlsOptions): HTMLElement[] {
  const slideTo = Math.min(256, nCtx);
  const window = new NumberField(
    {
      ...{ id: 'edit-window', label: 'Window, keys', min: 0, max: nCtx, slideTo },
      hint: '0: every key. A query sees so many last keys.',
    },
    (value) => changed({ window: value }),
  );
  window.show(state.window);
  const sinks = new NumberField(
    {
      ...{ id: 'edit-sinks', label: 'First keys kept', min: 0, max: nCtx, slideTo: 16 },
      hint: 'The sinks of StreamingLLM; 0 takes them away.',
    },
    (value) => changed({ sinks: value }),
  );
  sinks.show(state.sinks);
  return [window.root, sinks.root];
}

export function editControls(options: ControlsOptions): HTMLElement {
  const { layers, state, changed } = options;
  const [first] = layers;
  if (first === undefined) return el('div', {});
  const kvNames = divisors(first.nKvHeads).map((n) => {
    const text = n === first.nKvHeads ? `${n}, as loaded` : `${n}, mean-pooled`;
    return [String(n), text] as const;
  });
  const kv = choice(
    'edit-kv',
    'KV heads',
    kvNames,
    String(state.kvHeads || first.nKvHeads),
    (value) => changed({ kvHeads: Number(value) === first.nKvHeads ? 0 : Number(value) }),
  );
  const caches = CACHES.map((type) => [type, type] as const);
  const cache = choice('edit-cache', 'Cache', caches, state.cache, (value) =>
    changed({ cache: value as CacheType }),
  );
  const same = el('input', { type: 'checkbox', id: 'edit-same', 'data-testid': 'edit-same' });
  same.checked = state.samePairs;
  same.addEventListener('change', () => changed({ samePairs: same.checked }));
  const [qk, v] = widths(options, first);
  const [window, sinks] = windows(options);
  const samePairs = el(
    'label',
    { class: 'check' },
    same,
    el('span', {}, 'the same pairs in every layer, which a GGUF file can hold'),
  );
  return el('div', { class: 'field-grid small' }, kv, cache, qk, v, window, sinks, samePairs);
}
