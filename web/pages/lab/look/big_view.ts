// One head enlarged: its map, and the text itself with every token shaded by the chosen row. Pointing at a token or at the
// map chooses a row; so do the arrow keys, which on the map read single weights, too.
import { arrowStep } from '../../shared/arrow_keys.js';
import { el } from '../../shared/dom.js';
import { drawHeat, type HeatColours, inkOn, mixed, shadeOf } from './heat.js';
import { type HeadMap, type LookData, pieceLabel, pieceName } from './look_data.js';

/** More steps could not be told apart. */
const nShades = 100;
/** Of a token that the row cannot see, and of a chip that was not drawn yet. */
const [laterShade, unshaded] = [-1, -2];

export class BigView {
  readonly #canvas: HTMLCanvasElement;
  readonly #marker: HTMLElement;
  readonly #strip: HTMLElement;
  readonly #note: HTMLElement;
  readonly #choose: (row: number, isSettled: boolean) => void;
  #data: LookData | undefined;
  #map: HeadMap | undefined;
  #chips: HTMLButtonElement[] = [];
  /** Chips in sight: of 512 some hundred. The others are shaded when they are scrolled to. */
  #visible = new Set<number>();
  #observer: IntersectionObserver | undefined;
  /** Shade of each chip, in steps. */
  #shown = new Int16Array();
  #colours: HeatColours | undefined;
  #row = 0;
  /** Row that is framed; the text may follow later. */
  #framed = 0;
  /** Column whose weight the keyboard reads. */
  #key = 0;

  /** @param choose isSettled: clicked or walked to, not only pointed at */
  constructor(
    { map, strip, note }: { map: HTMLElement; strip: HTMLElement; note: HTMLElement },
    choose: (row: number, isSettled: boolean) => void,
  ) {
    this.#choose = choose;
    this.#strip = strip;
    this.#note = note;
    this.#canvas = el('canvas', { class: 'look-canvas', role: 'img', tabindex: 0 });
    this.#marker = el('div', { class: 'look-marker', 'aria-hidden': 'true' });
    map.append(this.#canvas, this.#marker);
    this.#canvas.addEventListener('pointermove', (event) => this.#point(event, false));
    this.#canvas.addEventListener('pointerdown', (event) => this.#point(event, true));
    this.#canvas.addEventListener('keydown', (event) => this.#walkMap(event));
    strip.addEventListener('keydown', (event) => this.#walk(event));
    strip.addEventListener('pointerover', (event) => this.#pointAtChip(event, false));
    strip.addEventListener('click', (event) => this.#pointAtChip(event, true));
  }

  draw(data: LookData, map: HeadMap, colours: HeatColours): void {
    const n = map.rows.length;
    if (data !== this.#data || this.#chips.length !== data.pieces.length) this.#makeChips(data);
    this.#data = data;
    this.#map = map;
    drawHeat(this.#canvas, map.rows, n, colours);
    this.#canvas.setAttribute(
      'aria-label',
      `Attention of layer ${map.id.layer}, head ${map.id.head}: ${n} by ${n} weights; arrow keys read them`,
    );
    this.mark(this.#row, colours);
  }

  /** Shades the text by a row and frames the row in the map. Only what changes in sight is touched: a text may have 512 tokens. */
  mark(row: number, colours: HeatColours): void {
    const n = this.#map?.rows.length ?? 0;
    if (colours !== this.#colours) this.#shown.fill(unshaded);
    this.#colours = colours;
    this.#press(this.#row, false);
    this.#press(row, true);
    this.#row = row;
    for (const key of this.#visible) this.#shade(key);
    this.frame(row);
    this.#marker.style.setProperty('--row-height', `${100 / Math.max(1, n)}%`);
    this.#marker.hidden = n === 0;
  }

  /** Frames the row in the map and leaves the text: cheap enough for every frame. */
  frame(row: number): void {
    this.#framed = row;
    // A `top` would lay the page out anew.
    const n = this.#map?.rows.length ?? 0;
    this.#marker.style.transform = `translateY(${(100 * row) / Math.max(1, n)}%)`;
  }

  #shade(key: number): void {
    const [chip, colours] = [this.#chips[key], this.#colours];
    if (chip === undefined || colours === undefined) return;
    const weight = this.#map?.rows[this.#row]?.[key] ?? 0;
    const isLater = key > this.#row;
    const shade = isLater ? laterShade : Math.round(nShades * shadeOf(weight));
    if (this.#shown[key] === shade) return;
    this.#shown[key] = shade;
    chip.classList.toggle('is-later', isLater);
    const colour = mixed(colours.low, colours.high, Math.max(0, shade) / nShades);
    chip.style.backgroundColor = `rgb(${colour.join(' ')})`;
    chip.style.color = inkOn(colour);
  }

  #press(row: number, isPressed: boolean): void {
    const chip = this.#chips[row];
    if (chip === undefined) return;
    chip.setAttribute('aria-pressed', String(isPressed));
    chip.tabIndex = isPressed ? 0 : -1;
  }

  #makeChips(data: LookData): void {
    this.#chips = data.pieces.map((piece, position) =>
      el(
        'button',
        {
          type: 'button',
          class: 'look-chip',
          'data-row': position,
          'aria-pressed': 'false',
          tabindex: -1,
          'aria-label': `${pieceLabel(piece)}, position ${position}`,
        },
        pieceLabel(piece),
      ),
    );
    this.#shown = new Int16Array(this.#chips.length).fill(unshaded);
    this.#row = 0;
    this.#strip.replaceChildren(...this.#chips);
    this.#visible = new Set(this.#chips.keys());
    this.#observer?.disconnect();
    this.#observer = new IntersectionObserver((entries) => this.#seen(entries), {
      root: this.#strip,
    });
    for (const chip of this.#chips) this.#observer.observe(chip);
  }

  #seen(entries: IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting } of entries) {
      const key = Number((target as HTMLElement).dataset.row);
      if (isIntersecting) {
        this.#visible.add(key);
        this.#shade(key);
      } else {
        this.#visible.delete(key);
      }
    }
  }

  #point(event: PointerEvent, isSettled: boolean): void {
    const n = this.#map?.rows.length ?? 0;
    const box = this.#canvas.getBoundingClientRect();
    const row = Math.floor(((event.clientY - box.top) / box.height) * n);
    const key = Math.floor(((event.clientX - box.left) / box.width) * n);
    if (row < 0 || row >= n) return;
    if (row !== this.#framed || isSettled) this.#choose(row, isSettled);
    this.#say(row, key);
  }

  /** Up and down to another token that looks, left and right along what it looks at. */
  #walkMap(event: KeyboardEvent): void {
    const step = arrowStep(event);
    const last = (this.#map?.rows.length ?? 0) - 1;
    if (step === undefined || last < 0) return;
    event.preventDefault();
    const within = (at: number) => Math.min(last, Math.max(0, at));
    const row = within(this.#row + step[0]);
    if (row !== this.#row) this.#choose(row, true);
    this.#say(row, within(this.#key + step[1]));
  }

  #say(row: number, key: number): void {
    this.#key = key;
    const [from, to] = [this.#data?.pieces[row] ?? '', this.#data?.pieces[key] ?? ''];
    const weight = this.#map?.rows[row]?.[key];
    this.#note.textContent =
      weight === undefined
        ? `${pieceName(from)} cannot see what comes after it.`
        : `${pieceName(from)} (${row}) → ${pieceName(to)} (${key}): ${weight.toFixed(4)}`;
  }

  #pointAtChip(event: Event, isSettled: boolean): void {
    const chip = event.target instanceof Element ? event.target.closest('.look-chip') : null;
    if (chip instanceof HTMLElement) this.#choose(Number(chip.dataset.row), isSettled);
  }

  #walk(event: KeyboardEvent): void {
    const last = this.#chips.length - 1;
    const to: Record<string, number> = {
      ArrowLeft: this.#row - 1,
      ArrowRight: this.#row + 1,
      Home: 0,
      End: last,
    };
    const row = to[event.key];
    if (row === undefined || row < 0 || row > last) return;
    event.preventDefault();
    this.#choose(row, true);
    this.#chips[row]?.focus();
  }
}
