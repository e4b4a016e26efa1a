// "Tile by tile": online softmax over the seven-token row, a step a click, next to what the kernels give for the keys so far.
import { byId, el } from '../../shared/dom.js';
import { NumberField } from '../bytes/fields.js';
import { exportBar, type FigureData } from '../figure.js';
import { type Kernels, Latest } from '../kernels.js';
import type { UrlState } from '../url_state.js';
import { shown } from './arithmetic.js';
import { type OnlineStep, onlineSteps } from './online_steps.js';
import { sevenTokens } from './seven_rows.js';
import type { SevenState } from './seven_tokens.js';

/** What each token carries: two numbers, so that the blend can be followed. */
export const onlineValues: readonly (readonly number[])[] = [
  [1, 0],
  [0, 1],
  [1, 1],
  [2, 0],
  [0, 2],
  [1, 2],
  [2, 1],
];
const dV = 2;
const defaultTile = 3;

interface KernelResults {
  /** After each step, [dV]. */
  prefixes: number[][];
  reference: number[];
  tiled: number[];
}

export class Online {
  #state: UrlState;
  #kernels: Kernels;
  #latest: Latest;
  #tile: NumberField;
  #row: SevenState | undefined;
  #steps: OnlineStep[] = [];
  #results: KernelResults | undefined;
  #next = byId('online-next', HTMLButtonElement);
  #back = byId('online-back', HTMLButtonElement);

  constructor(state: UrlState, kernels: Kernels, failed: (message: string) => void) {
    this.#state = state;
    this.#kernels = kernels;
    this.#latest = new Latest(failed);
    this.#tile = new NumberField(
      {
        id: 'online-tile',
        label: 'Keys in a tile',
        min: 1,
        max: sevenTokens.length,
        slideTo: sevenTokens.length,
      },
      (value) => {
        this.#state.set('tile', value === defaultTile ? undefined : value);
        this.#state.set('step', undefined);
        void this.update();
      },
    );
    byId('online-fields', HTMLElement).append(this.#tile.root);
    this.#next.addEventListener('click', () => this.#go(1));
    this.#back.addEventListener('click', () => this.#go(-1));
    byId('online-all', HTMLButtonElement).addEventListener('click', () =>
      this.#go(sevenTokens.length),
    );
    byId('online-export', HTMLElement).append(exportBar('the steps', () => this.#data(), failed));
  }

  /** The row of the section above. */
  async showRow(row: SevenState): Promise<void> {
    this.#row = row;
    await this.update();
  }

  async update(): Promise<void> {
    const row = this.#row;
    if (!row) return;
    const tileSize = Math.round(this.#state.number('tile', 1, sevenTokens.length) ?? defaultTile);
    this.#tile.show(tileSize);
    const scale = 1 / Math.sqrt(row.dQk);
    const scores = row.scores.map((score) => score * scale);
    this.#steps = onlineSteps(scores, onlineValues, tileSize);
    await this.#latest.run(
      () => this.#compute(row.scores, scale, this.#steps),
      (results) => {
        this.#results = results;
        this.#show();
      },
    );
  }

  async #compute(
    scores: readonly number[],
    scale: number,
    steps: readonly OnlineStep[],
  ): Promise<KernelResults> {
    const lab = await this.#kernels.lab();
    const run = async (nKv: number, kernel: 'reference' | 'tiled') => {
      const { out } = await lab.attend({
        nQHeads: 1,
        nKvHeads: 1,
        dQk: 1,
        dV,
        q: Float32Array.of(1),
        k: Float32Array.from(scores.slice(0, nKv)),
        v: Float32Array.from(onlineValues.slice(0, nKv).flat()),
        scale,
        kernel,
      });
      return [...out];
    };
    const prefixes: number[][] = [];
    for (const { end } of steps) prefixes.push(await run(end, 'tiled'));
    const n = scores.length;
    return { prefixes, reference: await run(n, 'reference'), tiled: await run(n, 'tiled') };
  }

  #position(): number {
    return Math.min(
      Math.round(this.#state.number('step', 1, sevenTokens.length) ?? 1),
      this.#steps.length,
    );
  }

  #go(by: number): void {
    const step = Math.max(1, Math.min(this.#steps.length, this.#position() + by));
    this.#state.set('step', step === 1 ? undefined : step);
    this.#show();
  }

  #show(): void {
    const results = this.#results;
    if (!results) return;
    const position = this.#position();
    const titles = ['Tile', 'm', 'old sums ×', 'l', 'acc', 'acc / l', 'Kernel on these keys'];
    const head = el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)));
    const pair = (values: readonly number[]) => values.map((value) => shown(value)).join(', ');
    const body = this.#steps.slice(0, position).map((step, i) => {
      const keys = sevenTokens.slice(step.start, step.end).join(' ');
      const cells = [
        shown(step.m),
        i === 0 ? '–' : shown(step.factor),
        shown(step.l),
        pair(step.acc),
        pair(step.out),
        pair(results.prefixes[i] ?? []),
      ];
      return el(
        'tr',
        { class: i === position - 1 ? 'chosen' : undefined },
        el('th', { scope: 'row' }, keys),
        ...cells.map((cell) => el('td', {}, cell)),
      );
    });
    byId('online-table', HTMLTableElement).replaceChildren(
      el('thead', {}, head),
      el('tbody', {}, ...body),
    );
    byId('online-text', HTMLElement).textContent = this.#sentence(position, results);
    this.#back.disabled = position === 1;
    this.#next.disabled = position === this.#steps.length;
  }

  #sentence(position: number, { reference, tiled }: KernelResults): string {
    const step = this.#steps[position - 1];
    if (!step) return '';
    if (position === this.#steps.length) {
      const difference = Math.max(
        ...reference.map((value, d) =>
          Math.max(Math.abs(value - (step.out[d] ?? 0)), Math.abs(value - (tiled[d] ?? 0))),
        ),
      );
      return (
        `All keys are done: ${step.out.map((value) => shown(value)).join(', ')}, the two-pass result of the reference ` +
        `kernel to ${difference.toExponential(0)}. No row of scores was ever stored.`
      );
    }
    if (position === 1) return 'The first tile sets the maximum m, the sum l and the blend acc.';
    return step.factor === 1
      ? 'No larger score in this tile: the old sums stay as they are, the tile is added.'
      : `A larger score: the old sums are multiplied by e^(m_old − m_new) = ${shown(step.factor)}, then the tile is added.`;
  }

  #data(): FigureData {
    return {
      name: 'online-softmax',
      columns: ['tile', 'm', 'factor', 'l', 'acc0', 'acc1', 'out0', 'out1', 'kernel0', 'kernel1'],
      rows: this.#steps.map((step, i) => [
        sevenTokens.slice(step.start, step.end).join(' '),
        step.m,
        step.factor,
        step.l,
        ...step.acc,
        ...step.out,
        ...(this.#results?.prefixes[i] ?? []),
      ]),
    };
  }
}
