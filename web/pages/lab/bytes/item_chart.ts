// Where the parameters are: one bar a kind of weight, longest first.

import { scaleLinear } from 'd3-scale';
import type { LayoutCost } from 'headlight-wasm/lab';
import { svg } from '../../shared/svg.js';
import { largeNumber } from './units.js';

const rowHeight = 36;
const barHeight = 8;

export function itemChart({ items, parameters }: LayoutCost, width: number): SVGSVGElement {
  const sorted = [...items].sort((a, b) => b.parameters - a.parameters);
  const x = scaleLinear()
    .domain([0, sorted[0]?.parameters ?? 1])
    .range([0, width - 2]);
  const height = sorted.length * rowHeight;
  return svg(
    'svg',
    {
      class: 'chart item-chart',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-label': `Parameters: ${sorted.map(({ name, parameters: n }) => `${name} ${largeNumber(n)}`).join(', ')}`,
    },
    ...sorted.map((item, i) => {
      const top = i * rowHeight;
      const share = `${((100 * item.parameters) / parameters).toFixed(1)} %`;
      return svg(
        'g',
        { 'data-item': item.name },
        svg('text', { class: 'strong', x: 1, y: top + 16 }, item.name),
        svg(
          'text',
          { class: 'label', x: width - 1, y: top + 16, 'text-anchor': 'end' },
          width < 480
            ? `${largeNumber(item.parameters)}, ${share}`
            : `${item.formula} = ${largeNumber(item.parameters)}, ${share}`,
        ),
        svg('rect', {
          class: item.isUsedPerToken ? 'bar' : 'bar idle',
          x: 1,
          y: top + 21,
          width: Math.max(1, x(item.parameters)),
          height: barHeight,
          rx: 2,
        }),
      );
    }),
  );
}
