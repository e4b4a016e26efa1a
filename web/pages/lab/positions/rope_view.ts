// Frequencies and wavelengths of RoPE's pairs, and how many times longer each way of scaling makes them.
import { byId, el } from '../../shared/dom.js';
import { drawToWidth } from '../../shared/svg.js';
import { exportBar, type FigureData } from '../figure.js';
import { shown } from '../hand/arithmetic.js';
import { lineChart, lineLegend } from '../line_chart.js';
import { type Frequencies, stretches } from './compute.js';
import { count } from './facts.js';
import type { Scaling, Setup } from './schemes.js';

const compared: readonly { scaling: Scaling; name: string }[] = [
  { scaling: 'linear', name: 'PI' },
  { scaling: 'ntk', name: 'NTK' },
  { scaling: 'dynamic', name: 'dynamic NTK' },
  { scaling: 'yarn', name: 'YaRN' },
];

interface Pair {
  pair: number;
  theta: number;
  wavelength: number;
  turns: number;
  stretched: number[];
}

export class RopeView {
  #pairs: Pair[] = [];
  #redraw: () => void;

  constructor(failed: (message: string) => void) {
    this.#redraw = drawToWidth(byId('pos-stretch', HTMLElement), (width) => this.#picture(width));
    byId('pos-stretch-legend', HTMLElement).append(...lineLegend(compared.map(({ name }) => name)));
    byId('pos-stretch-export', HTMLElement).append(
      exportBar('the pairs', () => this.#data(), failed),
    );
  }

  show(setup: Setup, all: Frequencies): void {
    const stretched = compared.map(({ scaling }) => stretches(all, scaling));
    const chosen = all.byScaling[setup.scaling];
    this.#pairs = [...chosen].map((theta, pair) => ({
      ...{ pair, theta, wavelength: (2 * Math.PI) / theta },
      turns: (setup.trained * theta) / (2 * Math.PI),
      stretched: stretched.map((list) => list[pair] ?? 1),
    }));
    const titles = [
      'Pair',
      'θ',
      'Wavelength',
      `Turns in ${count(setup.trained)}`,
      ...compared.map(({ name }) => `${name} ×`),
    ];
    const body = this.#pairs.map(({ pair, theta, wavelength, turns, stretched: longer }) =>
      el(
        'tr',
        { 'data-pair': pair },
        el('th', { scope: 'row' }, String(pair)),
        ...[
          theta.toPrecision(6),
          count(wavelength),
          count(turns),
          ...longer.map((x) => shown(x, 2)),
        ].map((cell) => el('td', {}, cell)),
      ),
    );
    byId('pos-pairs', HTMLTableElement).replaceChildren(
      el('thead', {}, el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)))),
      el('tbody', {}, ...body),
    );
    this.#redraw();
  }

  #picture(width: number): SVGSVGElement {
    return lineChart({
      ...{
        label: 'Stretch of each pair',
        xLabel: 'pair',
        yLabel: 'times longer',
        width,
        maxMarks: 0,
      },
      series: compared.map(({ name }, i) => ({
        name,
        points: this.#pairs.map(({ pair, stretched }) => [pair, stretched[i] ?? 1] as const),
      })),
    });
  }

  #data(): FigureData {
    return {
      name: 'positions-pairs',
      columns: ['pair', 'theta', 'wavelength', 'turns', ...compared.map(({ name }) => name)],
      rows: this.#pairs.map(({ pair, theta, wavelength, turns, stretched }) => [
        ...[pair, theta, wavelength, turns, ...stretched],
      ]),
      picture: (width) => this.#picture(width),
    };
  }
}
