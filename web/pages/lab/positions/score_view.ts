// The score of one query and one key by their distance, for the chosen scheme: where they stand, moved further on, and, where
// RoPE is stretched, as it was trained.
import type { HeadLab } from 'headlight-wasm/lab';
import { byId, el } from '../../shared/dom.js';
import { drawToWidth } from '../../shared/svg.js';
import { exportBar, type FigureData } from '../figure.js';
import { type LineSeries, lineChart, lineLegend } from '../line_chart.js';
import { largestChange, NoPosition, scoresByDistance, slopeOf } from './compute.js';
import { count, difference } from './facts.js';
import type { Setup } from './schemes.js';

export interface ScoreLines {
  series: { name: string; scores: number[] }[];
  /** What moving does, and where the scheme ends. */
  facts: string[];
}

export async function scoreLines(lab: HeadLab, setup: Setup): Promise<ScoreLines> {
  const slope = await slopeOf(lab, setup);
  const lines: ScoreLines = { series: [], facts: [] };
  const here = await scoresByDistance(lab, setup, 0, slope);
  lines.series.push({
    name: setup.scheme === 'alibi' ? 'head 0' : 'from position 0 on',
    scores: here,
  });
  try {
    const there = await scoresByDistance(lab, setup, setup.moved, slope);
    const change = largestChange(here, there);
    lines.series.push({ name: `from ${count(setup.moved)} on`, scores: there });
    lines.facts.push(
      `Both moved by ${count(setup.moved)}: a score changes by at most ${difference(change)}. ` +
        (change < 1e-3 ? 'Only the distance counts.' : 'The absolute place shows.'),
    );
  } catch (error) {
    if (!(error instanceof NoPosition)) throw error;
    lines.facts.push(error.message);
  }
  if (setup.scheme === 'rope' && setup.scaling !== 'none') {
    const scores = await scoresByDistance(lab, { ...setup, scaling: 'none' }, 0);
    lines.series.push({ name: 'as trained', scores });
  }
  return lines;
}

/** More points than pixels are of no use. */
const maxPoints = 400;

export class ScoreView {
  #lines: ScoreLines = { series: [], facts: [] };
  #redraw: () => void;

  constructor(failed: (message: string) => void) {
    this.#redraw = drawToWidth(byId('pos-chart', HTMLElement), (width) => this.#picture(width));
    byId('pos-export', HTMLElement).append(exportBar('the scores', () => this.#data(), failed));
  }

  show(lines: ScoreLines): void {
    this.#lines = lines;
    byId('pos-legend', HTMLElement).replaceChildren(
      ...lineLegend(lines.series.map(({ name }) => name)),
    );
    this.#redraw();
  }

  #picture(width: number): SVGSVGElement | HTMLElement {
    if (this.#lines.series.length === 0) return el('p', { class: 'hint' }, 'No score to show.');
    return this.#chart(width);
  }

  #chart(width: number): SVGSVGElement {
    const series: LineSeries[] = this.#lines.series.map(({ name, scores }) => {
      const step = Math.max(1, Math.ceil(scores.length / maxPoints));
      return {
        name,
        points: scores.flatMap((score, at) =>
          at % step === 0 || at === scores.length - 1 ? [[at, score] as const] : [],
        ),
      };
    });
    return lineChart({
      ...{ label: 'Score by distance', xLabel: 'distance', yLabel: 'score', width, series },
      maxMarks: 0,
    });
  }

  #data(): FigureData {
    const { series } = this.#lines;
    return {
      name: 'positions-scores',
      columns: ['distance', ...series.map(({ name }) => name)],
      rows: (series[0]?.scores ?? []).map((_, at) => [
        at,
        ...series.map(({ scores }) => scores[at] ?? ''),
      ]),
      picture: (width) => this.#chart(width),
    };
  }
}
