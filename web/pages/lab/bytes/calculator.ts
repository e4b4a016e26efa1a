// The calculator: a layout's numbers in fields, what they cost beside them, what this machine makes of it.
import { BadOptionError, measureLimits, type SpeedLimits } from 'headlight-wasm';
import {
  CACHE_TYPES,
  expectedRates,
  type LayoutCacheType,
  type LayoutCost,
  layoutCost,
  type ModelShape,
  WEIGHT_BYTES,
  type WeightType,
} from 'headlight-wasm/lab';
import { byId, el } from '../../shared/dom.js';
import { messageOf } from '../../shared/errors.js';
import { formatRate } from '../../shared/format.js';
import { drawToWidth } from '../../shared/svg.js';
import { exportBar, type FigureData } from '../figure.js';
import type { UrlState } from '../url_state.js';
import { NumberField, type NumberFieldOptions } from './fields.js';
import { itemChart } from './item_chart.js';
import { keyNotes } from './notes.js';
import { binaryBytes, largeNumber, megabytes } from './units.js';

type ShapeField =
  | 'nLayers'
  | 'dModel'
  | 'nQHeads'
  | 'nKvHeads'
  | 'dQk'
  | 'dV'
  | 'dFf'
  | 'vocabSize';

/** In the address a field has its id without the "shape-". */
const fieldOptions: Record<ShapeField, NumberFieldOptions> = {
  nQHeads: { id: 'shape-H', label: 'Query heads', min: 1, max: 1024, slideTo: 64 },
  nKvHeads: {
    id: 'shape-G',
    label: 'KV heads',
    min: 1,
    max: 1024,
    slideTo: 64,
    hint: 'a divisor of the query heads',
  },
  dQk: {
    id: 'shape-qk',
    label: 'd_qk: width of queries and keys',
    min: 1,
    max: 8192,
    slideTo: 128,
  },
  dV: { id: 'shape-v', label: 'd_v: width of values', min: 1, max: 8192, slideTo: 128 },
  nLayers: { id: 'shape-L', label: 'Layers', min: 1, max: 10_000 },
  dModel: { id: 'shape-D', label: 'd_model', min: 1, max: 1_000_000 },
  dFf: { id: 'shape-F', label: 'd_ff', min: 0, max: 1_000_000 },
  vocabSize: { id: 'shape-V', label: 'Vocabulary', min: 0, max: 10_000_000 },
};
const shapeFields = Object.keys(fieldOptions) as ShapeField[];
const maxCtx = 10_000_000;

function stateKey(field: ShapeField): string {
  return fieldOptions[field].id.slice('shape-'.length);
}

export interface CalculatorActions {
  /** The layout or its cost changed. */
  changed(cost: LayoutCost, shape: ModelShape, base: ModelShape): void;
  failed(message: string): void;
}

export class Calculator {
  #state: UrlState;
  #actions: CalculatorActions;
  #fields = new Map<ShapeField, NumberField>();
  #nCtx: NumberField;
  #weights = byId('shape-w', HTMLSelectElement);
  #cache = byId('shape-c', HTMLSelectElement);
  #base: ModelShape | undefined;
  #baseWeights: WeightType = 'f16';
  #cost: LayoutCost | undefined;
  #limits: SpeedLimits | undefined;
  #redraw: () => void;

  constructor(state: UrlState, actions: CalculatorActions) {
    this.#state = state;
    this.#actions = actions;
    this.#redraw = drawToWidth(byId('item-chart', HTMLElement), (width) =>
      this.#cost ? itemChart(this.#cost, width) : el('span'),
    );
    for (const field of shapeFields) this.#addField(field);
    this.#nCtx = new NumberField(
      { id: 'shape-n', label: 'Tokens in the cache', min: 1, max: maxCtx },
      (value) => this.#set('n', value === 8192 ? undefined : value),
    );
    byId('shape-more', HTMLElement).append(this.#nCtx.root);
    this.#fillSelects();
    byId('measure-device', HTMLButtonElement).addEventListener('click', () => void this.#measure());
    byId('shape-reset', HTMLButtonElement).addEventListener('click', () => this.reset());
    byId('item-export', HTMLElement).append(
      exportBar('the parameters', () => this.#itemData(), actions.failed),
    );
  }

  /** What the fields change. With `keep` the changes in the address stay. */
  setBase(shape: ModelShape, weights: WeightType, keep: boolean): void {
    this.#base = shape;
    this.#baseWeights = weights;
    if (keep) this.#update();
    else this.reset();
  }

  /** Back to the row that was chosen. */
  reset(): void {
    for (const field of shapeFields) this.#state.set(stateKey(field), undefined);
    for (const name of ['w', 'c', 'n']) this.#state.set(name, undefined);
    this.#update();
  }

  #addField(field: ShapeField): void {
    const slides = fieldOptions[field].slideTo !== undefined;
    const numberField = new NumberField(fieldOptions[field], (value) =>
      this.#set(stateKey(field), value === this.#base?.[field] ? undefined : value),
    );
    this.#fields.set(field, numberField);
    byId(slides ? 'shape-heads' : 'shape-more', HTMLElement).append(numberField.root);
  }

  #fillSelects(): void {
    for (const name of Object.keys(WEIGHT_BYTES)) this.#weights.add(new Option(name, name));
    for (const name of CACHE_TYPES) this.#cache.add(new Option(name, name));
    this.#weights.addEventListener('change', () => {
      const { value } = this.#weights;
      this.#set('w', value === this.#baseWeights ? undefined : value);
    });
    this.#cache.addEventListener('change', () => {
      const { value } = this.#cache;
      this.#set('c', value === 'f16' ? undefined : value);
    });
  }

  #set(name: string, value: string | number | undefined): void {
    this.#state.set(name, value);
    this.#update();
  }

  #shape(base: ModelShape): ModelShape {
    const changes = shapeFields.flatMap((field) => {
      const { min, max } = fieldOptions[field];
      const value = this.#state.number(stateKey(field), min, max);
      return value === undefined || !Number.isInteger(value) ? [] : [[field, value] as const];
    });
    return { ...base, ...Object.fromEntries(changes) };
  }

  #update(): void {
    if (this.#base === undefined) return;
    const shape = this.#shape(this.#base);
    const weights =
      this.#state.oneOf('w', Object.keys(WEIGHT_BYTES) as WeightType[]) ?? this.#baseWeights;
    const cache = this.#state.oneOf<LayoutCacheType>('c', CACHE_TYPES) ?? 'f16';
    const nCtx = Math.round(this.#state.number('n', 1, maxCtx) ?? 8192);
    for (const [field, numberField] of this.#fields) numberField.show(shape[field]);
    this.#nCtx.show(nCtx);
    this.#weights.value = weights;
    this.#cache.value = cache;
    try {
      this.#cost = layoutCost(shape, { weights, cacheK: cache, cacheV: cache, nCtx });
    } catch (error) {
      if (!(error instanceof BadOptionError)) throw error;
      // Only one thing is left that fields by themselves cannot see: heads that do not divide.
      this.#fields.get('nKvHeads')?.fail(`KV heads must divide the ${shape.nQHeads} query heads.`);
      return;
    }
    this.#show(this.#cost, shape, weights, cache);
    this.#actions.changed(this.#cost, shape, this.#base);
  }

  #show(cost: LayoutCost, shape: ModelShape, weights: WeightType, cache: LayoutCacheType): void {
    const text = (id: string, value: string) => {
      byId(id, HTMLElement).textContent = value;
    };
    text('cost-parameters', largeNumber(cost.parameters));
    text('cost-file', megabytes(cost.fileBytes));
    text('cost-file-note', `weights as ${weights}`);
    text('cost-kv-token', binaryBytes(cost.kvBytesPerToken));
    text(
      'cost-kv-token-note',
      `${cache}: keys ${binaryBytes(cost.kvKeyBytesPerToken)}, values ${binaryBytes(cost.kvValueBytesPerToken)}`,
    );
    text('cost-kv', binaryBytes(cost.kvBytes));
    text(
      'cost-kv-note',
      `${cost.nCtx.toLocaleString('en-GB')} tokens, read whole for every new one`,
    );
    text('cost-flops', largeNumber(cost.flopsPerToken));
    text('cost-flops-note', `of them ${largeNumber(cost.attentionFlopsPerToken)} in attention`);
    text('cost-moved', megabytes(cost.bytesMovedPerToken));
    byId('key-notes', HTMLElement).replaceChildren(
      ...keyNotes(shape, cost).map((note) => el('li', {}, note)),
    );
    this.#showRates(cost);
    this.#redraw();
  }

  #showRates(cost: LayoutCost): void {
    if (!this.#limits) return;
    const { decode, prefill } = expectedRates(cost, this.#limits);
    const { readGBs, dotGops } = this.#limits;
    byId('cost-rates', HTMLElement).textContent =
      `at most ${formatRate(decode)} tokens/s written (reads ${readGBs.toFixed(1)} GB/s) and ` +
      `${formatRate(prefill)} tokens/s of prompt read (dots ${dotGops.toFixed(0)} Gop/s)`;
  }

  async #measure(): Promise<void> {
    const button = byId('measure-device', HTMLButtonElement);
    const rates = byId('cost-rates', HTMLElement);
    button.disabled = true;
    rates.textContent = 'Measuring for a second …';
    try {
      this.#limits = await measureLimits({ budgetMs: 900 });
      if (this.#cost) this.#showRates(this.#cost);
    } catch (error) {
      rates.textContent = '';
      this.#actions.failed(messageOf(error));
    } finally {
      button.disabled = false;
    }
  }

  #itemData(): FigureData {
    const cost = this.#cost;
    return {
      name: 'parameters',
      columns: ['weights', 'formula', 'parameters', 'usedPerToken'],
      rows: (cost?.items ?? []).map(({ name, formula, parameters, isUsedPerToken }) => [
        name,
        formula,
        parameters,
        String(isUsedPerToken),
      ]),
      ...(cost ? { picture: (width: number) => itemChart(cost, width) } : {}),
    };
  }
}
