// Lines over a common axis, a mark each point; shapes as well as colours tell them apart. Marks can be hovered and focused.
import { scaleLinear } from 'd3-scale';
import { line, symbol, symbolCircle, symbolDiamond, symbolSquare, symbolTriangle } from 'd3-shape';
import { svg } from '../shared/svg.js';

export interface LineSeries {
  name: string;
  points: readonly (readonly [x: number, y: number])[];
}

export interface LineChartOptions {
  label: string;
  xLabel: string;
  yLabel: string;
  width: number;
  series: readonly LineSeries[];
  /** Marks only at these many points or fewer. Default 40. */
  maxMarks?: number;
  /** Told the mark under the pointer or the focus, in words. */
  show?: (text: string) => void;
}

const height = 280;
const margin = { top: 18, right: 16, bottom: 42, left: 52 };
const symbols = [symbolCircle, symbolSquare, symbolTriangle, symbolDiamond];
const classes = ['line-0', 'line-1', 'line-2', 'line-3'];
const symbolArea = 64;

export function short(value: number): string {
  return String(Number(value.toPrecision(4)));
}

export function lineChart(options: LineChartOptions): SVGSVGElement {
  const { label, width, series, show, maxMarks = 40 } = options;
  const xs = series.flatMap(({ points }) => points.map(([x]) => x));
  const ys = series.flatMap(({ points }) => points.map(([, y]) => y));
  const x = scaleLinear()
    .domain([Math.min(...xs), Math.max(...xs)])
    .range([margin.left, width - margin.right]);
  const y = scaleLinear()
    .domain([Math.min(0, ...ys), Math.max(...ys, 1e-9)])
    .nice(5)
    .range([height - margin.bottom, margin.top]);
  const path = line<readonly [number, number]>(
    ([at]) => x(at),
    ([, value]) => y(value),
  );
  return svg(
    'svg',
    {
      ...{ class: 'chart', viewBox: `0 0 ${width} ${height}`, width, height, role: 'group' },
      'aria-label': label,
    },
    axes(options, x, y),
    ...series.map(({ points }, i) =>
      svg('path', { class: `series ${classes[i % 4]}`, d: path(points) ?? '' }),
    ),
    ...series.flatMap(({ name, points }, i) =>
      points.length > maxMarks
        ? []
        : points.map(([at, value]) => {
            const text = `${name}: ${short(value)} at ${options.xLabel} ${short(at)}`;
            const mark = svg('path', {
              class: `marker ${classes[i % 4]}`,
              d: symbol(symbols[i % 4], symbolArea)() ?? '',
              transform: `translate(${x(at)},${y(value)})`,
              ...{ tabindex: 0, role: 'img', 'aria-label': text },
            });
            for (const event of ['pointerenter', 'focus', 'click'])
              mark.addEventListener(event, () => show?.(text));
            return mark;
          }),
    ),
  );
}

type Scale = ReturnType<typeof scaleLinear<number, number>>;

function axes({ xLabel, yLabel, width }: LineChartOptions, x: Scale, y: Scale): SVGGElement {
  const bottom = height - margin.bottom;
  const right = width - margin.right;
  return svg(
    'g',
    { 'aria-hidden': 'true' },
    ...x
      .ticks(width < 480 ? 4 : 8)
      // Between layers there is none.
      .filter((tick) => Number.isInteger(tick) || x.domain().some((end) => !Number.isInteger(end)))
      .map((tick) =>
        svg(
          'text',
          { class: 'tick', x: x(tick), y: bottom + 18, 'text-anchor': 'middle' },
          short(tick),
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
            short(tick),
          ),
        ),
      ),
    svg('text', { class: 'label', x: right, y: height - 6, 'text-anchor': 'end' }, xLabel),
    svg('text', { class: 'label', x: margin.left + 4, y: margin.top - 6 }, yLabel),
  );
}

/** The sign and the name of each line, for the legend. */
export function lineLegend(names: readonly string[]): HTMLLIElement[] {
  return names.map((name, i) => {
    const item = document.createElement('li');
    item.append(
      svg(
        'svg',
        {
          class: 'chart sign',
          viewBox: '-9 -9 18 18',
          width: 18,
          height: 18,
          'aria-hidden': 'true',
        },
        svg('path', {
          class: `marker ${classes[i % 4]}`,
          d: symbol(symbols[i % 4], symbolArea)() ?? '',
        }),
      ),
      name,
    );
    return item;
  });
}
