// Puts a result, or why there is none, onto the page.
import { byId, el } from '../shared/dom.js';
import type { Explanation } from '../shared/errors.js';
import { formatRate } from '../shared/format.js';
import { drawToWidth } from '../shared/svg.js';
import type { BenchResult } from './measure.js';
import { rateChart } from './rate_chart.js';
import {
  asText,
  type Figures,
  figures,
  formatShare,
  limitRows,
  machineRows,
  modelRows,
  type Row,
  type Stage,
  stages,
  statRows,
  verdict,
} from './report.js';
import { stageChart } from './stage_chart.js';

let shown: Figures | undefined;
let redraw: (() => void) | undefined;
let shownStages: Stage[] = [];
let redrawStages: (() => void) | undefined;

function text(id: string, value: string): void {
  byId(id, HTMLElement).textContent = value;
}

function facts(id: string, rows: readonly Row[]): void {
  const items = rows.map(({ term, value }) =>
    el('div', {}, el('dt', {}, term), el('dd', {}, value)),
  );
  byId(id, HTMLElement).replaceChildren(...items);
}

export function showResults(result: BenchResult): void {
  shown = figures(result);
  const { decode, prefill } = shown;
  text('decode-rate', formatRate(decode.median));
  text('prefill-rate', formatRate(prefill.median));
  text('decode-best', `best of 3: ${formatRate(decode.best)}`);
  text('prefill-best', `best of 3: ${formatRate(prefill.best)}`);
  text('decode-share', formatShare(decode.share));
  text('prefill-share', formatShare(prefill.share));
  const { state, text: words } = verdict(result);
  const box = byId('verdict', HTMLElement);
  box.dataset.verdict = state;
  text('verdict-text', words);
  text('hash', result.answer.sha256);
  text('answer', result.answer.text.trim());
  facts('limits', limitRows(result));
  facts('machine', machineRows(result));
  facts('model', modelRows(result));
  const { stages: _shownAsBars, ...stats } = result.stats;
  facts('stats', statRows(stats));
  text('report', asText(result));
  const figure = byId('figure', HTMLElement);
  redraw ??= drawToWidth(figure, (width) => (shown ? rateChart(shown, width) : el('div')));
  redraw();
  shownStages = stages(result);
  byId('stage-figure', HTMLElement).hidden = shownStages.length === 0;
  redrawStages ??= drawToWidth(byId('stages', HTMLElement), (width) =>
    stageChart(shownStages, width),
  );
  redrawStages();
  byId('results-title', HTMLElement).focus();
}

export function showProblem({ title, message, advice, details }: Explanation): void {
  byId('problem-slot', HTMLElement).replaceChildren(
    el(
      'div',
      { class: 'problem', role: 'alert', 'data-testid': 'problem' },
      el('p', { class: 'problem-title' }, title),
      el('p', {}, message),
      el('p', {}, advice),
      el(
        'details',
        {},
        el('summary', {}, 'Details for a report'),
        el('pre', { tabindex: 0 }, details),
      ),
    ),
  );
}

export function clearProblem(): void {
  byId('problem-slot', HTMLElement).replaceChildren();
}
