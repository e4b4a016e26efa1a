// The table of an attention branch's tensors, for the calculator's layout.
import type { ModelShape } from 'headlight-wasm/lab';
import { byId, el } from '../../shared/dom.js';
import { exportBar, type FigureData } from '../figure.js';
import type { UrlState } from '../url_state.js';
import { NumberField } from './fields.js';
import { articleTokens, branchSentences, type TensorRow, tensorRows } from './tensors.js';
import { binaryBytes } from './units.js';

const maxTokens = 1_000_000;

export class TensorView {
  #state: UrlState;
  #tokens: NumberField;
  #shape: ModelShape | undefined;

  /** @param showArticle chooses the article's layout */
  constructor(state: UrlState, actions: { showArticle(): void; failed(message: string): void }) {
    this.#state = state;
    this.#tokens = new NumberField(
      { id: 'tensor-tokens', label: 'Tokens of the prompt', min: 1, max: maxTokens },
      (value) => {
        this.#state.set('prompt', value === articleTokens ? undefined : value);
        this.#show();
      },
    );
    byId('tensor-fields', HTMLElement).append(this.#tokens.root);
    byId('tensor-article', HTMLButtonElement).addEventListener('click', () => {
      this.#state.set('prompt', undefined);
      actions.showArticle();
    });
    byId('tensor-export', HTMLElement).append(
      exportBar('the tensors', () => this.#data(), actions.failed),
    );
  }

  show(shape: ModelShape): void {
    this.#shape = shape;
    this.#show();
  }

  #rows(): TensorRow[] {
    const nTokens = Math.round(this.#state.number('prompt', 1, maxTokens) ?? articleTokens);
    this.#tokens.show(nTokens);
    return this.#shape ? tensorRows(this.#shape, nTokens) : [];
  }

  #show(): void {
    if (!this.#shape) return;
    const titles = ['Tensor', 'Shape', 'Bytes', 'What it is'];
    const head = el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)));
    const body = this.#rows().map(({ name, shape, bytes, note, printed }) =>
      el(
        'tr',
        { 'data-tensor': name },
        el('th', { scope: 'row' }, name),
        el('td', {}, shape.join(' × ')),
        el(
          'td',
          {},
          el('span', { class: 'exact' }, binaryBytes(bytes)),
          printed ? el('small', {}, `printed ${printed}`) : null,
        ),
        el('td', {}, note),
      ),
    );
    byId('tensor-table', HTMLTableElement).replaceChildren(
      el('thead', {}, head),
      el('tbody', {}, ...body),
    );
    byId('tensor-notes', HTMLElement).replaceChildren(
      ...branchSentences(this.#shape).map((sentence) => el('li', {}, sentence)),
    );
  }

  #data(): FigureData {
    return {
      name: 'tensors',
      columns: ['tensor', 'shape', 'bytes', 'note'],
      rows: this.#rows().map(({ name, shape, bytes, note }) => [
        name,
        shape.join(' x '),
        bytes,
        note,
      ]),
    };
  }
}
