// A head's map for the file: its numbers, and as SVG a square a weight, tokens along both sides.
import { svg } from '../../shared/svg.js';
import type { FigureData } from '../figure.js';
import { shadeOf } from './heat.js';
import { type HeadMap, headName, type LookData, pieceLabel } from './look_data.js';

const labelSpace = 90;
/** Below, a square cannot be told from none. */
const faintest = 1 / 255;
/** More labels would stand on each other. */
const maxLabels = 48;

export function mapFigure(data: LookData, map: HeadMap): FigureData {
  return {
    name: `attention-${headName(map.id)}`,
    columns: ['query', 'key', 'queryToken', 'keyToken', 'weight'],
    rows: map.rows.flatMap((row, i) =>
      Array.from(row, (weight, j) => [
        i,
        j,
        pieceLabel(data.pieces[i] ?? ''),
        pieceLabel(data.pieces[j] ?? ''),
        weight,
      ]),
    ),
    picture: (width) => mapPicture(data, map, width),
  };
}

function mapPicture(data: LookData, map: HeadMap, width: number): SVGSVGElement {
  const n = map.rows.length;
  const cell = (width - labelSpace) / Math.max(1, n);
  const step = Math.ceil(n / maxLabels);
  const shown = Array.from({ length: n }, (_, i) => i).filter((i) => i % step === 0);
  const label = (i: number) => pieceLabel(data.pieces[i] ?? '').slice(0, 10);
  const middle = (i: number) => labelSpace + (i + 0.5) * cell;
  return svg(
    'svg',
    { class: 'chart', viewBox: `0 0 ${width} ${width}`, width, height: width, role: 'img' },
    svg('text', { class: 'strong', x: 0, y: 14 }, `head ${headName(map.id)}`),
    ...shown.flatMap((i) => [
      svg(
        'text',
        { class: 'label', x: labelSpace - 6, y: middle(i) + 4, 'text-anchor': 'end' },
        label(i),
      ),
      svg(
        'text',
        {
          class: 'label',
          transform: `translate(${middle(i) + 4} ${labelSpace - 6}) rotate(-60)`,
        },
        label(i),
      ),
    ]),
    ...map.rows.flatMap((row, i) =>
      Array.from(row).flatMap((weight, j) =>
        shadeOf(weight) < faintest
          ? []
          : [
              svg('rect', {
                class: 'bar',
                x: (labelSpace + j * cell).toFixed(2),
                y: (labelSpace + i * cell).toFixed(2),
                width: cell.toFixed(2),
                height: cell.toFixed(2),
                'fill-opacity': shadeOf(weight).toFixed(3),
              }),
            ],
      ),
    ),
    svg('rect', {
      class: 'frame',
      x: labelSpace,
      y: labelSpace,
      width: width - labelSpace,
      height: width - labelSpace,
      fill: 'none',
    }),
  );
}
