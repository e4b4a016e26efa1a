// The picture: for decode and prefill a bar of the measured rate in the track of what the machine allows, both as a share
// of the ceiling, so that rates of different size stand side by side.
import { scaleLinear } from 'd3-scale';
import { formatRate } from '../shared/format.js';
import { svg } from '../shared/svg.js';
import { type Figures, formatShare, type RateReport } from './report.js';

const rowHeight = 92;
const barHeight = 26;
const barTop = 30;
const axisHeight = 30;
const nTicks = 5;
/** Below this the notes under a bar would meet. */
const wideEnough = 480;
const titles = { decode: 'Writing (decode)', prefill: 'Reading the prompt (prefill)' } as const;

export function rateChart(figures: Figures, width: number): SVGSVGElement {
  const rows = [figures.decode, figures.prefill];
  const best = Math.max(...rows.map((row) => row.best / row.ceiling));
  const x = scaleLinear()
    .domain([0, Math.max(1, best)])
    .range([1, width - 1]);
  const height = rows.length * rowHeight + axisHeight;
  const axisTop = rows.length * rowHeight;
  return svg(
    'svg',
    {
      class: 'rate-chart',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-label': rows.map(sentence).join(' '),
    },
    svg(
      'g',
      { class: 'axis', 'aria-hidden': 'true' },
      ...x
        .ticks(width < wideEnough ? 3 : nTicks)
        .map((tick) => axisTick(x(tick), tick, axisTop, width)),
    ),
    ...rows.map((row, index) => rateRow(row, x, index * rowHeight, width)),
  );
}

function sentence(row: RateReport): string {
  return (
    `${titles[row.name]}: ${formatRate(row.median)} tokens a second, ${formatShare(row.share)} of the ` +
    `${formatRate(row.ceiling)} that the machine allows.`
  );
}

function axisTick(at: number, share: number, top: number, width: number): SVGGElement {
  const anchor = at < 20 ? 'start' : at > width - 20 ? 'end' : 'middle';
  return svg(
    'g',
    {},
    svg('line', { class: 'grid', x1: at, x2: at, y1: 0, y2: top }),
    svg('text', { class: 'tick', x: at, y: top + 18, 'text-anchor': anchor }, formatShare(share)),
  );
}

function rateRow(
  row: RateReport,
  x: (share: number) => number,
  top: number,
  width: number,
): SVGGElement {
  const y = top + barTop;
  const measured = x(row.share) - x(0);
  const bestAt = x(row.best / row.ceiling);
  const other = row.other.rate / row.ceiling;
  const ceiling =
    `ceiling ${formatRate(row.ceiling)}` +
    (other < 1 ? `; ${row.other.label} ${formatRate(row.other.rate)}` : '');
  return svg(
    'g',
    { 'data-rate': row.name },
    svg('text', { class: 'bar-title', x: 1, y: top + 20 }, titles[row.name]),
    svg(
      'text',
      { class: 'bar-value', x: width - 1, y: top + 20, 'text-anchor': 'end' },
      `${formatRate(row.median)} tokens/s`,
    ),
    svg('rect', { class: 'track', x: x(0), y, width: x(1) - x(0), height: barHeight, rx: 4 }),
    svg('rect', {
      class: 'fill',
      x: x(0),
      y,
      width: Math.max(2, measured),
      height: barHeight,
      rx: 4,
    }),
    svg('line', { class: 'best', x1: bestAt, x2: bestAt, y1: y - 3, y2: y + barHeight + 3 }),
    other < 1 &&
      svg('line', { class: 'other', x1: x(other), x2: x(other), y1: y, y2: y + barHeight }),
    svg(
      'text',
      { class: 'bar-note', x: 1, y: y + barHeight + 18 },
      `${formatShare(row.share)} of the ceiling`,
    ),
    svg(
      'text',
      { class: 'bar-note', x: width - 1, y: y + barHeight + 18, 'text-anchor': 'end' },
      width >= wideEnough ? ceiling : `of ${formatRate(row.ceiling)}`,
    ),
  );
}
