// "Two heads": the second article's toy. The same query and keys, read as one wide head or as several narrow ones: a head is a
// slice, and each slice has a softmax of its own.
import { byId, el } from '../../shared/dom.js';
import { drawToWidth } from '../../shared/svg.js';
import { exportBar, type FigureData } from '../figure.js';
import { type Kernels, Latest } from '../kernels.js';
import type { UrlState } from '../url_state.js';
import { brief, dot, dotText, type Matrix, rowsOf, shown } from './arithmetic.js';
import { type Series, weightBars } from './bars.js';
import { MatrixInput } from './matrix_view.js';

export const headsArticle = [
  [2, 1, 0, 1, 1, 2, 1, 0],
  [2, 1, 0, 1, 1, 0, 0, 1],
  [0, 1, 1, 0, 0, 2, 1, 0],
] as const;
const width = 8;
const rowNames = ['q', 'k(quad)', 'k(equation)'] as const;
const keyNames = ['quad', 'equation'] as const;
const counts = ['1', '2', '4', '8'] as const;

export interface Slice {
  /** Half-open. */
  start: number;
  end: number;
  scores: number[];
  texts: string[];
}

export function slices(rows: Matrix, nHeads: number): Slice[] {
  const d = width / nHeads;
  const [q = [], ...keys] = rows;
  return Array.from({ length: nHeads }, (_, head) => {
    const [start, end] = [head * d, (head + 1) * d];
    const part = (row: readonly number[]) => row.slice(start, end);
    return {
      start,
      end,
      scores: keys.map((key) => dot(part(q), part(key))),
      texts: keys.map((key) => dotText(part(q), part(key))),
    };
  });
}

export class TwoHeads {
  #state: UrlState;
  #kernels: Kernels;
  #latest: Latest;
  #input: MatrixInput;
  #select = byId('heads-n', HTMLSelectElement);
  #rows: Matrix = headsArticle;
  #nHeads = 2;
  /** [nHeads, 2] */
  #weights: number[][] = [];
  #redraw: () => void;

  constructor(state: UrlState, kernels: Kernels, failed: (message: string) => void) {
    this.#state = state;
    this.#kernels = kernels;
    this.#latest = new Latest(failed);
    const columns = Array.from({ length: width }, (_, i) => String(i));
    this.#input = new MatrixInput(
      {
        name: 'Eight numbers each',
        rows: rowNames,
        columns,
        values: headsArticle,
        testid: 'heads',
      },
      (values) => {
        const text = values.flat().join(',');
        this.#state.set('heads', text === headsArticle.flat().join(',') ? undefined : text);
        void this.update();
      },
    );
    byId('heads-input', HTMLElement).append(this.#input.root);
    this.#select.addEventListener('change', () => {
      this.#state.set('nheads', this.#select.value === '2' ? undefined : this.#select.value);
      void this.update();
    });
    byId('heads-reset', HTMLButtonElement).addEventListener('click', () => {
      this.#state.set('heads', undefined);
      this.#state.set('nheads', undefined);
      void this.update();
    });
    this.#redraw = drawToWidth(byId('heads-chart', HTMLElement), (wide) =>
      weightBars(keyNames, this.#series(), wide, { isNamed: true }),
    );
    byId('heads-export', HTMLElement).append(exportBar('the heads', () => this.#data(), failed));
  }

  async update(): Promise<void> {
    const values = this.#state.numbers('heads', 3 * width);
    this.#rows = values
      ? [0, 1, 2].map((i) => values.slice(i * width, (i + 1) * width))
      : headsArticle;
    this.#nHeads = Number(this.#state.oneOf('nheads', counts) ?? 2);
    this.#select.value = String(this.#nHeads);
    this.#input.show(this.#rows);
    await this.#latest.run(
      () => this.#compute(this.#rows, this.#nHeads),
      (weights) => {
        this.#weights = weights;
        this.#showHeads();
        this.#redraw();
      },
    );
  }

  async #compute(rows: Matrix, nHeads: number): Promise<number[][]> {
    const lab = await this.#kernels.lab();
    const [q = [], ...keys] = rows;
    // Rows lie head after head: the same eight numbers, whatever the number of heads.
    const weights = await lab.weights({
      nQHeads: nHeads,
      nKvHeads: nHeads,
      dQk: width / nHeads,
      q: Float32Array.from(q),
      k: Float32Array.from(keys.flat()),
    });
    return rowsOf(weights, keyNames.length);
  }

  #showHeads(): void {
    const d = width / this.#nHeads;
    const items = slices(this.#rows, this.#nHeads).map(({ start, end, scores, texts }, head) => {
      const weights = this.#weights[head] ?? [];
      const gap = Math.abs((scores[0] ?? 0) - (scores[1] ?? 0)) / Math.sqrt(d);
      return el(
        'li',
        { 'data-head': head + 1 },
        el('strong', {}, this.#nHeads === 1 ? 'One wide head' : `Head ${head + 1}`),
        ` reads places ${start} to ${end - 1}. `,
        ...texts.map((text, i) => el('span', { class: 'line' }, `q·k(${keyNames[i]}) = ${text}`)),
        el(
          'span',
          { class: 'line' },
          `divided by √${d}: gap ${brief(gap)}, so the larger weight is e^${brief(gap)} = ${brief(Math.exp(gap))} times the other: `,
          el('strong', { class: 'result' }, weights.map((w) => shown(w)).join(' / ')),
        ),
      );
    });
    byId('heads-list', HTMLElement).replaceChildren(...items);
  }

  #series(): Series[] {
    return this.#weights.map((values, head) => ({
      name: this.#nHeads === 1 ? 'one wide head' : `head ${head + 1}`,
      tone: head % 2 === 0 ? 1 : 2,
      values,
    }));
  }

  #data(): FigureData {
    return {
      name: 'heads',
      columns: [
        'head',
        'from',
        'to',
        ...keyNames.map((key) => `score ${key}`),
        ...keyNames.map((key) => `weight ${key}`),
      ],
      rows: slices(this.#rows, this.#nHeads).map(({ start, end, scores }, head) => [
        head + 1,
        start,
        end - 1,
        ...scores,
        ...(this.#weights[head] ?? []),
      ]),
      picture: (wide) => weightBars(keyNames, this.#series(), wide, { isNamed: true }),
    };
  }
}
