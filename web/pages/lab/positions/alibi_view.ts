// ALiBi's slopes: what a score loses with the distance, head by head.
import { byId, el } from '../../shared/dom.js';
import { drawToWidth } from '../../shared/svg.js';
import { exportBar, type FigureData } from '../figure.js';
import { brief } from '../hand/arithmetic.js';
import { type LineSeries, lineChart, lineLegend } from '../line_chart.js';
import type { AlibiHead } from './compute.js';

const shownDistances = [0, 1, 8, 64] as const;
const maxPoints = 300;

export class AlibiView {
  #heads: readonly AlibiHead[] = [];
  #redraw: () => void;

  constructor(failed: (message: string) => void) {
    this.#redraw = drawToWidth(byId('pos-bias', HTMLElement), (width) => this.#picture(width));
    byId('pos-slopes-export', HTMLElement).append(
      exportBar('the slopes', () => this.#data(), failed),
    );
  }

  show(heads: readonly AlibiHead[]): void {
    this.#heads = heads;
    byId('pos-bias-legend', HTMLElement).replaceChildren(
      ...lineLegend(this.#series().map(({ name }) => name)),
    );
    const titles = ['Head', 'Slope', ...shownDistances.map((at) => `at distance ${at}`)];
    const body = heads.map(({ slope, bias }, head) =>
      el(
        'tr',
        { 'data-slope': head },
        el('th', { scope: 'row' }, String(head)),
        ...[slope, ...shownDistances.map((at) => bias[at])].map((value) =>
          el('td', {}, value === undefined ? '' : slopeText(value)),
        ),
      ),
    );
    byId('pos-slopes', HTMLTableElement).replaceChildren(
      el('thead', {}, el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)))),
      el('tbody', {}, ...body),
    );
    this.#redraw();
  }

  /** Up to four heads: the first, the last, and two between. */
  #series(): LineSeries[] {
    const n = this.#heads.length;
    const picked = [...new Set([0, 1 / 3, 2 / 3, 1].map((share) => Math.round(share * (n - 1))))];
    return picked.flatMap((head) => {
      const bias = this.#heads[head]?.bias;
      if (bias === undefined) return [];
      const step = Math.max(1, Math.ceil(bias.length / maxPoints));
      const points = bias.flatMap((value, at) => (at % step === 0 ? [[at, value] as const] : []));
      return [{ name: `head ${head}`, points }];
    });
  }

  #picture(width: number): SVGSVGElement {
    return lineChart({
      ...{ label: 'What a score loses', xLabel: 'distance', yLabel: 'added to the score', width },
      ...{ series: this.#series(), maxMarks: 0 },
    });
  }

  #data(): FigureData {
    return {
      name: 'positions-slopes',
      columns: ['head', 'slope', ...shownDistances.map((at) => `bias${at}`)],
      rows: this.#heads.map(({ slope, bias }, head) => [
        ...[head, slope],
        ...shownDistances.map((at) => bias[at] ?? ''),
      ]),
      picture: (width) => this.#picture(width),
    };
  }
}

/** Six digits: slopes of many heads differ by little, and some are small. */
export function slopeText(value: number): string {
  const text = Number(value.toPrecision(6));
  return Object.is(text, -0)
    ? '0'
    : Math.abs(text) < 1e-4
      ? brief(text)
      : String(text).replace('-', '−');
}
