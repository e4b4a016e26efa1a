// The models that the browser keeps: load one without a network, go on with an interrupted download, save one as a file,
// delete one. Filled when the dialog opens.
import { modelStore } from 'headlight-wasm';
import { byId, el } from '../shared/dom.js';
import { download } from '../shared/download.js';
import { messageOf } from '../shared/errors.js';
import { formatBytes } from '../shared/format.js';
import type { ModelChoice } from '../shared/model_source.js';
import {
  choiceFromStored,
  describeStored,
  groupStored,
  type StoredGroup,
} from './stored_groups.js';

export interface StoredModelsActions {
  load(choice: ModelChoice): void;
}

export class StoredModels {
  #section = byId('stored', HTMLElement);
  #list = byId('stored-list', HTMLElement);
  #use = byId('stored-use', HTMLElement);
  #status = byId('stored-status', HTMLElement);
  #actions: StoredModelsActions;

  constructor(actions: StoredModelsActions) {
    this.#actions = actions;
  }

  /** Shows what is there now. Nothing is shown where there is nothing, or no storage. */
  async show(): Promise<void> {
    this.#status.textContent = '';
    await this.#refresh();
  }

  async #refresh(): Promise<void> {
    try {
      const groups = groupStored(await modelStore.list());
      this.#section.hidden = groups.length === 0 && this.#status.textContent === '';
      this.#list.replaceChildren(...groups.map((group) => this.#row(group)));
      const { modelsBytes, freeBytes } = await modelStore.use();
      const free =
        freeBytes === undefined ? '' : `; the browser would give ${formatBytes(freeBytes)} more`;
      this.#use.textContent =
        groups.length === 0 ? '' : `${formatBytes(modelsBytes)} in all${free}.`;
    } catch (error) {
      this.#say(error);
    }
  }

  #row(group: StoredGroup): HTMLElement {
    const { name, host, isWhole } = group;
    const button = (label: string, testid: string, act: () => void) => {
      const attributes = { type: 'button', class: 'button', 'data-testid': testid };
      const element = el('button', { ...attributes, 'aria-label': `${label}: ${name}` }, label);
      element.addEventListener('click', act);
      return element;
    };
    return el(
      'li',
      { class: 'stored-model', 'data-testid': 'stored-model' },
      el('p', { class: 'model-title' }, name),
      el('p', { class: 'hint' }, `${describeStored(group)}, from ${host}`),
      el(
        'div',
        { class: 'button-row' },
        button(isWhole ? 'Load' : 'Go on', 'stored-load', () =>
          this.#actions.load(choiceFromStored(group)),
        ),
        isWhole && button('Save as file', 'stored-save', () => void this.#save(group)),
        button('Delete', 'stored-delete', () => void this.#delete(group)),
      ),
    );
  }

  async #save({ urls }: StoredGroup): Promise<void> {
    try {
      for (const url of urls) {
        const file = await modelStore.file(url);
        const name = new URL(url).pathname.split('/').at(-1) ?? 'model.gguf';
        if (file !== undefined) download(file, name, file.type);
      }
    } catch (error) {
      this.#say(error);
    }
  }

  async #delete({ name, urls }: StoredGroup): Promise<void> {
    try {
      for (const url of urls) await modelStore.delete(url);
      this.#status.textContent = `${name} was deleted.`;
    } catch (error) {
      this.#say(error);
    }
    await this.#refresh();
    // The button that had the focus is gone.
    this.#status.focus();
  }

  #say(error: unknown): void {
    this.#section.hidden = false;
    this.#status.textContent = messageOf(error);
  }
}
