// Where a token's time goes: for each kind of work a bar for writing and one for reading the prompt.
import { scaleLinear } from 'd3-scale';
import { svg } from '../shared/svg.js';
import { formatMicroseconds, formatShare, type Stage } from './report.js';

const rowHeight = 46;
const barHeight = 14;
const numberWidth = 118;

export function stageChart(stages: readonly Stage[], width: number): SVGSVGElement {
  const sorted = [...stages].sort((a, b) => b.decode - a.decode);
  const labelWidth = width < 480 ? 112 : 160;
  const total = (pick: 'decode' | 'prefill') => stages.reduce((sum, stage) => sum + stage[pick], 0);
  const totals = { decode: total('decode'), prefill: total('prefill') };
  const share = (stage: Stage, pick: 'decode' | 'prefill') =>
    totals[pick] > 0 ? stage[pick] / totals[pick] : 0;
  const largest = Math.max(
    ...sorted.flatMap((stage) => [share(stage, 'decode'), share(stage, 'prefill')]),
  );
  const x = scaleLinear()
    .domain([0, Math.max(largest, 0.01)])
    .range([0, Math.max(20, width - labelWidth - numberWidth)]);
  const height = sorted.length * rowHeight;
  return svg(
    'svg',
    {
      class: 'rate-chart',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-label': `Time of a token: ${sorted
        .map(
          (stage) =>
            `${stage.name} ${formatShare(share(stage, 'decode'))} writing, ${formatShare(share(stage, 'prefill'))} reading`,
        )
        .join('; ')}`,
    },
    ...sorted.map((stage, i) =>
      svg(
        'g',
        { 'data-stage': stage.name },
        svg('text', { class: 'stage-name', x: 1, y: i * rowHeight + 25 }, stage.name),
        ...(['decode', 'prefill'] as const).flatMap((pick, b) => {
          const y = i * rowHeight + 4 + b * (barHeight + 3);
          return [
            svg('rect', {
              class: pick === 'decode' ? 'fill' : 'fill-2',
              x: labelWidth,
              y,
              width: Math.max(1, x(share(stage, pick))),
              height: barHeight,
              rx: 2,
            }),
            svg(
              'text',
              { class: 'bar-note', x: labelWidth + x(share(stage, pick)) + 6, y: y + 12 },
              `${formatShare(share(stage, pick))}, ${formatMicroseconds(stage[pick])}`,
            ),
          ];
        }),
      ),
    ),
  );
}
