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
  unit: Unit;
}

/** The second article's node: eight times 80, weights of 140, conversations of 8,192 tokens. */
export const articleInputs: Inputs = {
  memory: 640,
  weights: 140,
  workspace: 0,
  tokens: 8192,
  unit: 'GiB',
};

export interface ConcurrencyRow {
  label: string;
  perConversation: number;
  n: number;
  printed?: string;
}

const printedCounts: Record<string, string> = {
  'MHA (hypothetical)': 'about 25',
  'GQA (as it is)': 'about 200',
};

export function concurrencyRows(inputs: Inputs, own: LayoutCost | undefined): ConcurrencyRow[] {
  const { memory, weights, workspace, tokens, unit } = inputs;
  const isArticle = JSON.stringify(inputs) === JSON.stringify(articleInputs);
  const row = (label: string, kvBytesPerToken: number): ConcurrencyRow => {
    const { perConversation, n } = concurrency({
      memoryBytes: memory * unitBytes[unit],
      weightsBytes: weights * unitBytes[unit],
      workspaceBytes: workspace * unitBytes[unit],
      kvBytesPerToken,
      nTokens: tokens,
    });
    const printed = isArticle ? printedCounts[label] : undefined;
    return { label, perConversation, n, ...(printed === undefined ? {} : { printed }) };
  };
  const rows = layoutPreset('llama70b').rows.map(({ label, shape }) =>
    row(label, layoutCost(shape).kvBytesPerToken),
  );
  if (own) rows.push(row('The calculator’s layout', own.kvBytesPerToken));
  return rows;
}

export class ConcurrencyView {
  #state: UrlState;
  #own: LayoutCost | undefined;
  #fields: Record<'memory' | 'weights' | 'workspace' | 'tokens', NumberField>;
  #unit = byId('conc-unit', HTMLSelectElement);

  constructor(state: UrlState, failed: (message: string) => void) {
    this.#state = state;
    const field = (name: keyof typeof articleInputs & string, label: string, max: number) =>
      new NumberField(
        { id: `conc-${name}`, label, min: name === 'tokens' ? 1 : 0, max },
        (value) => {
          this.#state.set(name, value === articleInputs[name as 'memory'] ? undefined : value);
          this.#show();
        },
      );
    this.#fields = {
      memory: field('memory', 'Memory', 1_000_000),
      weights: field('weights', 'Weights', 1_000_000),
      workspace: field('workspace', 'Workspace', 1_000_000),
      tokens: field('tokens', 'Tokens of a conversation', 10_000_000),
    };
    byId('conc-fields', HTMLElement).prepend(
      ...Object.values(this.#fields).map(({ root }) => root),
    );
    this.#unit.addEventListener('change', () => {
      this.#state.set('unit', this.#unit.value === 'GiB' ? undefined : this.#unit.value);
      this.#show();
    });
    byId('conc-export', HTMLElement).append(exportBar('the counts', () => this.#data(), failed));
    this.#show();
  }

  showOwn(cost: LayoutCost): void {
    this.#own = cost;
    this.#show();
  }

  #inputs(): Inputs {
    const whole = (name: 'memory' | 'weights' | 'workspace' | 'tokens', min: number) =>
      Math.round(this.#state.number(name, min, 1e7) ?? articleInputs[name]);
    return {
      memory: whole('memory', 0),
      weights: whole('weights', 0),
      workspace: whole('workspace', 0),
      tokens: whole('tokens', 1),
      unit: this.#state.oneOf<Unit>('unit', ['GiB', 'GB']) ?? 'GiB',
    };
  }

  #show(): void {
    const inputs = this.#inputs();
    for (const [name, field] of Object.entries(this.#fields)) {
      field.show(inputs[name as 'memory']);
    }
    this.#unit.value = inputs.unit;
    const rows = concurrencyRows(inputs, this.#own);
    const most = Math.max(1, ...rows.map(({ n }) => n));
    byId('conc-list', HTMLElement).replaceChildren(
      ...rows.map(({ label, perConversation, n, printed }) =>
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
      columns: ['layout', 'bytesPerConversation', 'conversations'],
      rows: concurrencyRows(this.#inputs(), this.#own).map(({ label, perConversation, n }) => [
        label,
        perConversation,
        n,
      ]),
    };
  }
}
