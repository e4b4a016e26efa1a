// The section "Change the loaded model": an edit on the left, what it costs on the right, what was tried below.
import type { EngineSession } from 'headlight-wasm';
import type { HeadRef, LabModel, ModelCalibration, ModelLab } from 'headlight-wasm/lab';
import { byId, el } from '../../shared/dom.js';
import { download } from '../../shared/download.js';
import { messageOf } from '../../shared/errors.js';
import { exportBar, type FigureData } from '../figure.js';
import { Latest } from '../kernels.js';
import { type LoadedModel, whenSeen } from '../loaded_model.js';
import { StopButton } from '../stop_button.js';
import type { UrlState } from '../url_state.js';
import { changeChart, triedChart } from './change_chart.js';
import { editControls } from './controls.js';
import {
  describe,
  type EditState,
  headKey,
  isNothing,
  modelEdit,
  NOTHING,
  readState,
  sessionKeeps,
  writeState,
} from './edit_state.js';
import { extremeHeads } from './extremes.js';
import { figureRows, type Measured, percent, verdict, weightsRead } from './figures.js';
import { headsGrid } from './heads_grid.js';

const writtenTokens = 40;

interface Tried extends Measured {
  state: EditState;
}

export class ChangeSection {
  #url: UrlState;
  #model: LoadedModel;
  #latest: Latest;
  #state: EditState;
  #tried: Tried[] = [];
  #measuring: StopButton;
  #status = byId('edit-status', HTMLElement);
  #prompt = byId('edit-prompt', HTMLInputElement);

  constructor(url: UrlState, model: LoadedModel, failed: (message: string) => void) {
    [this.#url, this.#model, this.#latest] = [url, model, new Latest(failed)];
    this.#state = readState(url);
    this.#measuring = new StopButton({
      button: byId('edit-measure', HTMLButtonElement),
      status: this.#status,
      label: 'Measure',
      run: (signal) => this.#measure(signal),
      failed,
    });
    byId('edit-undo', HTMLButtonElement).addEventListener('click', () => this.#restore(NOTHING));
    byId('edit-export', HTMLButtonElement).addEventListener('click', () => void this.#export());
    byId('change-figure-export', HTMLElement).append(
      exportBar('the comparison', () => this.#figures(), failed),
    );
    byId('tried-export', HTMLElement).append(
      exportBar('what was tried', () => this.#history(), failed),
    );
    model.onChange(() => {
      this.#measuring.stop();
      this.#tried = [];
      byId('edit-results', HTMLElement).hidden = true;
      this.#restore(NOTHING);
    });
  }

  start(): void {
    whenSeen(byId('change', HTMLElement), () => void this.#showControls());
  }

  async #showControls(): Promise<void> {
    await this.#drawAll();
    if (!isNothing(this.#state) && this.#tried.length === 0) await this.#measuring.start();
  }

  /** What was asked of a model that is no longer the chosen one ends without a word. */
  async #drawAll(): Promise<void> {
    await this.#latest.run(
      async () => {
        const lab = await this.#model.lab();
        this.#draw(lab);
        return { lab, calibration: await lab.calibrate() };
      },
      ({ lab, calibration }) => {
        this.#drawHeads(lab, calibration);
        this.#drawExperiments(calibration);
      },
    );
  }

  #draw(lab: ModelLab): void {
    const { layers } = lab.original;
    byId('edit-controls', HTMLElement).replaceChildren(
      editControls({
        ...{ layers, nCtx: lab.info.nCtx, state: this.#state },
        changed: (change) => this.#change({ ...this.#state, ...change }),
      }),
    );
    this.#drawHeads(lab, undefined);
    this.#change(this.#state);
  }

  #drawHeads(lab: ModelLab, calibration: Parameters<typeof headsGrid>[0]['calibration']): void {
    const grid = headsGrid({
      ...{ layers: lab.original.layers, calibration },
      fateOf: (key) => this.#state.heads.get(key) ?? 'stays',
      changed: (key, fate) => {
        const heads = new Map(this.#state.heads);
        if (fate === 'stays') heads.delete(key);
        else heads.set(key, fate);
        this.#change({ ...this.#state, heads });
      },
    });
    byId('edit-heads', HTMLElement).replaceChildren(grid);
  }

  /** Edits that answer a question of the articles, one click each. */
  #drawExperiments(calibration: ModelCalibration): void {
    const extremes = extremeHeads(calibration);
    if (extremes === undefined) return;
    const { fixed, content } = extremes;
    const spread = (value: number) => `(spread ${value.toFixed(2)})`;
    const withHead = (head: HeadRef, fate: 'pruned' | 'fixed') => ({
      ...NOTHING,
      heads: new Map([[headKey(head), fate]]),
    });
    const experiments: readonly (readonly [label: string, state: EditState])[] = [
      [
        `Replace ${headKey(fixed)}, the most fixed head ${spread(fixed.spread)}`,
        withHead(fixed, 'fixed'),
      ],
      [
        `Prune ${headKey(content)}, the most content-based ${spread(content.spread)}`,
        withHead(content, 'pruned'),
      ],
      ['Keep 4 first and 48 last keys', { ...NOTHING, keep: 'sinks' }],
      ['The same without the first', { ...NOTHING, keep: 'sinks', sinks: 0 }],
    ];
    const buttons = experiments.map(([label, state]) => {
      const button = el('button', { type: 'button', class: 'button' }, label);
      button.addEventListener('click', () => {
        this.#restore(state);
        void this.#measuring.start();
      });
      return button;
    });
    const box = byId('edit-try', HTMLElement);
    box.replaceChildren(el('span', { class: 'hint' }, 'Try'), ...buttons);
  }

  #change(state: EditState): void {
    this.#state = state;
    writeState(state, this.#url);
    byId('edit-name', HTMLElement).textContent = describe(state);
    byId('edit-undo', HTMLButtonElement).disabled = isNothing(state);
  }

  #restore(state: EditState): void {
    this.#change(state);
    void this.#drawAll();
  }

  async #measure(signal: AbortSignal): Promise<void> {
    let edited: LabModel | undefined;
    try {
      const lab = await this.#model.lab();
      const state = this.#state;
      const report = (share: number, what: string) => {
        this.#status.textContent = `${what}: ${Math.round(100 * share)} %`;
      };
      if (this.#tried.length === 0) {
        const before = await this.#measured(lab, lab.original, NOTHING, signal, (share, what) =>
          report(share / 2, `as loaded, ${what}`),
        );
        this.#tried.push(before);
      }
      edited = await lab.edit(modelEdit(state), { signal });
      const after = await this.#measured(lab, edited, state, signal, (share, what) =>
        report((1 + share) / 2, what),
      );
      const at = this.#tried.findIndex(({ label }) => label === after.label);
      if (at > 0) this.#tried.splice(at, 1);
      this.#tried.push(after);
      this.#status.textContent = '';
      this.#showResults();
    } finally {
      await edited?.drop().catch(() => {});
    }
  }

  async #measured(
    lab: ModelLab,
    model: LabModel,
    state: EditState,
    signal: AbortSignal,
    onProgress: (share: number, what: string) => void,
  ): Promise<Tried> {
    const keeps = sessionKeeps(state);
    const evaluation = await model.evaluate({
      ...{ ...keeps, signal },
      onProgress: ({ done, what }) => onProgress(done, what),
    });
    // Beside the loaded model, in turns, so that both meet the same machine.
    const pair = model === lab.original ? [model] : [lab.original, model];
    const each = pair.map((one) => (one === model ? keeps : {}));
    const speeds = await lab.speed(pair, { signal, keeps: each, rounds: 5 });
    const speed = speeds.at(-1);
    const [first] = this.#tried;
    if (speeds.length === 2 && first !== undefined && speeds[0] !== undefined)
      first.speed = speeds[0];
    if (speed === undefined) throw new Error('the speed was not measured');
    const session = await model.session(keeps);
    const text = await this.#write(session, signal);
    return { label: describe(state), evaluation, speed, text, state };
  }

  async #write(session: EngineSession, signal: AbortSignal): Promise<string> {
    try {
      const messages = [{ role: 'user', content: this.#prompt.value }];
      const run = session.chat(messages, { temperature: 0, maxTokens: writtenTokens, signal });
      return (await run.result()).text.trim();
    } finally {
      await session.close();
    }
  }

  #showResults(): void {
    const [before, after] = [this.#tried[0], this.#tried.at(-1)];
    if (before === undefined || after === undefined) return;
    const rows = figureRows(before, after);
    byId('edit-verdict', HTMLElement).textContent = verdict(before, after);
    const head = el(
      'tr',
      {},
      ...['', 'As loaded', 'Changed', ''].map((title) => el('th', { scope: 'col' }, title)),
    );
    const body = rows.map(({ name, before: a, after: b, change }) =>
      el(
        'tr',
        { 'data-figure': name },
        el('th', { scope: 'row' }, name),
        ...[a, b, percent(change)].map((cell) => el('td', {}, cell)),
      ),
    );
    byId('edit-table', HTMLTableElement).replaceChildren(
      el('thead', {}, head),
      el('tbody', {}, ...body),
    );
    const chart = byId('edit-chart', HTMLElement);
    byId('edit-results', HTMLElement).hidden = false;
    chart.replaceChildren(changeChart(rows, chart.clientWidth || 560));
    byId('edit-writes-before', HTMLElement).textContent = before.text;
    byId('edit-writes-after', HTMLElement).textContent = after.text;
    const wrong = after.evaluation.recall.answers.filter(({ isRight }) => !isRight);
    byId('edit-wrong', HTMLElement).replaceChildren(
      ...wrong
        .slice(0, 6)
        .map(({ question, expected, answer }) =>
          el('li', {}, `${question} — “${answer}” (expected: ${expected})`),
        ),
    );
    const tried = byId('tried-chart', HTMLElement);
    tried.replaceChildren(
      triedChart(this.#tried, tried.clientWidth || 560, (index) => {
        const chosen = this.#tried[index];
        if (chosen) this.#restore(chosen.state);
      }),
    );
    this.#showTried();
  }

  #showTried(): void {
    const rows = this.#history().rows.map((cells, i) => {
      const [label, ...rest] = cells;
      const button = el('button', { type: 'button', class: 'text-button' }, String(label));
      button.addEventListener('click', () => this.#restore(this.#tried[i]?.state ?? NOTHING));
      const texts = rest.map((cell) =>
        typeof cell === 'number' ? String(Number(cell.toPrecision(5))) : cell,
      );
      return el(
        'tr',
        { 'data-tried-row': i },
        el('th', { scope: 'row' }, button),
        ...texts.map((cell) => el('td', {}, cell)),
      );
    });
    const titles = [
      'Edit',
      'Loss',
      'Recalled',
      'Weights, bytes',
      'Cache, bytes a token',
      'Cache, whole context',
      'Tokens/s',
    ];
    byId('tried-table', HTMLTableElement).replaceChildren(
      el('thead', {}, el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)))),
      el('tbody', {}, ...rows),
    );
  }

  async #export(): Promise<void> {
    const button = byId('edit-export', HTMLButtonElement);
    button.disabled = true;
    try {
      const lab = await this.#model.lab();
      const edited = await lab.edit(modelEdit(this.#state));
      try {
        const bytes = await edited.exportGguf(await this.#model.file());
        const name = `headlight-${describe(this.#state).replaceAll(/[^\w.]+/g, '-')}.gguf`;
        download(new Blob([bytes]), name, 'application/octet-stream');
        const { cache, keep } = this.#state;
        const left = cache === 'f32' && (keep === 'all' || keep === 'window');
        this.#status.textContent =
          `${name}: ${(bytes.length / 1e6).toFixed(2)} MB` +
          (left
            ? ''
            : '. What the cache keeps and how is a choice of the session: no file holds it.');
      } finally {
        await edited.drop();
      }
    } catch (error) {
      this.#status.textContent = messageOf(error);
    } finally {
      button.disabled = false;
    }
  }

  #figures(): FigureData {
    const [before, after] = [this.#tried[0], this.#tried.at(-1)];
    const rows = before && after ? figureRows(before, after) : [];
    return {
      name: 'change',
      columns: ['figure', 'before', 'after', 'change'],
      rows: rows.map(({ name, before: a, after: b, change }) => [name, a, b, change]),
      picture: (width) => changeChart(rows, width),
    };
  }

  #history(): FigureData {
    return {
      name: 'tried',
      columns: [
        ...['edit', 'loss', 'recalled', 'weightsBytes', 'kvBytesPerToken', 'kvCacheBytes'],
        'tokensPerSecond',
      ],
      rows: this.#tried.map(({ label, evaluation, speed }) => [
        label,
        evaluation.loss,
        `${evaluation.recall.right} of ${evaluation.recall.asked}`,
        weightsRead(evaluation),
        speed.kvBytesPerToken,
        speed.kvCacheBytes,
        Math.round(speed.tokensPerSecond),
      ]),
      picture: (width) => triedChart(this.#tried, width, () => {}),
    };
  }
}
