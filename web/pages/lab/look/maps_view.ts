// Every layer and head as a small map: one button each, of which one is chosen. Arrow keys walk.
import { el } from '../../shared/dom.js';
import { drawHeat, type HeatColours } from './heat.js';
import { type HeadId, headName, type LookData } from './look_data.js';

/** Small maps are at most this many rows and columns: the last ones. More could not be seen. */
const maxSide = 96;
/** Under a map as wide as a thumb; the whole label is in the button's name. */
const shortLabels: Readonly<Record<string, string>> = {
  'previous-token': 'prev.',
  'first-token sink': 'sink',
  induction: 'ind.',
  uniform: 'unif.',
  mixed: '',
};
/** Heads beside each other. */
const maxColumns = 8;

export class MapsView {
  readonly #box: HTMLElement;
  readonly #choose: (id: HeadId) => void;
  readonly #buttons = new Map<string, HTMLButtonElement>();
  #grid: HeadId[][] = [];
  #chosen = '';

  constructor(box: HTMLElement, choose: (id: HeadId) => void) {
    this.#box = box;
    this.#choose = choose;
    box.addEventListener('keydown', (event) => this.#walk(event));
  }

  draw(data: LookData, colours: HeatColours, captionOf: (id: HeadId) => string): void {
    this.#grid = data.layers.map((layer) =>
      [...data.maps.values()].map(({ id }) => id).filter((id) => id.layer === layer),
    );
    this.#buttons.clear();
    const rows = this.#grid.map((heads) => {
      const buttons = heads.map((id) => this.#button(data, id, colours, captionOf(id)));
      const row = el('div', { class: 'look-heads' }, ...buttons);
      // Not by an attribute: the page's policy refuses those.
      row.style.setProperty('--heads', String(Math.min(heads.length, maxColumns)));
      const name = `layer ${heads[0]?.layer}`;
      const label = el('span', { class: 'look-layer-name' }, name);
      return el('div', { role: 'group', 'aria-label': name }, label, row);
    });
    this.#box.replaceChildren(...rows);
    this.mark(this.#chosen);
  }

  mark(name: string): void {
    this.#chosen = name;
    for (const [key, button] of this.#buttons) {
      const isChosen = key === name;
      button.setAttribute('aria-pressed', String(isChosen));
      button.tabIndex = isChosen ? 0 : -1;
    }
  }

  #button(data: LookData, id: HeadId, colours: HeatColours, caption: string): HTMLButtonElement {
    const canvas = el('canvas', { 'aria-hidden': 'true' });
    const rows = data.map(id)?.rows ?? [];
    const skipped = Math.max(0, rows.length - maxSide);
    drawHeat(
      canvas,
      rows.slice(skipped).map((row) => row.subarray(skipped)),
      rows.length - skipped,
      colours,
    );
    const label = `Layer ${id.layer}, head ${id.head}${caption === '' ? '' : `: ${caption}`}`;
    const button = el(
      'button',
      {
        type: 'button',
        class: 'look-map',
        'data-head': headName(id),
        'aria-label': label,
        title: label,
      },
      canvas,
      el('span', {}, `${id.head} ${shortLabels[caption] ?? caption}`),
    );
    button.addEventListener('click', () => this.#choose(id));
    this.#buttons.set(headName(id), button);
    return button;
  }

  #walk(event: KeyboardEvent): void {
    const steps: Record<string, readonly [number, number]> = {
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const row = this.#grid.findIndex((heads) => heads.some((id) => headName(id) === this.#chosen));
    const column = this.#grid[row]?.findIndex((id) => headName(id) === this.#chosen) ?? 0;
    const heads = this.#grid[row + step[0]];
    const to = heads?.[Math.min(column + step[1], (heads.length ?? 1) - 1)];
    if (to === undefined) return;
    this.#choose(to);
    this.#buttons.get(headName(to))?.focus();
  }
}
