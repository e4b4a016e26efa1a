// The table of all heads over the calibration text: what each is called and by which numbers.
import type { Engine } from 'headlight-wasm';
import { SURVEY_TEXT, type SurveyedHead, surveyHeads } from 'headlight-wasm/lab';
import { byId, el } from '../../shared/dom.js';
import { exportBar, type FigureData } from '../figure.js';
import { headName } from './look_data.js';

const columns = [
  ['previous', ({ metrics }: SurveyedHead) => metrics.previousToken],
  ['first token', ({ metrics }: SurveyedHead) => metrics.firstToken],
  ['induction', ({ metrics }: SurveyedHead) => metrics.induction],
  ['uniform', ({ metrics }: SurveyedHead) => metrics.uniform],
  ['entropy', ({ metrics }: SurveyedHead) => metrics.entropy],
  ['distance', ({ metrics }: SurveyedHead) => metrics.distance],
  ['spread', ({ spread }: SurveyedHead) => spread],
] as const;

/** The circuit knows letters only. */
const circuitText = 'Q F A D G H Q F A D G H K M P R T W K M P R T W '.repeat(4);

export class SurveyView {
  readonly #table = byId('look-labels', HTMLTableElement);
  readonly #status = byId('look-survey-status', HTMLElement);
  readonly #choose: (name: string) => void;
  #heads: SurveyedHead[] = [];
  #abort: AbortController | undefined;

  constructor(actions: { choose(name: string): void; failed(message: string): void }) {
    this.#choose = actions.choose;
    byId('look-survey-export', HTMLElement).append(
      exportBar('the heads', () => this.#data(), actions.failed),
    );
  }

  get isRunning(): boolean {
    return this.#abort !== undefined;
  }

  /** '' before the survey. */
  captionOf(name: string): string {
    return this.#heads.find((one) => headName(one) === name)?.label ?? '';
  }

  clear(): void {
    this.#abort?.abort();
    this.#heads = [];
    this.#status.textContent = '';
    byId('look-survey', HTMLElement).hidden = true;
  }

  cancel(): void {
    this.#abort?.abort();
  }

  /** Resolves to whether it came to its end. */
  async run(engine: Engine, isCircuit: boolean): Promise<boolean> {
    const abort = new AbortController();
    this.#abort = abort;
    try {
      const tokens = await engine.tokenize(isCircuit ? circuitText : SURVEY_TEXT);
      const partLength = Math.min(40, Math.floor(tokens.length / 2));
      this.#heads = await surveyHeads(engine, tokens, {
        partLength,
        signal: abort.signal,
        onProgress: (done, all) => {
          this.#status.textContent = `part ${done} of ${all}`;
        },
      });
      const nParts = Math.floor(tokens.length / partLength);
      this.#status.textContent = `${this.#heads.length} heads over ${nParts} parts of ${partLength} tokens`;
      this.#show();
      return true;
    } catch (error) {
      if (!abort.signal.aborted) throw error;
      this.#status.textContent = 'stopped';
      return false;
    } finally {
      this.#abort = undefined;
    }
  }

  #show(): void {
    const titles = ['Head', 'Called', 'Goes by', ...columns.map(([title]) => title)];
    const head = el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)));
    // What can be named comes first.
    const named = [...this.#heads].sort(
      (a, b) => Number(a.label === 'mixed') - Number(b.label === 'mixed'),
    );
    const rows = named.map((one) => {
      const name = headName(one);
      const button = el('button', { type: 'button', class: 'row-button' }, name);
      button.addEventListener('click', () => this.#choose(name));
      return el(
        'tr',
        { 'data-label-of': name },
        el('th', { scope: 'row' }, button),
        el('td', {}, one.label),
        el('td', {}, one.kind),
        ...columns.map(([, of]) => el('td', {}, of(one)?.toFixed(2) ?? '–')),
      );
    });
    this.#table.replaceChildren(el('thead', {}, head), el('tbody', {}, ...rows));
    byId('look-survey', HTMLElement).hidden = false;
  }

  #data(): FigureData {
    return {
      name: 'head-labels',
      columns: ['head', 'label', 'kind', ...columns.map(([title]) => title)],
      rows: this.#heads.map((one) => [
        headName(one),
        one.label,
        one.kind,
        ...columns.map(([, of]) => of(one) ?? ''),
      ]),
    };
  }
}
