// What every figure of the lab can do: be saved as SVG, PNG, CSV and JSON. A picture is drawn anew for the file, in the
// colours of the theme, with its styles written into it, since a file has no style sheet.
import { el } from '../shared/dom.js';
import { download } from '../shared/download.js';
import { messageOf } from '../shared/errors.js';
import { svg } from '../shared/svg.js';

export type Cell = string | number;

export interface FigureData {
  /** "loss-against-bytes": the file's name. */
  name: string;
  columns: readonly string[];
  rows: readonly (readonly Cell[])[];
  /** Left out: the rows are drawn as a table. */
  picture?: (width: number) => SVGSVGElement;
}

const pictureWidth = 900;
/** Sharp on paper and on dense screens. */
const pngScale = 2;

/** RFC 4180. */
export function toCsv({ columns, rows }: Pick<FigureData, 'columns' | 'rows'>): string {
  const field = (cell: Cell) => {
    const text = String(cell);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => `${row.map(field).join(',')}\r\n`).join('');
}

/** An array with one object a row. */
export function toJson({ columns, rows }: Pick<FigureData, 'columns' | 'rows'>): string {
  const objects = rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
  return `${JSON.stringify(objects, null, 2)}\n`;
}

const lineHeight = 26;

export function tablePicture({ columns, rows }: FigureData, width: number): SVGSVGElement {
  const lines = [columns, ...rows];
  const height = lines.length * lineHeight + 12;
  const step = width / columns.length;
  return svg(
    'svg',
    { class: 'chart', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img' },
    ...lines.map((line, row) =>
      svg(
        'g',
        {},
        ...line.map((cell, column) =>
          svg(
            'text',
            {
              class: row === 0 ? 'strong' : 'label',
              x: column * step + 4,
              y: row * lineHeight + 20,
            },
            shortCell(cell),
          ),
        ),
        svg('line', {
          class: 'grid',
          x1: 0,
          x2: width,
          y1: (row + 1) * lineHeight + 2,
          y2: (row + 1) * lineHeight + 2,
        }),
      ),
    ),
  );
}

function shortCell(cell: Cell): string {
  return typeof cell === 'number' ? String(Number(cell.toPrecision(7))) : cell;
}

const inlined = [
  'fill',
  'fill-opacity',
  'stroke',
  'stroke-width',
  'stroke-dasharray',
  'stroke-linejoin',
  'opacity',
  'font-family',
  'font-size',
  'font-weight',
  'text-anchor',
  'dominant-baseline',
] as const;

/** A copy that looks the same without the page's style sheet. */
export function standalone(picture: SVGSVGElement): SVGSVGElement {
  const stage = el('div', { class: 'visually-hidden', 'aria-hidden': 'true' }, picture);
  document.body.append(stage);
  const background = getComputedStyle(document.body).backgroundColor;
  for (const element of picture.querySelectorAll('*')) {
    const style = getComputedStyle(element);
    for (const name of inlined) element.setAttribute(name, style.getPropertyValue(name));
    element.removeAttribute('class');
    element.removeAttribute('tabindex');
  }
  stage.remove();
  const [width, height] = [picture.getAttribute('width'), picture.getAttribute('height')];
  picture.prepend(svg('rect', { width: width ?? '', height: height ?? '', fill: background }));
  picture.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  picture.removeAttribute('class');
  return picture;
}

export function toSvg(data: FigureData): string {
  const draw = data.picture ?? ((width: number) => tablePicture(data, width));
  return new XMLSerializer().serializeToString(standalone(draw(pictureWidth)));
}

export async function toPng(data: FigureData): Promise<Blob> {
  const text = toSvg(data);
  const url = URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = el('canvas', {
      width: image.naturalWidth * pngScale,
      height: image.naturalHeight * pngScale,
    });
    const context = canvas.getContext('2d');
    if (!context) throw new Error('This browser gives no canvas to draw a PNG on.');
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) =>
        blob ? resolve(blob) : reject(new Error('The browser made no PNG.')),
      ),
    );
  } finally {
    URL.revokeObjectURL(url);
  }
}

type Format = 'SVG' | 'PNG' | 'CSV' | 'JSON';

const makers: Record<Format, (data: FigureData) => Promise<Blob>> = {
  SVG: async (data) => new Blob([toSvg(data)], { type: 'image/svg+xml' }),
  PNG: toPng,
  CSV: async (data) => new Blob([toCsv(data)], { type: 'text/csv' }),
  JSON: async (data) => new Blob([toJson(data)], { type: 'application/json' }),
};

/** Four small buttons under a figure. */
export function exportBar(
  label: string,
  data: () => FigureData,
  failed: (message: string) => void,
): HTMLElement {
  const buttons = (Object.keys(makers) as Format[]).map((format) => {
    const button = el(
      'button',
      {
        type: 'button',
        class: 'text-button',
        'data-export': format.toLowerCase(),
        'aria-label': `Save ${label} as ${format}`,
      },
      format,
    );
    button.addEventListener('click', () => void save(format, data(), failed));
    return button;
  });
  return el('div', { class: 'export-bar' }, el('span', {}, 'Save as'), ...buttons);
}

async function save(
  format: Format,
  data: FigureData,
  failed: (message: string) => void,
): Promise<void> {
  try {
    const blob = await makers[format](data);
    download(blob, `headlight-${data.name}.${format.toLowerCase()}`, blob.type);
  } catch (error) {
    failed(`The picture could not be made: ${messageOf(error)}`);
  }
}
