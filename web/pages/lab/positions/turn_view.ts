// One pair of elements turned by hand: the third article's check that only the distance counts.
import { byId, el } from '../../shared/dom.js';
import { exportBar, type FigureData } from '../figure.js';
import { shown } from '../hand/arithmetic.js';
import { MatrixInput } from '../hand/matrix_view.js';
import { type Kernels, Latest } from '../kernels.js';
import type { UrlState } from '../url_state.js';
import { type PairRow, turnedPair } from './compute.js';

export const articlePlaces: readonly (readonly [number, number])[] = [
  [5, 3],
  [10, 8],
  [2, 0],
];
export const articleTheta = 0.5;
const largestPlace = 100_000;

export class TurnView {
  #state: UrlState;
  #kernels: Kernels;
  #latest: Latest;
  #places: MatrixInput;
  #theta: MatrixInput;
  #rows: PairRow[] = [];
  /** As the page has it. */
  #articleText = byId('pos-turn-text', HTMLElement).textContent;

  constructor(state: UrlState, kernels: Kernels, failed: (message: string) => void) {
    [this.#state, this.#kernels, this.#latest] = [state, kernels, new Latest(failed)];
    this.#places = new MatrixInput(
      {
        ...{ name: 'Positions', rows: ['1', '2', '3'], columns: ['query', 'key'] },
        ...{ values: articlePlaces, testid: 'pos-turn-places' },
      },
      (values) => {
        const text = values.flat().join(',');
        this.#state.set('posturn', text === articlePlaces.flat().join(',') ? undefined : text);
        void this.update();
      },
    );
    this.#theta = new MatrixInput(
      { name: 'θ', values: [[articleTheta]], testid: 'pos-turn-theta' },
      ([[theta = articleTheta] = []]) => {
        this.#state.set('postheta', theta === articleTheta ? undefined : theta);
        void this.update();
      },
    );
    byId('pos-turn-inputs', HTMLElement).append(this.#places.root, this.#theta.root);
    byId('pos-turns-export', HTMLElement).append(
      exportBar('the turned pair', () => this.#data(), failed),
    );
  }

  async update(): Promise<void> {
    const given = this.#state.numbers('posturn', 6);
    const places = given
      ? [0, 1, 2].map((i) => [given[2 * i] ?? 0, given[2 * i + 1] ?? 0] as const)
      : articlePlaces;
    const theta = this.#state.number('postheta', 1e-6, 1e3) ?? articleTheta;
    this.#places.show(places);
    this.#theta.show([[theta]]);
    const good = places
      .flat()
      .every((pos) => Number.isInteger(pos) && pos >= 0 && pos <= largestPlace);
    const text = byId('pos-turn-text', HTMLElement);
    if (!good) {
      text.textContent = `Positions are whole numbers from 0 to ${largestPlace.toLocaleString('en-GB')}.`;
      return;
    }
    await this.#latest.run(
      async () => turnedPair(await this.#kernels.lab(), places, theta),
      (rows) => {
        text.textContent = this.#articleText;
        this.#show(rows, theta);
      },
    );
  }

  #show(rows: PairRow[], theta: number): void {
    this.#rows = rows;
    const vector = (values: readonly number[]) => `(${values.map((x) => shown(x)).join(', ')})`;
    const titles = ['Distance', 'q turned', 'k turned', 'q·k', 'cos(distance × θ)'];
    const body = rows.map(({ m, n, q, k, dot }, i) =>
      el(
        'tr',
        { 'data-turn': i },
        el('th', { scope: 'row' }, `${m} − ${n} = ${shown(m - n)}`),
        ...[vector(q), vector(k), shown(dot, 6), shown(Math.cos((m - n) * theta), 6)].map((cell) =>
          el('td', {}, cell),
        ),
      ),
    );
    byId('pos-turns', HTMLTableElement).replaceChildren(
      el('thead', {}, el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)))),
      el('tbody', {}, ...body),
    );
  }

  #data(): FigureData {
    return {
      name: 'positions-pair',
      columns: ['query', 'key', 'q0', 'q1', 'k0', 'k1', 'dot'],
      rows: this.#rows.map(({ m, n, q, k, dot }) => [m, n, ...q, ...k, dot]),
    };
  }
}
