// "Seven tokens": one row of scores, scaled and not. With d_qk = 1, q = 1 and the scores as keys, the kernels' scores are just
// these numbers; the scale is the kernels' own option.
import { byId, el } from '../../shared/dom.js';
import { drawToWidth } from '../../shared/svg.js';
import { NumberField } from '../bytes/fields.js';
import { exportBar, type FigureData } from '../figure.js';
import { type Kernels, Latest } from '../kernels.js';
import type { UrlState } from '../url_state.js';
import { shown } from './arithmetic.js';
import { type Series, weightBars } from './bars.js';
import { MatrixInput } from './matrix_view.js';
import {
  articleScores,
  articleWidth,
  type ExampleName,
  examples,
  gapFacts,
  isArticle,
  printedWeights,
  roundedFirst,
  sevenTokens,
} from './seven_rows.js';

const largestWidth = 1024;
const largestShift = 1000;

export interface SevenState {
  scores: readonly number[];
  dQk: number;
}

export class SevenTokens {
  #state: UrlState;
  #kernels: Kernels;
  #latest: Latest;
  #input: MatrixInput;
  #width: NumberField;
  #shift: NumberField;
  #now: SevenState = { scores: articleScores, dQk: articleWidth };
  #scaled: number[] = [];
  #unscaled: number[] = [];
  #redraw: () => void;
  #changed: (state: SevenState) => void;

  /** @param changed told the row that stands there now */
  constructor(
    state: UrlState,
    kernels: Kernels,
    actions: { failed(message: string): void; changed(state: SevenState): void },
  ) {
    this.#state = state;
    this.#kernels = kernels;
    this.#latest = new Latest(actions.failed);
    this.#changed = actions.changed;
    this.#input = new MatrixInput(
      { name: 'Scores q·k', columns: sevenTokens, values: [articleScores], testid: 'seven' },
      ([scores = []]) => this.#setScores(scores),
    );
    byId('seven-input', HTMLElement).append(this.#input.root);
    this.#width = new NumberField(
      { id: 'seven-d', label: 'd_qk', min: 1, max: 8192, slideTo: largestWidth },
      (value) => this.#set('d', value === articleWidth ? undefined : value),
    );
    this.#shift = new NumberField(
      {
        id: 'seven-shift',
        label: 'Add to every score',
        min: 0,
        max: 10_000,
        slideTo: largestShift,
      },
      (value) => this.#set('shift', value === 0 ? undefined : value),
    );
    byId('seven-fields', HTMLElement).append(this.#width.root, this.#shift.root);
    this.#addExamples();
    this.#redraw = drawToWidth(byId('seven-chart', HTMLElement), (wide) =>
      weightBars(sevenTokens, this.#series(), wide),
    );
    byId('seven-export', HTMLElement).append(
      exportBar('the row', () => this.#data(), actions.failed),
    );
  }

  async update(): Promise<void> {
    const scores = this.#state.numbers('scores', sevenTokens.length) ?? articleScores;
    const dQk = Math.round(this.#state.number('d', 1, 8192) ?? articleWidth);
    const shift = Math.round(this.#state.number('shift', 0, 10_000) ?? 0);
    this.#now = { scores, dQk };
    this.#input.show([scores]);
    this.#width.show(dQk);
    this.#shift.show(shift);
    this.#changed(this.#now);
    await this.#latest.run(
      async () => {
        const lab = await this.#kernels.lab();
        const k = Float32Array.from(scores, (score) => score + shift);
        const row = { nQHeads: 1, nKvHeads: 1, dQk: 1, q: Float32Array.of(1), k };
        const [scaled, unscaled] = [
          await lab.weights({ ...row, scale: 1 / Math.sqrt(dQk) }),
          await lab.weights({ ...row, scale: 1 }),
        ];
        return { scaled: [...scaled], unscaled: [...unscaled] };
      },
      ({ scaled, unscaled }) => {
        this.#scaled = scaled;
        this.#unscaled = unscaled;
        this.#showTable();
        this.#redraw();
      },
    );
  }

  #addExamples(): void {
    for (const name of Object.keys(examples) as ExampleName[]) {
      const { label, scores } = examples[name];
      const button = el(
        'button',
        { type: 'button', class: 'button', 'data-testid': `seven-${name}` },
        label,
      );
      button.addEventListener('click', () => {
        this.#state.set('d', undefined);
        this.#state.set('shift', undefined);
        this.#setScores(scores);
      });
      byId('seven-examples', HTMLElement).append(button);
    }
  }

  #setScores(scores: readonly number[]): void {
    const text = scores.join(',');
    this.#set('scores', text === articleScores.join(',') ? undefined : text);
  }

  #set(name: string, value: string | number | undefined): void {
    this.#state.set(name, value);
    void this.update();
  }

  #series(): Series[] {
    return [
      { name: 'scaled', tone: 1, values: this.#scaled },
      { name: 'not scaled', tone: 2, values: this.#unscaled },
    ];
  }

  #showTable(): void {
    const { scores, dQk } = this.#now;
    const printed = isArticle(scores, dQk);
    const rounded = roundedFirst(scores, dQk);
    const titles = [
      'Token',
      'Score',
      `Score / √${dQk}`,
      'Weight',
      ...(printed ? ['Printed', 'Rounded first'] : []),
      'Not scaled',
    ];
    const head = el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)));
    const body = sevenTokens.map((token, i) => {
      const cells = [
        shown(scores[i] ?? 0),
        ((scores[i] ?? 0) / Math.sqrt(dQk)).toFixed(4).replace('-', '−'),
        (this.#scaled[i] ?? 0).toFixed(4),
        ...(printed ? [(printedWeights[i] ?? 0).toFixed(3), (rounded[i] ?? 0).toFixed(4)] : []),
        shown(this.#unscaled[i] ?? 0),
      ];
      return el(
        'tr',
        {},
        el('th', { scope: 'row' }, token),
        ...cells.map((cell) => el('td', {}, cell)),
      );
    });
    byId('seven-table', HTMLTableElement).replaceChildren(
      el('thead', {}, head),
      el('tbody', {}, ...body),
    );
    byId('seven-facts', HTMLElement).replaceChildren(
      ...gapFacts(scores, dQk, this.#scaled, this.#unscaled).map((fact) => el('li', {}, fact)),
    );
  }

  #data(): FigureData {
    const { scores, dQk } = this.#now;
    return {
      name: 'seven-tokens',
      columns: ['token', 'score', 'scaledScore', 'weight', 'weightNotScaled'],
      rows: sevenTokens.map((token, i) => [
        token,
        scores[i] ?? 0,
        (scores[i] ?? 0) / Math.sqrt(dQk),
        this.#scaled[i] ?? 0,
        this.#unscaled[i] ?? 0,
      ]),
      picture: (wide) => weightBars(sevenTokens, this.#series(), wide, { isNamed: true }),
    };
  }
}
