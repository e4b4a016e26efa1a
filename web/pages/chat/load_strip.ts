// The strip above the message field: a model's load in bytes with a cancel button, why it failed, or that none is loaded.
import type { LoadProgress } from 'headlight-wasm';
import { el } from '../shared/dom.js';
import { formatBytes, formatRate } from '../shared/format.js';
import type { Loading } from './engine_host.js';

const phases: Record<LoadProgress['phase'], string> = {
  module: 'Starting the engine',
  waiting: 'Waiting for another tab that is downloading it',
  header: 'Reading the header',
  weights: 'Loading the weights',
  tokenizer: 'Building the tokenizer',
  ready: 'Ready',
};

export interface LoadStripActions {
  cancel(): void;
  loadDefault(): void;
  chooseModel(): void;
}

export class LoadStrip {
  #root: HTMLElement;
  #actions: LoadStripActions;
  #bar = el('progress', { class: 'load-bar', 'aria-labelledby': 'load-title', max: 1 });
  #title = el('span', { id: 'load-title', class: 'load-title' });
  #bytes = el('span', { class: 'load-bytes', 'data-testid': 'load-bytes' });
  #needs = el('p', { class: 'load-needs', 'data-testid': 'load-needs' });
  #loading: HTMLElement;

  constructor(root: HTMLElement, actions: LoadStripActions) {
    this.#root = root;
    this.#actions = actions;
    const cancel = el(
      'button',
      { type: 'button', class: 'text-button', 'data-testid': 'load-cancel' },
      'Cancel',
    );
    cancel.addEventListener('click', () => actions.cancel());
    this.#loading = el(
      'div',
      { class: 'loading', 'data-testid': 'loading' },
      el('div', { class: 'load-line' }, this.#title, this.#bytes, cancel),
      this.#bar,
      this.#needs,
    );
  }

  hide(): void {
    this.#root.hidden = true;
    this.#root.replaceChildren();
  }

  showLoading({ choice, progress, preflight }: Loading): void {
    this.#needs.hidden = preflight === undefined;
    if (preflight !== undefined) {
      const { neededBytes, speed } = preflight;
      this.#needs.textContent = `Takes ${formatBytes(neededBytes)} of memory and makes about ${formatRate(speed.decodeTokensPerSecond)} tokens a second here.`;
    }
    const phase = progress?.phase ?? 'module';
    this.#title.textContent = `${choice.name}: ${phases[phase].toLowerCase()}`;
    const loaded = progress?.loadedBytes ?? 0;
    const total = progress?.totalBytes;
    const started = loaded > 0 || total !== undefined;
    this.#bytes.textContent = !started
      ? ''
      : total === undefined
        ? formatBytes(loaded)
        : `${formatBytes(loaded)} of ${formatBytes(total)}`;
    // Without a value the bar says that it cannot tell how far it is.
    if (total === undefined || total === 0) this.#bar.removeAttribute('value');
    else this.#bar.value = Math.min(1, loaded / total);
    this.#show(this.#loading);
  }

  showProblem(problem: HTMLElement): void {
    this.#show(problem);
  }

  showNoModel(): void {
    const load = el('button', {
      type: 'button',
      class: 'button primary',
      'data-testid': 'strip-load-default',
    });
    load.append('Load the default model');
    const choose = el('button', { type: 'button', class: 'button' }, 'Choose a model');
    load.addEventListener('click', () => this.#actions.loadDefault());
    choose.addEventListener('click', () => this.#actions.chooseModel());
    this.#show(
      el(
        'div',
        { class: 'no-model', 'data-testid': 'no-model' },
        el('p', {}, 'No model is loaded.'),
        el('div', { class: 'button-row' }, load, choose),
      ),
    );
  }

  #show(content: HTMLElement): void {
    this.#root.hidden = false;
    if (this.#root.firstElementChild !== content) this.#root.replaceChildren(content);
  }
}
