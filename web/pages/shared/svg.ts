// SVG building, as dom.ts builds HTML. Text always becomes text nodes.
import type { Attributes } from './dom.js';

const svgNamespace = 'http://www.w3.org/2000/svg';

type SvgChild = Node | string | null | undefined | false;

/** An SVG element with attributes (false or undefined: absent) and children. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: SvgChild[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(svgNamespace, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, String(value));
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

/** Draws now and whenever the box gets another width; text keeps its size where a scaled picture would not. */
export function drawToWidth(box: HTMLElement, draw: (width: number) => Node): () => void {
  let drawn = 0;
  const redraw = () => {
    drawn = box.clientWidth;
    if (drawn > 0) box.replaceChildren(draw(drawn));
  };
  new ResizeObserver(() => {
    if (box.clientWidth !== drawn) redraw();
  }).observe(box);
  redraw();
  return redraw;
}
