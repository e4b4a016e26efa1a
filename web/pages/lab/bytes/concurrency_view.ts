// How many conversations fit: the memory that weights and workspace leave, divided by one conversation's cache.
import { concurrency, type LayoutCost, layoutCost, layoutPreset } from 'headlight-wasm/lab';
import { byId, el } from '../../shared/dom.js';
import { exportBar, type FigureData } from '../figure.js';
import type { UrlState } from '../url_state.js';
import { NumberField } from './fields.js';
import { binaryBytes } from './units.js';

type Unit = 'GiB' | 'GB';
const unitBytes: Record<Unit, number> = { GiB: 2 ** 30, GB: 1e9 };

interface Inputs {
  memory: number;
  weights: number;
  workspace: number;
  tokens: number;
  /** Conversations of a batch. */
  batch: number;
  /** That share the heads of every layer (tensor parallelism). */
  gpus: number;
  unit: Unit;
}

/** The second article's node: eight times 80, weights of 140, conversations of 8,192 tokens. */
export const articleInputs: Inputs = {
  memory: 640,
  weights: 140,
  workspace: 0,
  tokens: 8192,
  batch: 16,
  gpus: 1,
  unit: 'GiB',
};

export interface ConcurrencyRow {
  label: string;
  perConversation: number;
  /** Of `batch` conversations. */
  batchBytes: number;
  /** Each KV head is held so many times: more than once where there are more GPUs than heads. */
  copies: number;
  n: number;
  printed?: string;
}

const printedCounts: Record<string, string> = {
  'MHA (hypothetical)': 'about 25',
  'GQA (as it is)': 'about 200',
};

export interface OwnLayout {
  cost: LayoutCost;
  nKvHeads: number;
}

export function concurrencyRows(inputs: Inputs, own: OwnLayout | undefined): ConcurrencyRow[] {
  const { memory, weights, workspace, tokens, unit, batch, gpus } = inputs;
  const isArticle = JSON.stringify(inputs) === JSON.stringify(articleInputs);
  const row = (label: string, cost: LayoutCost, nKvHeads: number): ConcurrencyRow => {
    const copies = Math.max(1, gpus / nKvHeads);
    const { perConversation, n } = concurrency({
      memoryBytes: memory * unitBytes[unit],
      weightsBytes: weights * unitBytes[unit],
      workspaceBytes: workspace * unitBytes[unit],
      kvBytesPerToken: copies * cost.kvBytesPerToken,
      nTokens: tokens,
    });
    const printed = isArticle ? printedCounts[label] : undefined;
    return {
      ...{ label, perConversation, batchBytes: batch * perConversation, copies, n },
      ...(printed === undefined ? {} : { printed }),
    };
  };
  const rows = layoutPreset('llama70b').rows.map(({ label, shape }) =>
    row(label, layoutCost(shape), shape.nKvHeads),
  );
  if (own) rows.push(row('The calculator’s layout', own.cost, own.nKvHeads));
  return rows;
}

const whole = ['memory', 'weights', 'workspace', 'tokens', 'batch', 'gpus'] as const;
type FieldName = (typeof whole)[number];
const ranges: Record<FieldName, { label: string; min: number; max: number }> = {
  memory: { label: 'Memory', min: 0, max: 1_000_000 },
  weights: { label: 'Weights', min: 0, max: 1_000_000 },
  workspace: { label: 'Workspace', min: 0, max: 1_000_000 },
  tokens: { label: 'Tokens of a conversation', min: 1, max: 10_000_000 },
  batch: { label: 'Conversations of a batch', min: 1, max: 100_000 },
  gpus: { label: 'GPUs that share the heads', min: 1, max: 1024 },
};

export class ConcurrencyView {
  #state: UrlState;
  #own: OwnLayout | undefined;
  #fields: readonly (readonly [FieldName, NumberField])[];
  #unit = byId('conc-unit', HTMLSelectElement);

  constructor(state: UrlState, failed: (message: string) => void) {
    this.#state = state;
    this.#fields = whole.map((name) => {
      const field = new NumberField({ id: `conc-${name}`, ...ranges[name] }, (value) => {
        this.#state.set(name, value === articleInputs[name] ? undefined : value);
        this.#show();
      });
      return [name, field] as const;
    });
    byId('conc-fields', HTMLElement).prepend(...this.#fields.map(([, { root }]) => root));
    this.#unit.addEventListener('change', () => {
      this.#state.set('unit', this.#unit.value === 'GiB' ? undefined : this.#unit.value);
      this.#show();
    });
    byId('conc-export', HTMLElement).append(exportBar('the counts', () => this.#data(), failed));
    this.#show();
  }

  showOwn(cost: LayoutCost, nKvHeads: number): void {
    this.#own = { cost, nKvHeads };
    this.#show();
  }

  #inputs(): Inputs {
    const read = (name: FieldName) =>
      Math.round(
        this.#state.number(name, ranges[name].min, ranges[name].max) ?? articleInputs[name],
      );
    return {
      ...{ memory: read('memory'), weights: read('weights'), workspace: read('workspace') },
      ...{ tokens: read('tokens'), batch: read('batch'), gpus: read('gpus') },
      unit: this.#state.oneOf<Unit>('unit', ['GiB', 'GB']) ?? 'GiB',
    };
  }

  #show(): void {
    const inputs = this.#inputs();
    for (const [name, field] of this.#fields) field.show(inputs[name]);
    this.#unit.value = inputs.unit;
    const rows = concurrencyRows(inputs, this.#own);
    const most = Math.max(1, ...rows.map(({ n }) => n));
    byId('conc-list', HTMLElement).replaceChildren(
      ...rows.map(({ label, perConversation, batchBytes, copies, n, printed }) =>
        el(
          'li',
          { 'data-conc': label },
          el('span', { class: 'conc-label' }, label),
          el('span', { class: 'conc-each' }, `${binaryBytes(perConversation)} each`),
          el('strong', { class: 'conc-n' }, n.toLocaleString('en-GB')),
          el('meter', {
            min: 0,
            max: most,
            value: n,
            'aria-label': `${label}: ${n} conversations`,
          }),
          el('small', { class: 'conc-batch' }, batchText(inputs, batchBytes, copies)),
          printed ? el('small', {}, `printed: ${printed}`) : null,
        ),
      ),
    );
    const free = Math.max(0, inputs.memory - inputs.weights - inputs.workspace);
    byId('conc-free', HTMLElement).textContent =
      `${inputs.memory} − ${inputs.weights} − ${inputs.workspace} = ${free} ${inputs.unit} are left for caches.`;
  }

  #data(): FigureData {
    return {
      name: 'concurrency',
      columns: ['layout', 'bytesPerConversation', 'batchBytes', 'copiesOfAHead', 'conversations'],
      rows: concurrencyRows(this.#inputs(), this.#own).map(
        ({ label, perConversation, batchBytes, copies, n }) => [
          ...[label, perConversation, batchBytes, copies, n],
        ],
      ),
    };
  }
}

function batchText({ batch, gpus }: Inputs, bytes: number, copies: number): string {
  const text = `${batch.toLocaleString('en-GB')} of them: ${binaryBytes(bytes)}`;
  if (copies === 1) return text;
  return `${text}; ${gpus} GPUs hold each KV head ${Number(copies.toFixed(2))} times`;
}
