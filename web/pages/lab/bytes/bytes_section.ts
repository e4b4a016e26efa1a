// The section "Bytes": presets, calculator and concurrency, kept together by the address.
import { inspectModel } from 'headlight-wasm';
import { layoutPreset, PRESET_NAMES, type Preset, shapeOfModel } from 'headlight-wasm/lab';
import { byId } from '../../shared/dom.js';
import { messageOf } from '../../shared/errors.js';
import type { ModelChoice } from '../../shared/model_source.js';
import type { Kernels } from '../kernels.js';
import type { RunSection } from '../run/run_section.js';
import type { UrlState } from '../url_state.js';
import { Calculator } from './calculator.js';
import { ConcurrencyView } from './concurrency_view.js';
import { LatentView } from './latent_view.js';
import { PresetView } from './preset_view.js';
import { TensorView } from './tensor_view.js';
import { TryView } from './try_view.js';

const loadedName = 'loaded';
const defaultPreset = 'seedA1';
/** The row that the family ships with: the first cut of the table. */
const defaultRow = 1;

export class BytesSection {
  #state: UrlState;
  #view: PresetView;
  #calculator: Calculator;
  #loaded: Preset | undefined;
  #select = byId('preset', HTMLSelectElement);
  #failed: (message: string) => void;

  constructor(
    state: UrlState,
    kernels: Kernels,
    failed: (message: string) => void,
    models: RunSection,
  ) {
    this.#state = state;
    this.#failed = failed;
    new LatentView(state, failed);
    const concurrency = new ConcurrencyView(state, failed);
    const tensors = new TensorView(state, { showArticle: () => this.#showArticle(), failed });
    const run = new TryView(kernels, failed);
    this.#calculator = new Calculator(state, {
      changed: (cost, shape, base) => {
        run.show(shape, base);
        models.show(shape, base);
        concurrency.showOwn(cost, shape.nKvHeads);
        tensors.show(shape);
      },
      failed,
    });
    this.#view = new PresetView({ choose: (row) => this.#choose(row), failed });
    for (const name of PRESET_NAMES) {
      this.#select.add(new Option(layoutPreset(name).title, name));
    }
    this.#select.add(new Option('The loaded model', loadedName));
    this.#select.addEventListener('change', () => this.#selectPreset(this.#select.value));
  }

  async start(choice: ModelChoice): Promise<void> {
    this.#show(true);
    await this.load(choice);
  }

  /** Reads a model's header; its layout becomes the preset "The loaded model". */
  async load(choice: ModelChoice): Promise<void> {
    try {
      const { model } = await inspectModel(choice.source);
      const { shape, isUniform } = shapeOfModel(model);
      this.#loaded = {
        name: loadedName,
        title: `The loaded model: ${choice.name}`,
        note: isUniform
          ? 'Read from the file’s header.'
          : 'Read from the file’s header. Its layers differ: all are counted as the first one.',
        weights: 'q8_0',
        rows: [{ label: model.name || choice.name, shape, printed: {} }],
      };
      const option = [...this.#select.options].find(({ value }) => value === loadedName);
      if (option) option.textContent = this.#loaded.title;
      if (choice.kind === 'default') this.#show(true);
      else this.#selectPreset(loadedName);
    } catch (error) {
      this.#failed(`${choice.name}: ${messageOf(error)}`);
    }
  }

  #preset(): Preset {
    const name = this.#state.oneOf('preset', [...PRESET_NAMES, loadedName]) ?? defaultPreset;
    if (name !== loadedName) return layoutPreset(name);
    return this.#loaded ?? layoutPreset(defaultPreset);
  }

  #row(preset: Preset): number {
    const first = preset.name === defaultPreset ? defaultRow : 0;
    return this.#state.number('row', 0, preset.rows.length - 1) ?? first;
  }

  #selectPreset(name: string): void {
    this.#state.set('preset', name === defaultPreset ? undefined : name);
    this.#state.set('row', undefined);
    this.#show(false);
  }

  /** The running model of the second article: 70B, 8 KV heads. */
  #showArticle(): void {
    this.#state.set('preset', 'llama70b');
    this.#state.set('row', 1);
    this.#show(false);
  }

  #choose(row: number): void {
    this.#state.set('row', row);
    this.#show(false);
    // The table is drawn anew: the focus goes back to the row's button.
    byId('preset-table', HTMLTableElement)
      .querySelectorAll<HTMLButtonElement>('.row-button')
      [row]?.focus();
  }

  /** @param keep changes of the calculator stay */
  #show(keep: boolean): void {
    const preset = this.#preset();
    const row = Math.floor(this.#row(preset));
    this.#select.value = preset.name;
    this.#view.show(preset, row);
    const chosen = preset.rows[row] ?? preset.rows[0];
    if (!chosen) return;
    byId('calculator-base', HTMLElement).textContent = chosen.label;
    this.#calculator.setBase(chosen.shape, preset.weights, keep);
  }
}
