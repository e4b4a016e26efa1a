// The section "Eight phases": one token, or the whole prompt, through a block of the loaded model, beside the article's table.
import { cacheRowBytes } from 'headlight-wasm/lab';
import { byId, el } from '../../shared/dom.js';
import { binaryBytes } from '../bytes/units.js';
import { exportBar, type FigureData } from '../figure.js';
import { Latest } from '../kernels.js';
import { type LoadedModel, whenSeen } from '../loaded_model.js';
import type { UrlState } from '../url_state.js';
import {
  type EmbeddingRows,
  embeddingRows,
  embeddingText,
  type Mixing,
  mixingOf,
  mixingText,
} from './mixing.js';
import { articleRows, PHASES, type PhaseRow, phaseRows } from './phase_rows.js';

const defaultPrompt = 'What is a quadratic equation?';

interface Shown {
  rows: PhaseRow[];
  tokens: string[];
  nPasses: number;
  embedding: EmbeddingRows;
  mixing: Mixing | undefined;
}

export class PhasesSection {
  #url: UrlState;
  #model: LoadedModel;
  #latest: Latest;
  #shown: Shown | undefined;
  #layer = byId('phase-layer', HTMLSelectElement);
  #what = byId('phase-what', HTMLSelectElement);
  #without = byId('phase-without', HTMLSelectElement);
  #prompt = byId('phase-prompt', HTMLInputElement);

  constructor(url: UrlState, model: LoadedModel, failed: (message: string) => void) {
    [this.#url, this.#model, this.#latest] = [url, model, new Latest(failed)];
    this.#prompt.value = url.get('pp') ?? defaultPrompt;
    this.#what.value = url.oneOf('pw', ['last', 'all']) ?? 'last';
    for (const input of [this.#layer, this.#what, this.#prompt, this.#without])
      input.addEventListener('change', () => this.#changed());
    byId('phase-again', HTMLButtonElement).addEventListener('click', () => this.#compute());
    byId('phase-export', HTMLElement).append(exportBar('the phases', () => this.#data(), failed));
    model.onChange(() => {
      this.#layer.replaceChildren();
      this.#without.replaceChildren();
      this.#compute();
    });
  }

  start(): void {
    whenSeen(byId('phases', HTMLElement), () => this.#compute());
  }

  #changed(): void {
    const set = (key: string, value: string, usual: string) =>
      this.#url.set(key, value === usual ? undefined : value);
    set('pl', this.#layer.value, '0');
    set('pw', this.#what.value, 'last');
    set('pp', this.#prompt.value, defaultPrompt);
    set('px', this.#without.value, '');
    this.#compute();
  }

  #compute(): void {
    void this.#latest.run(
      async () => {
        const lab = await this.#model.lab();
        const engine = await this.#model.engine();
        const { layers } = lab.original;
        if (this.#layer.options.length === 0) {
          this.#layer.append(...layers.map((_, i) => new Option(`layer ${i}`, String(i))));
          this.#layer.value = String(Math.floor(this.#url.number('pl', 0, layers.length - 1) ?? 0));
        }
        const index = Number(this.#layer.value);
        const layer = layers[index];
        if (layer === undefined) throw new Error('the model has no such layer');
        this.#offerHeads(layer.nQHeads);
        const lastOnly = this.#what.value === 'last';
        const ids = (await engine.tokenize(this.#prompt.value || ' ')).slice(0, 256);
        const trace = await lab.original.trace(ids, { layer: index, lastOnly });
        const bytes = (width: number) =>
          ids.length * layer.nKvHeads * cacheRowBytes(width, 'f32').allocated;
        const rows = phaseRows({
          ...{ trace, layer, nRows: lastOnly ? 1 : ids.length, nKv: ids.length },
          cacheBytes: { k: bytes(layer.dQk), v: bytes(layer.dV) },
        });
        const tokens = await engine.tokenTexts(ids);
        const { vocabSize } = engine.info.model;
        const embedding = await embeddingRows(lab.original, ids, tokens, vocabSize);
        const head = this.#without.value === '' ? undefined : Number(this.#without.value);
        const mixing = head === undefined ? undefined : await mixingOf(lab, ids, index, head);
        return { rows, tokens, nPasses: trace.nPasses, embedding, mixing };
      },
      (shown) => this.#show(shown),
    );
  }

  /** Heads of the chosen layer that can be left out. */
  #offerHeads(nHeads: number): void {
    if (this.#without.options.length === nHeads + 1) return;
    const chosen = this.#url.number('px', 0, nHeads - 1);
    this.#without.replaceChildren(
      new Option('nothing', ''),
      ...Array.from({ length: nHeads }, (_, head) => new Option(`head ${head}`, String(head))),
    );
    this.#without.value = chosen === undefined ? '' : String(Math.floor(chosen));
  }

  #show(shown: Shown): void {
    this.#shown = shown;
    const { rows, tokens, nPasses, embedding, mixing } = shown;
    byId('phase-embedding', HTMLElement).textContent = embeddingText(embedding);
    byId('phase-mix', HTMLElement).textContent = mixing === undefined ? '' : mixingText(mixing);
    const total = rows.reduce((sum, { ms = 0 }) => sum + ms, 0);
    const branch = rows.reduce((sum, { phase, ms = 0 }) => sum + (phase > 0 ? ms : 0), 0);
    byId('phase-status', HTMLElement).textContent =
      `${tokens.length} tokens: ${tokens.map((text) => `“${text}”`).join(' ')}. One block takes ${micro(total)}, the attention branch ` +
      `${micro(branch)} of it (mean of ${nPasses} passes).`;
    const article = articleRows();
    const titles = [
      'Phase',
      'Tensor',
      'Shape',
      'Type',
      'Bytes',
      'Time',
      'The article’s 70B, 7 tokens, bf16',
    ];
    let last = -1;
    const body = rows.map((row) => {
      const { phase, name, shape, dtype, bytes, ms, note } = row;
      const theirs = row.article === undefined ? undefined : article.get(row.article);
      const isNew = phase !== last;
      last = phase;
      const share = total > 0 && ms !== undefined ? ms / total : 0;
      const time = el(
        'td',
        { class: 'time-cell' },
        ms === undefined ? '' : ms === 0 ? 'nothing to do' : micro(ms),
      );
      time.style.setProperty('--share', String(share));
      return el(
        'tr',
        { 'data-phase-tensor': name, ...(isNew ? { class: 'new-phase' } : {}) },
        el('td', {}, isNew ? (PHASES[phase] ?? '') : ''),
        el('th', { scope: 'row' }, name, el('small', {}, note)),
        el('td', {}, shape.join(' × ')),
        el('td', {}, dtype === 'cache' ? 'f32, in the cache' : dtype),
        el('td', {}, binaryBytes(bytes)),
        time,
        el(
          'td',
          {},
          theirs === undefined ? '' : theirs.shape.join(' × '),
          theirs === undefined
            ? null
            : el('small', {}, `${binaryBytes(theirs.bytes)}, printed ${theirs.printed}`),
        ),
      );
    });
    byId('phase-table', HTMLTableElement).replaceChildren(
      el('thead', {}, el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)))),
      el('tbody', {}, ...body),
    );
  }

  #data(): FigureData {
    return {
      name: 'phases',
      columns: ['phase', 'tensor', 'shape', 'type', 'bytes', 'ms'],
      rows: (this.#shown?.rows ?? []).map(({ phase, name, shape, dtype, bytes, ms }) => [
        PHASES[phase] ?? '',
        name,
        shape.join(' x '),
        dtype,
        bytes,
        ms ?? '',
      ]),
    };
  }
}

function micro(ms: number): string {
  return ms < 0.1 ? `${(1000 * ms).toFixed(1)} µs` : `${ms.toFixed(ms < 10 ? 2 : 0)} ms`;
}
