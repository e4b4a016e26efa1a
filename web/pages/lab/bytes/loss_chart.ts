// Loss against file size, a line for each way of cutting. Points can be hovered and focused; shapes as well as colours tell
// the series apart.

import { scaleLinear } from 'd3-scale';
import { line, symbol, symbolCircle, symbolDiamond, symbolSquare, symbolTriangle } from 'd3-shape';
import type { Series } from 'headlight-wasm/lab';
import { svg } from '../../shared/svg.js';
import { type ComputedRow, seriesNames } from './rows.js';

const height = 320;
const margin = { top: 12, right: 16, bottom: 44, left: 52 };
const symbols = {
  full: symbolDiamond,
  'queries and keys': symbolCircle,
  values: symbolSquare,
  both: symbolTriangle,
} as const;
const symbolArea = 90;
/** Room for the series' names in the picture. */
const wideEnough = 700;

interface Point {
  row: ComputedRow;
  x: number;
  y: number;
}

export function describePoint({ label, cost, printed, lossChange, series }: ComputedRow): string {
  const change =
    series === 'full' || lossChange === undefined
      ? ''
      : `, ${lossChange < 0 ? '−' : '+'}${Math.abs(lossChange).toFixed(2)} %`;
  return `${label} (${seriesNames[series ?? 'full']}): ${(cost.fileBytes / 1e6).toFixed(1)} MB, loss ${printed.loss ?? '–'}${change}`;
}

/** @param show told the row under the pointer or the focus */
export function lossChart(
  rows: readonly ComputedRow[],
  width: number,
  show: (row: ComputedRow) => void,
): SVGSVGElement {
  const megabytes = rows.map(({ cost }) => cost.fileBytes / 1e6);
  const losses = rows.map(({ printed }) => printed.loss ?? 0);
  const x = scaleLinear()
    .domain([Math.min(...megabytes), Math.max(...megabytes)])
    .nice(5)
    .range([margin.left, width - margin.right]);
  const y = scaleLinear()
    .domain([Math.min(...losses), Math.max(...losses)])
    .nice(5)
    .range([height - margin.bottom, margin.top]);
  const points = rows.map((row): Point => {
    return { row, x: x(row.cost.fileBytes / 1e6), y: y(row.printed.loss ?? 0) };
  });
  return svg(
    'svg',
    {
      class: 'chart loss-chart',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'group',
      'aria-label': 'Loss against file size, one point a row of the table',
    },
    axes(x, y, width),
    ...seriesLines(points),
    // A saved picture has no legend beside it.
    ...(width >= wideEnough ? seriesLabels(points) : []),
    ...points.map((point) => marker(point, show)),
  );
}

type Scale = ReturnType<typeof scaleLinear<number, number>>;

function axes(x: Scale, y: Scale, width: number): SVGGElement {
  const bottom = height - margin.bottom;
  const right = width - margin.right;
  return svg(
    'g',
    { 'aria-hidden': 'true' },
    ...x
      .ticks(width < 480 ? 4 : 8)
      .map((tick) =>
        svg(
          'g',
          {},
          svg('line', { class: 'grid', x1: x(tick), x2: x(tick), y1: margin.top, y2: bottom }),
          svg(
            'text',
            { class: 'tick', x: x(tick), y: bottom + 18, 'text-anchor': 'middle' },
            String(tick),
          ),
        ),
      ),
    ...y
      .ticks(5)
      .map((tick) =>
        svg(
          'g',
          {},
          svg('line', { class: 'grid', x1: margin.left, x2: right, y1: y(tick), y2: y(tick) }),
          svg(
            'text',
            { class: 'tick', x: margin.left - 8, y: y(tick) + 4, 'text-anchor': 'end' },
            tick.toFixed(2),
          ),
        ),
      ),
    svg('text', { class: 'label', x: right, y: height - 6, 'text-anchor': 'end' }, 'file size, MB'),
    svg('text', { class: 'label', x: margin.left + 4, y: margin.top + 12 }, 'validation loss'),
  );
}

/** Each series starts at the full head. */
function seriesLines(points: readonly Point[]): SVGPathElement[] {
  const path = line<Point>(
    (point) => point.x,
    (point) => point.y,
  );
  const full = points.find(({ row }) => row.series === 'full');
  const names = [...new Set(points.map(({ row }) => row.series))].filter((name) => name !== 'full');
  return names.map((name) => {
    const own = points.filter(({ row }) => row.series === name);
    const all = (full ? [full, ...own] : own).sort((a, b) => b.x - a.x);
    return svg('path', { class: `series ${seriesClass(name)}`, d: path(all) ?? '' });
  });
}

/** At each series' end that lies farthest from the full head. */
function seriesLabels(points: readonly Point[]): SVGTextElement[] {
  const full = points.find(({ row }) => row.series === 'full');
  const names = [...new Set(points.map(({ row }) => row.series))];
  return names.flatMap((name) => {
    const own = points.filter(({ row }) => row.series === name);
    const distance = ({ x }: Point) => Math.abs(x - (full?.x ?? 0));
    const end = own.sort((a, b) => distance(b) - distance(a))[0];
    if (!end) return [];
    const isFull = name === 'full';
    return [
      svg(
        'text',
        {
          class: 'label',
          x: end.x - (isFull ? 0 : 12),
          y: end.y + (isFull ? 24 : 4),
          'text-anchor': isFull ? 'middle' : 'end',
        },
        seriesNames[name ?? 'full'],
      ),
    ];
  });
}

export function seriesClass(name: Series | undefined): string {
  return `series-${(name ?? 'full').replaceAll(' ', '-')}`;
}

/** The sign of a series, for the legend. */
export function seriesSign(name: Series): SVGSVGElement {
  return svg(
    'svg',
    { class: 'chart sign', viewBox: '-9 -9 18 18', width: 18, height: 18, 'aria-hidden': 'true' },
    svg('path', {
      class: `marker ${seriesClass(name)}`,
      d: symbol(symbols[name], symbolArea)() ?? '',
    }),
  );
}

function marker({ row, x, y }: Point, show: (row: ComputedRow) => void): SVGPathElement {
  const name = row.series ?? 'full';
  const mark = svg('path', {
    class: `marker ${seriesClass(name)}`,
    d: symbol(symbols[name], symbolArea)() ?? '',
    transform: `translate(${x},${y})`,
    tabindex: 0,
    role: 'img',
    'aria-label': describePoint(row),
    'data-point': row.label,
  });
  for (const event of ['pointerenter', 'focus', 'click']) {
    mark.addEventListener(event, () => show(row));
  }
  return mark;
}
