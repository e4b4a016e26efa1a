// How much each figure changed, as bars from the middle; and the edits tried so far, cost against bytes.
import { scaleLinear, scaleSymlog } from 'd3-scale';
import { svg } from '../../shared/svg.js';
import { type FigureRow, type Measured, percent, weightsRead } from './figures.js';

const barHeight = 18;
const rowHeight = 44;

/** Bars to the right grew, to the left shrank; what got worse has another colour and a sign. */
export function changeChart(rows: readonly FigureRow[], width: number): SVGSVGElement {
  const height = rows.length * rowHeight + 8;
  const largest = Math.max(0.01, ...rows.map(({ change }) => Math.abs(change)));
  const x = scaleSymlog()
    .constant(0.02)
    .domain([-largest, largest])
    .range([60, width - 60]);
  const middle = x(0);
  return svg(
    'svg',
    {
      ...{ class: 'chart', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img' },
      'aria-label': rows.map(({ name, change }) => `${name} ${percent(change)}`).join(', '),
    },
    svg('line', { class: 'grid', x1: middle, x2: middle, y1: 0, y2: height }),
    ...rows.map(({ name, change, lessIsBetter }, i) => {
      const top = i * rowHeight + 22;
      const end = x(change);
      const worse = change !== 0 && change > 0 === lessIsBetter;
      const label = `${percent(change)}${Math.abs(change) < 5e-5 ? '' : worse ? ' worse' : ' better'}`;
      return svg(
        'g',
        {},
        svg('text', { class: 'strong', x: 0, y: top - 6 }, name),
        svg('rect', {
          class: worse ? 'bar-2' : 'bar-1',
          ...{ x: Math.min(middle, end), y: top, height: barHeight, rx: 2 },
          width: Math.max(1, Math.abs(end - middle)),
        }),
        svg(
          'text',
          {
            ...{ class: 'label', y: top + 13, x: change < 0 ? middle + 6 : middle - 6 },
            'text-anchor': change < 0 ? 'start' : 'end',
          },
          label,
        ),
      );
    }),
  );
}

/** Enough that no two ticks read the same. */
function decimals([first = 0, second = 1]: readonly number[]): number {
  return Math.max(2, Math.ceil(-Math.log10(Math.abs(second - first)) - 1e-9));
}

const height = 260;
const margin = { top: 14, right: 18, bottom: 40, left: 56 };

/** One mark for each edit tried: bytes of weights against loss. */
export function triedChart(
  tried: readonly Measured[],
  width: number,
  choose: (index: number) => void,
): SVGSVGElement {
  const bytes = tried.map(({ evaluation }) => weightsRead(evaluation) / 1e6);
  const losses = tried.map(({ evaluation }) => evaluation.loss);
  const padded = (values: readonly number[], least: number) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const pad = Math.max(least, (high - low) * 0.08);
    return [low - pad, high + pad];
  };
  const x = scaleLinear()
    .domain(padded(bytes, 0.02))
    .range([margin.left, width - margin.right]);
  const y = scaleLinear()
    .domain(padded(losses, 0.005))
    .range([height - margin.bottom, margin.top]);
  return svg(
    'svg',
    {
      ...{ class: 'chart', viewBox: `0 0 ${width} ${height}`, width, height, role: 'group' },
      'aria-label': 'Loss against bytes of weights, one mark for each edit tried',
    },
    ...y.ticks(5).map((tick, _, ticks) =>
      svg(
        'g',
        { 'aria-hidden': 'true' },
        svg('line', {
          class: 'grid',
          ...{ x1: margin.left, x2: width - margin.right, y1: y(tick), y2: y(tick) },
        }),
        svg(
          'text',
          { class: 'tick', x: margin.left - 8, y: y(tick) + 4, 'text-anchor': 'end' },
          tick.toFixed(decimals(ticks)),
        ),
      ),
    ),
    ...x
      .ticks(width < 480 ? 3 : 6)
      .map((tick) =>
        svg(
          'text',
          { class: 'tick', x: x(tick), y: height - margin.bottom + 18, 'text-anchor': 'middle' },
          String(tick),
        ),
      ),
    svg(
      'text',
      { class: 'label', x: width - margin.right, y: height - 6, 'text-anchor': 'end' },
      'weights, MB',
    ),
    svg('text', { class: 'label', x: margin.left + 4, y: margin.top + 2 }, 'loss, nats a token'),
    ...tried.map((measured, i) => {
      const mark = svg('circle', {
        class: `marker ${i === 0 ? 'series-full' : 'series-values'}`,
        ...{ cx: x(bytes[i] ?? 0), cy: y(losses[i] ?? 0), r: 7, tabindex: 0, role: 'button' },
        'aria-label': `${measured.label}: ${(bytes[i] ?? 0).toFixed(2)} MB, loss ${(losses[i] ?? 0).toFixed(4)}`,
        'data-tried': i,
      });
      mark.addEventListener('click', () => choose(i));
      mark.addEventListener('keydown', (event) => {
        if ((event as KeyboardEvent).key === 'Enter') choose(i);
      });
      return mark;
    }),
  );
}
