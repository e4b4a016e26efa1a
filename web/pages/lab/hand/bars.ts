// Weights as bars: for each label one bar a series, with its number.
import { scaleLinear } from 'd3-scale';
import { svg } from '../../shared/svg.js';
import { shown } from './arithmetic.js';

export interface Series {
  name: string;
  /** Of the CSS: bar-1, bar-2, ... */
  tone: 1 | 2;
  values: readonly number[];
}

const barHeight = 16;
const barGap = 3;
const groupGap = 12;
const numberWidth = 70;
const namedWidth = 130;

export interface BarOptions {
  /** Each number is followed by its series' name. */
  isNamed?: boolean;
}

export function weightBars(
  labels: readonly string[],
  series: readonly Series[],
  width: number,
  { isNamed = false }: BarOptions = {},
): SVGSVGElement {
  const labelWidth = Math.min(110, 16 + 8 * Math.max(...labels.map((label) => label.length)));
  const x = scaleLinear()
    .domain([0, 1])
    .range([0, Math.max(10, width - labelWidth - (isNamed ? namedWidth : numberWidth))]);
  const groupHeight = series.length * (barHeight + barGap) + groupGap;
  const height = labels.length * groupHeight;
  const sentence = series
    .map(
      ({ name, values }) =>
        `${name}: ${labels.map((label, i) => `${label} ${shown(values[i] ?? 0, 3)}`).join(', ')}`,
    )
    .join('. ');
  return svg(
    'svg',
    {
      class: 'chart weight-bars',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-label': sentence,
    },
    ...labels.map((label, i) => {
      const top = i * groupHeight + groupGap / 2;
      const middle = top + (series.length * (barHeight + barGap)) / 2;
      return svg(
        'g',
        {},
        svg('text', { class: 'strong', x: 0, y: middle + 3 }, label),
        ...series.flatMap(({ tone, values, name }, s) => {
          const value = values[i] ?? 0;
          const y = top + s * (barHeight + barGap);
          return [
            svg('rect', {
              class: 'bar-track',
              x: labelWidth,
              y,
              width: x(1),
              height: barHeight,
              rx: 2,
            }),
            svg('rect', {
              class: `bar-${tone}`,
              x: labelWidth,
              y,
              width: Math.max(0, x(value)),
              height: barHeight,
              rx: 2,
            }),
            svg(
              'text',
              { class: 'label', x: labelWidth + x(1) + 8, y: y + 12.5 },
              isNamed ? `${shown(value, 4)} ${name}` : shown(value, 4),
            ),
          ];
        }),
      );
    }),
  );
}
