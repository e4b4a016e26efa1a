// The numbers of an edit: KV heads, widths, cache, which keys stay. Built anew for each model, since the ranges are the model's.
import type { CacheType, LayerInfo } from 'headlight-wasm';
import { el } from '../../shared/dom.js';
import { NumberField } from '../bytes/fields.js';
import { CACHES, type EditState, KEEPS, type Keep, MAX_SINKS } from './edit_state.js';

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

const keepNames: Readonly<Record<Keep, string>> = {
  all: 'all',
  window: 'a window (mask)',
  sinks: 'first and last (StreamingLLM)',
  h2o: 'most attended (H2O)',
  snapkv: 'the prompt’s most attended (SnapKV)',
};

const keepTexts: Readonly<Record<Keep, string>> = {
  all: 'Every key stays, as loaded.',
  window:
    'A mask in the model: a query sees its last keys and the first ones, each at its true distance. Nothing is taken out of the cache’s order.',
  sinks:
    'The session’s own policy: keys between are given up while the text is fed in, and the first ones then count as if they stood just before the window. Slide the first keys down to 0 to take the sink away.',
  h2o: 'The session’s own policy: all along the text, of each layer and KV head the keys with the most attention so far stay, and the last half of the budget.',
  snapkv:
    'The session’s own policy: at the end of a prompt the keys stay that its last queries look at. It shows in facts recalled and in what is written; a dialogue whose loss is measured is one prompt and does not feel it.',
};

/** Which keys stay, and the numbers of that choice. */
function keeping({ nCtx, state, changed }: ControlsOptions): HTMLElement[] {
  const slideTo = Math.min(256, nCtx);
  const most = Math.max(1, nCtx - MAX_SINKS);
  const window = new NumberField(
    { id: 'edit-window', label: 'Last keys', min: 1, max: most, slideTo },
    (value) => changed({ window: value }),
  );
  window.show(state.window);
  const sinks = new NumberField(
    {
      ...{
        id: 'edit-sinks',
        label: 'First keys kept (sinks)',
        min: 0,
        max: MAX_SINKS,
        slideTo: 16,
      },
      hint: '0 takes the sink away.',
    },
    (value) => changed({ sinks: value }),
  );
  sinks.show(state.sinks);
  const budget = new NumberField(
    { id: 'edit-budget', label: 'Keys of each layer and KV head', min: 2, max: most, slideTo },
    (value) => changed({ budget: value }),
  );
  budget.show(state.budget);
  const text = el('p', { class: 'hint', 'data-testid': 'edit-keep-text' });
  const show = (keep: Keep) => {
    const hasSpan = keep === 'window' || keep === 'sinks';
    for (const { root } of [window, sinks]) root.hidden = !hasSpan;
    budget.root.hidden = keep !== 'h2o' && keep !== 'snapkv';
    text.textContent = keepTexts[keep];
  };
  const names = KEEPS.map((keep) => [keep, keepNames[keep]] as const);
  const keep = choice('edit-keep', 'Keys that stay', names, state.keep, (value) => {
    show(value as Keep);
    changed({ keep: value as Keep });
  });
  show(state.keep);
  keep.append(text);
  keep.classList.add('wide');
  return [keep, window.root, sinks.root, budget.root];
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
  const samePairs = el(
    'label',
    { class: 'check' },
    same,
    el('span', {}, 'the same pairs in every layer, which a GGUF file can hold'),
  );
  return el('div', { class: 'field-grid small' }, kv, cache, qk, v, samePairs, ...keeping(options));
}
