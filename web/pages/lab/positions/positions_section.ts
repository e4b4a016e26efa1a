// The section "Positions": a scheme is chosen; its scores, frequencies or slopes are computed by the kernels.
import type { HeadLab } from 'headlight-wasm/lab';
import { byId, el } from '../../shared/dom.js';
import { NumberField } from '../bytes/fields.js';
import { shown } from '../hand/arithmetic.js';
import { type Kernels, Latest } from '../kernels.js';
import type { UrlState } from '../url_state.js';
import { AlibiView } from './alibi_view.js';
import {
  type AlibiHead,
  alibiHeads,
  changeByMoving,
  changeByShuffling,
  type Frequencies,
  frequencies,
  NoPosition,
  placed,
  sinusoidRows,
} from './compute.js';
import { alibiFacts, count, difference, ropeFacts, turnedError } from './facts.js';
import { RopeView } from './rope_view.js';
import {
  NUMBER_NAMES,
  NUMBERS,
  type NumberName,
  readSetup,
  SCALINGS,
  SCHEMES,
  type Scheme,
  type Setup,
  scalingTexts,
  schemeTexts,
  usedNumbers,
} from './schemes.js';
import { type ScoreLines, ScoreView, scoreLines } from './score_view.js';
import { TurnView } from './turn_view.js';

/** Enough to see whether moving changes anything; five schemes are measured. */
const measuredReach = 64;
const sinusoidShift = 7;
const nSinusoidRows = 5;
const nSinusoidPlaces = 6;

const examples: readonly { label: string; values: Readonly<Record<string, string>> }[] = [
  { label: 'NTK × 8, 128 wide', values: { poss: 'ntk' } },
  { label: 'YaRN × 16, 4,096 → 65,536', values: { poss: 'yarn', posf: '16' } },
  { label: 'Dynamic NTK × 2 at 8,192', values: { poss: 'dynamic', posf: '2', posc: '8192' } },
  {
    label: 'A 48-wide key, base 100,000',
    values: { posd: '48', posb: '100000', posp: 'half-split' },
  },
  { label: 'ALiBi, 12 heads', values: { pos: 'alibi', posh: '12' } },
];

interface Result {
  setup: Setup;
  lines: ScoreLines;
  measured: { scheme: Scheme; moved: number | undefined; shuffled: number }[];
  facts: string[];
  rope?: Frequencies;
  alibi?: AlibiHead[];
  rows?: number[][];
}

async function compute(lab: HeadLab, setup: Setup): Promise<Result> {
  const lines = await scoreLines(lab, setup);
  const measured: Result['measured'] = [];
  for (const scheme of SCHEMES) {
    const small = { ...setup, scheme, reach: measuredReach };
    const [moved, shuffled] = [
      await changeByMoving(lab, small),
      await changeByShuffling(lab, small),
    ];
    measured.push({ scheme, moved, shuffled });
  }
  const facts = [...lines.facts];
  const result = { setup, lines, measured, facts };
  if (setup.scheme === 'rope') {
    const rope = await frequencies(lab, setup);
    facts.push(...ropeFacts(setup, rope));
    return { ...result, rope };
  }
  if (setup.scheme === 'alibi') {
    const alibi = await alibiHeads(lab, setup.heads, setup.reach);
    facts.push(...alibiFacts(alibi.map(({ slope }) => slope)));
    return { ...result, alibi };
  }
  if (setup.scheme === 'sinusoidal') {
    const positions = Array.from({ length: nSinusoidRows + sinusoidShift }, (_, i) => i);
    const rows = await sinusoidRows(lab, positions, setup.dQk);
    const error = turnedError(rows[1] ?? [], rows[1 + sinusoidShift] ?? [], sinusoidShift);
    facts.push(
      `Position 0 adds 0, 1, 0, 1, …. Position ${1 + sinusoidShift} is position 1 with each pair turned by ${sinusoidShift} steps (at most ${difference(error)} off): the offset is a rotation.`,
    );
    return { ...result, rows: rows.slice(0, nSinusoidRows) };
  }
  if (setup.scheme === 'learned') facts.push(await endOfTable(lab, setup));
  return result;
}

/** What the scheme says of the first position behind its table. */
async function endOfTable(lab: HeadLab, setup: Setup): Promise<string> {
  try {
    await placed(lab, setup, new Float32Array(setup.dQk), [setup.trained]);
    return '';
  } catch (error) {
    if (error instanceof NoPosition) return error.message;
    throw error;
  }
}

export class PositionsSection {
  #state: UrlState;
  #kernels: Kernels;
  #latest: Latest;
  #scores: ScoreView;
  #rope: RopeView;
  #alibi: AlibiView;
  #turn: TurnView;
  #fields = new Map<NumberName, NumberField>();
  #scaling = byId('pos-scaling', HTMLSelectElement);
  #style = byId('pos-style', HTMLSelectElement);
  #vectors = byId('pos-vectors', HTMLSelectElement);

  constructor(state: UrlState, kernels: Kernels, failed: (message: string) => void) {
    [this.#state, this.#kernels, this.#latest] = [state, kernels, new Latest(failed)];
    this.#scores = new ScoreView(failed);
    this.#rope = new RopeView(failed);
    this.#alibi = new AlibiView(failed);
    this.#turn = new TurnView(state, kernels, failed);
    this.#scaling.append(...SCALINGS.map((name) => new Option(scalingTexts[name], name)));
    for (const [select, key, usual] of [
      [this.#scaling, 'poss', 'none'],
      [this.#style, 'posp', 'interleaved'],
      [this.#vectors, 'posv', 'equal'],
    ] as const)
      select.addEventListener('change', () =>
        this.#set({ [key]: select.value === usual ? undefined : select.value }),
      );
    for (const name of NUMBER_NAMES) this.#addField(name);
    this.#addExamples();
  }

  /** Resolves when every number stands. */
  async start(): Promise<void> {
    await Promise.all([this.#update(), this.#turn.update()]);
  }

  #addField(name: NumberName): void {
    const { key, usual, ...options } = NUMBERS[name];
    const field = new NumberField({ id: `pos-${key.slice(3)}`, ...options }, (value) => {
      const isUsual = value === (name === 'nRot' ? readSetup(this.#state).dQk : usual);
      this.#set({ [key]: isUsual ? undefined : String(value) });
    });
    this.#fields.set(name, field);
    byId('pos-fields', HTMLElement).append(field.root);
  }

  #addExamples(): void {
    for (const { label, values } of examples) {
      const button = el('button', { type: 'button', class: 'button' }, label);
      button.addEventListener('click', () => {
        const all = ['pos', 'poss', 'posp', ...NUMBER_NAMES.map((name) => NUMBERS[name].key)];
        this.#set({ ...Object.fromEntries(all.map((key) => [key, undefined])), ...values });
      });
      byId('pos-examples', HTMLElement).append(button);
    }
  }

  #set(values: Readonly<Record<string, string | undefined>>): void {
    for (const [key, value] of Object.entries(values)) this.#state.set(key, value);
    void this.#update();
  }

  async #update(): Promise<void> {
    const setup = readSetup(this.#state);
    this.#showControls(setup);
    await this.#latest.run(
      async () => compute(await this.#kernels.lab(), setup),
      (result) => this.#show(result),
    );
  }

  #showControls(setup: Setup): void {
    this.#scaling.value = setup.scaling;
    this.#style.value = setup.style;
    this.#vectors.value = setup.vectors;
    byId('pos-rope-choices', HTMLElement).hidden = setup.scheme !== 'rope';
    const used = usedNumbers(setup);
    for (const [name, field] of this.#fields) {
      field.show(setup[name]);
      field.root.hidden = !used.has(name);
    }
  }

  #show({ setup, lines, measured, facts, rope, alibi, rows }: Result): void {
    this.#showSchemes(setup, measured);
    this.#scores.show(lines);
    byId('pos-point', HTMLElement).textContent = schemeTexts[setup.scheme].point;
    byId('pos-facts', HTMLElement).replaceChildren(
      ...facts.filter((text) => text !== '').map((text) => el('li', {}, text)),
    );
    // Shown first: a chart draws itself to the width of its box.
    byId('pos-frequencies', HTMLElement).hidden = rope === undefined;
    byId('pos-alibi', HTMLElement).hidden = alibi === undefined;
    byId('pos-sinusoid', HTMLElement).hidden = rows === undefined;
    if (rope) this.#rope.show(setup, rope);
    if (alibi) this.#alibi.show(alibi);
    if (rows) showSinusoids(rows);
  }

  #showSchemes(setup: Setup, measured: Result['measured']): void {
    const titles = [
      'Scheme',
      'Where applied',
      'Absolute or relative',
      'Beyond the training length',
      `Moved by ${count(setup.moved)}, a score changes by`,
      'Another order of “dog bites man” changes a word by',
    ];
    const hadFocus = document.activeElement?.closest('#pos-schemes') != null;
    const body = measured.map(({ scheme, moved, shuffled }) => {
      const { name, where, kind, beyond } = schemeTexts[scheme];
      const isChosen = scheme === setup.scheme;
      const button = el(
        'button',
        { type: 'button', class: 'row-button', 'aria-pressed': String(isChosen) },
        name,
      );
      button.addEventListener('click', () =>
        this.#set({ pos: scheme === 'rope' ? undefined : scheme }),
      );
      return el(
        'tr',
        { 'data-scheme': scheme, ...(isChosen ? { class: 'chosen' } : {}) },
        el('th', { scope: 'row' }, button),
        ...[where, kind, beyond].map((text) => el('td', {}, text)),
        ...[difference(moved), difference(shuffled)].map((text) =>
          el('td', { class: 'measured' }, text),
        ),
      );
    });
    const table = byId('pos-schemes', HTMLTableElement);
    table.replaceChildren(
      el('thead', {}, el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)))),
      el('tbody', {}, ...body),
    );
    if (hadFocus) table.querySelector<HTMLElement>('[aria-pressed="true"]')?.focus();
  }
}

function showSinusoids(rows: readonly (readonly number[])[]): void {
  const places = Array.from({ length: nSinusoidPlaces }, (_, i) => i);
  const head = ['Position', ...places.map((i) => `${i % 2 === 0 ? 'sin' : 'cos'}, place ${i}`)];
  byId('pos-rows', HTMLTableElement).replaceChildren(
    el('thead', {}, el('tr', {}, ...head.map((title) => el('th', { scope: 'col' }, title)))),
    el(
      'tbody',
      {},
      ...rows.map((row, position) =>
        el(
          'tr',
          {},
          el('th', { scope: 'row' }, String(position)),
          ...places.flatMap((i) => (i < row.length ? [el('td', {}, shown(row[i] ?? 0))] : [])),
        ),
      ),
    ),
  );
}
