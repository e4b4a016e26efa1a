// The table of a preset, its chart where losses were measured, and what follows from them. A click on a row puts its layout
// into the calculator.
import { layoutPreset, type Preset, type Series } from 'headlight-wasm/lab';
import { byId, el } from '../../shared/dom.js';
import { drawToWidth } from '../../shared/svg.js';
import { exportBar, type FigureData } from '../figure.js';
import { columnsFor } from './columns.js';
import { describePoint, lossChart, seriesSign } from './loss_chart.js';
import { type ComputedRow, computeRows, findings, seriesNames } from './rows.js';

/** Of reasons why a printed figure differs. */
const marks = ['*', '†', '‡'] as const;

export interface PresetActions {
  /** A row was chosen. */
  choose(index: number): void;
  failed(message: string): void;
}

export class PresetView {
  #actions: PresetActions;
  #rows: ComputedRow[] = [];
  #preset: Preset = layoutPreset('seedA1');
  #redraw: () => void;

  constructor(actions: PresetActions) {
    this.#actions = actions;
    this.#redraw = drawToWidth(byId('loss-chart', HTMLElement), (width) =>
      this.#hasLosses() ? this.#chart(width) : el('span'),
    );
    byId('loss-export', HTMLElement).append(
      exportBar('the chart', () => this.#chartData(), actions.failed),
    );
    byId('preset-export', HTMLElement).append(
      exportBar('the table', () => this.#tableData(), actions.failed),
    );
  }

  show(preset: Preset, chosen: number): void {
    if (preset !== this.#preset || this.#rows.length === 0) {
      this.#preset = preset;
      this.#rows = computeRows(preset);
      byId('preset-title', HTMLElement).textContent = preset.title;
      byId('preset-note', HTMLElement).textContent = preset.note;
      this.#showChart();
      this.#showFindings();
    }
    this.#showTable(chosen);
  }

  #hasLosses(): boolean {
    return this.#rows.some(({ printed }) => printed.loss !== undefined);
  }

  #chart(width: number): SVGSVGElement {
    const detail = byId('loss-detail', HTMLElement);
    return lossChart(this.#rows, width, (row) => {
      detail.textContent = describePoint(row);
    });
  }

  #showChart(): void {
    byId('loss-figure', HTMLElement).hidden = !this.#hasLosses();
    if (!this.#hasLosses()) return;
    byId('loss-detail', HTMLElement).textContent = 'Point at a mark to read it.';
    const series = new Set(this.#rows.map((row) => row.series ?? 'full'));
    const entries = [...series].map((name: Series) =>
      el('li', {}, seriesSign(name), seriesNames[name]),
    );
    byId('loss-legend', HTMLElement).replaceChildren(...entries);
    this.#redraw();
  }

  #showFindings(): void {
    const found = findings(this.#rows);
    const list = byId('findings', HTMLElement);
    list.hidden = found.length === 0;
    list.replaceChildren(...found.map((sentence) => el('li', {}, sentence)));
  }

  #showTable(chosen: number): void {
    const columns = columnsFor(this.#rows, this.#preset.weights);
    const titles = columns.map(({ title, isTheirs }) =>
      el(
        'th',
        { scope: 'col' },
        title,
        isTheirs ? el('small', {}, 'the article’s measurement') : null,
      ),
    );
    const head = el('tr', {}, el('th', { scope: 'col' }, this.#headTitle()), ...titles);
    const reasons: string[] = [];
    const body = this.#rows.map((row, index) => {
      const button = el(
        'button',
        { type: 'button', class: 'row-button', 'aria-pressed': String(index === chosen) },
        row.label,
      );
      button.addEventListener('click', () => this.#actions.choose(index));
      const cells = columns.map((column) => {
        const { value, printed, why } = column.cell(row);
        return el(
          'td',
          {},
          el('span', { class: 'exact' }, value),
          printed
            ? el('small', {}, `printed ${printed}`, why ? this.#mark(reasons, why) : null)
            : null,
        );
      });
      return el(
        'tr',
        { 'data-row': row.label, class: index === chosen ? 'chosen' : undefined },
        el('th', { scope: 'row' }, button),
        ...cells,
      );
    });
    byId('preset-table', HTMLTableElement).replaceChildren(
      el('thead', {}, head),
      el('tbody', {}, ...body),
    );
    const notes = reasons.map((why, i) => el('li', {}, `${marks[i] ?? ''} ${why}`));
    byId('preset-whys', HTMLElement).replaceChildren(...notes);
  }

  /** The sign that leads to the reason under the table. */
  #mark(reasons: string[], why: string): HTMLElement {
    if (!reasons.includes(why)) reasons.push(why);
    return el('span', { class: 'why', title: why }, ` ${marks[reasons.indexOf(why)] ?? ''}`);
  }

  #headTitle(): string {
    return this.#hasLosses() ? 'd_qk / d_v' : 'Layout';
  }

  #tableData(): FigureData {
    const columns = columnsFor(this.#rows, this.#preset.weights);
    const titles = columns.flatMap(({ title }) => [title, `${title} (printed)`]);
    return {
      name: this.#preset.name,
      columns: [this.#headTitle(), ...titles],
      rows: this.#rows.map((row) => [
        row.label,
        ...columns.flatMap((column) => {
          const { value, printed } = column.cell(row);
          return [value, printed ?? ''];
        }),
      ]),
    };
  }

  #chartData(): FigureData {
    return {
      name: `${this.#preset.name}-loss`,
      columns: ['label', 'series', 'fileBytes', 'loss', 'lossChangePercent'],
      rows: this.#rows.map(({ label, series, cost, printed, lossChange }) => [
        label,
        series ?? '',
        cost.fileBytes,
        printed.loss ?? '',
        lossChange ?? '',
      ]),
      picture: (width) => this.#chart(width),
    };
  }
}
