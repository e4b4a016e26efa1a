// What one row says: where it looks most, and its numbers; beside it those of a pinned head.
import { byId, el } from '../../shared/dom.js';
import { drawToWidth } from '../../shared/svg.js';
import { type Series, weightBars } from '../hand/bars.js';
import {
  type HeadMap,
  headName,
  type LookData,
  largestKeys,
  pieceLabel,
  pieceName,
} from './look_data.js';

/** Keys that are shown as bars. */
const nShown = 8;

export class RowView {
  #data: LookData | undefined;
  #map: HeadMap | undefined;
  #pinned: HeadMap | undefined;
  #row = 0;
  readonly #redraw: () => void;

  constructor() {
    this.#redraw = drawToWidth(byId('look-bars', HTMLElement), (width) => this.#bars(width));
  }

  show(data: LookData, map: HeadMap, pinned: HeadMap | undefined, row: number): void {
    this.#data = data;
    this.#map = map;
    this.#pinned = pinned === map ? undefined : pinned;
    this.#row = row;
    const heads = [map, ...(this.#pinned ? [this.#pinned] : [])];
    byId('look-row-title', HTMLElement).replaceChildren(
      `Where ${pieceName(data.pieces[row] ?? '')} (position ${row}) looks in`,
      ...heads.flatMap(({ id }, i) => [
        i === 0 ? ' head ' : ' and head ',
        el('span', { class: `tone-${i + 1}` }, headName(id)),
      ]),
    );
    byId('look-facts', HTMLElement).replaceChildren(
      ...heads.map((one, i) => this.#facts(one, i + 1)),
    );
    this.#redraw();
  }

  #facts(map: HeadMap, tone: number): HTMLElement {
    const facts = map.facts(this.#row);
    const sink =
      facts.learnedSink > 0 ? ` and ${percent(facts.learnedSink)} to a learned sink` : '';
    return el(
      'li',
      { 'data-facts': headName(map.id) },
      el('span', { class: `tone-${tone}` }, `head ${headName(map.id)}`),
      `: ${percent(facts.firstToken)} on the first token${sink}; entropy ${facts.entropy.toFixed(2)} nats, as many as ${facts.effectiveTokens.toFixed(1)} equal tokens; ${facts.distance.toFixed(1)} tokens back on average`,
    );
  }

  #bars(width: number): Node {
    const { pieces = [] } = this.#data ?? {};
    const rows = [this.#map, this.#pinned].map((map) => map?.rows[this.#row] ?? new Float32Array());
    const keys = largestKeys(
      Float32Array.from(rows[0] ?? [], (weight, key) => Math.max(weight, rows[1]?.[key] ?? 0)),
      nShown,
    ).sort((a, b) => a - b);
    const series = [this.#map, this.#pinned].flatMap((map, i): Series[] =>
      map === undefined
        ? []
        : [
            {
              name: headName(map.id),
              tone: i === 0 ? 1 : 2,
              values: keys.map((key) => visible(rows[i]?.[key] ?? 0)),
            },
          ],
    );
    const labels = keys.map((key) => `${key} ${pieceLabel(pieces[key] ?? '').trim()}`);
    return weightBars(labels, series, width);
  }
}

/** What four digits would not show is nothing. */
const visible = (weight: number) => (weight < 5e-5 ? 0 : weight);

const percent = (share: number) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
