// "Why √d": as d grows, dot products of random vectors spread like √d, and an unscaled softmax turns into a choice of one.
import { byId, el } from '../../shared/dom.js';
import { drawToWidth } from '../../shared/svg.js';
import { NumberField } from '../bytes/fields.js';
import { exportBar, type FigureData } from '../figure.js';
import { type Kernels, Latest } from '../kernels.js';
import type { UrlState } from '../url_state.js';
import { shown } from './arithmetic.js';
import { type Series, weightBars } from './bars.js';
import { normals, scoreDeviation } from './random.js';

const nKeys = 6;
const keyNames = Array.from({ length: nKeys }, (_, i) => `key ${i}`);
const defaultWidth = 64;
const smallest = 1;
const largest = 1024;
const seed = 7;
/** 2 % standard error of the deviation. */
const nDraws = 1500;

/** As printed for these widths, by another generator's draws; 128 is the second article's, the others the third's. */
export const printedDeviations = [
  { dQk: 4, printed: '2.0' },
  { dQk: 64, printed: '8.03' },
  { dQk: 128, printed: '11.3' },
  { dQk: 512, printed: '22.54' },
] as const;

export const threeScores: readonly number[] = [2, 1, 0];
const defaultFactor = 1;

export class Saturation {
  #state: UrlState;
  #kernels: Kernels;
  #latest: Latest;
  #latestFactor: Latest;
  #width: NumberField;
  #factor: NumberField;
  #dQk = defaultWidth;
  #scaled: readonly number[] = [];
  #unscaled: readonly number[] = [];
  #redraw: () => void;

  constructor(state: UrlState, kernels: Kernels, failed: (message: string) => void) {
    this.#state = state;
    this.#kernels = kernels;
    this.#latest = new Latest(failed);
    this.#latestFactor = new Latest(failed);
    this.#width = new NumberField(
      { id: 'sat-d', label: 'd_qk', min: smallest, max: largest, slideTo: largest },
      (value) => this.#set('sat', value === defaultWidth ? undefined : value),
    );
    this.#factor = new NumberField(
      { id: 'sat-factor', label: 'Scores 2, 1, 0 times', min: 1, max: 64, slideTo: 16 },
      (value) => this.#set('factor', value === defaultFactor ? undefined : value),
    );
    byId('sat-fields', HTMLElement).append(this.#width.root);
    byId('factor-fields', HTMLElement).append(this.#factor.root);
    this.#redraw = drawToWidth(byId('sat-chart', HTMLElement), (wide) =>
      weightBars(keyNames, this.#series(), wide),
    );
    byId('sat-export', HTMLElement).append(exportBar('the weights', () => this.#data(), failed));
    // Millions of draws: after the page stands.
    setTimeout(() => this.#showDeviations(), 0);
  }

  async update(): Promise<void> {
    this.#dQk = Math.round(this.#state.number('sat', smallest, largest) ?? defaultWidth);
    const factor = Math.round(this.#state.number('factor', 1, 64) ?? defaultFactor);
    this.#width.show(this.#dQk);
    this.#factor.show(factor);
    await Promise.all([this.#updateKeys(), this.#updateFactor(factor)]);
  }

  async #updateKeys(): Promise<void> {
    const dQk = this.#dQk;
    await this.#latest.run(
      async () => {
        const lab = await this.#kernels.lab();
        const values = normals((1 + nKeys) * dQk, seed);
        const row = {
          nQHeads: 1,
          nKvHeads: 1,
          dQk,
          q: values.slice(0, dQk),
          k: values.slice(dQk),
        };
        return [
          [...(await lab.weights(row))],
          [...(await lab.weights({ ...row, scale: 1 }))],
        ] as const;
      },
      ([scaled, unscaled]) => {
        [this.#scaled, this.#unscaled] = [scaled, unscaled];
        const largestOf = (weights: readonly number[]) => shown(Math.max(...weights));
        byId('sat-facts', HTMLElement).textContent =
          `At d_qk = ${dQk} raw scores have a standard deviation of about √${dQk} = ${Math.sqrt(dQk).toFixed(2)}. ` +
          `Largest weight: ${largestOf(scaled)} scaled, ${largestOf(unscaled)} not scaled.`;
        this.#redraw();
      },
    );
  }

  async #updateFactor(factor: number): Promise<void> {
    await this.#latestFactor.run(
      async () => {
        const lab = await this.#kernels.lab();
        const k = Float32Array.from(threeScores, (score) => score * factor);
        return lab.weights({ nQHeads: 1, nKvHeads: 1, dQk: 1, q: Float32Array.of(1), k, scale: 1 });
      },
      (weights) => {
        const scores = threeScores.map((score) => score * factor).join(', ');
        byId('factor-result', HTMLElement).textContent =
          `softmax(${scores}) = ${[...weights].map((weight) => shown(weight)).join(', ')}`;
      },
    );
  }

  #set(name: string, value: number | undefined): void {
    this.#state.set(name, value);
    void this.update();
  }

  #series(): Series[] {
    return [
      { name: 'scaled', tone: 1, values: this.#scaled },
      { name: 'not scaled', tone: 2, values: this.#unscaled },
    ];
  }

  #showDeviations(): void {
    const titles = [
      'd_qk',
      'Exact √d',
      `Here, ${nDraws.toLocaleString('en-GB')} draws`,
      'Printed',
      'Scaled',
    ];
    const head = el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)));
    const body = printedDeviations.map(({ dQk, printed }) => {
      const deviation = scoreDeviation(dQk, nDraws, dQk);
      const cells = [
        Math.sqrt(dQk).toFixed(2),
        deviation.toFixed(2),
        printed,
        (deviation / Math.sqrt(dQk)).toFixed(2),
      ];
      return el(
        'tr',
        {},
        el('th', { scope: 'row' }, String(dQk)),
        ...cells.map((cell) => el('td', {}, cell)),
      );
    });
    byId('sat-table', HTMLTableElement).replaceChildren(
      el('thead', {}, head),
      el('tbody', {}, ...body),
    );
  }

  #data(): FigureData {
    return {
      name: 'saturation',
      columns: ['key', 'weight', 'weightNotScaled'],
      rows: keyNames.map((key, i) => [key, this.#scaled[i] ?? 0, this.#unscaled[i] ?? 0]),
      picture: (wide) => weightBars(keyNames, this.#series(), wide, { isNamed: true }),
    };
  }
}
