// The model dialog: what is loaded and what runs it and why, and how to open another model: a file, an address, the
// default one, with load options. It reports choices; loading is the engine host's.
import type { EngineInfo } from 'headlight-wasm';
import { byId, el, openDialog, prepareDialog } from '../shared/dom.js';
import {
  choiceFromFiles,
  choiceFromUrl,
  defaultChoice,
  type ModelChoice,
} from '../shared/model_source.js';
import { describeModel, describeRuntime, type InfoRow } from './model_info.js';
import { type FieldHandle, numberField } from './settings/number_fields.js';
import {
  cacheChoices,
  type LoadKey,
  loadFields,
  moduleChoices,
  type Settings,
} from './settings/schema.js';
import { StoredModels } from './stored_models.js';

export interface ModelPanelActions {
  load(choice: ModelChoice): void;
  reload(): void;
  settingsChanged(): void;
}

export class ModelPanel {
  #dialog = byId('model-dialog', HTMLDialogElement);
  #info = byId('model-info', HTMLElement);
  #error = byId('source-error', HTMLElement);
  #url = byId('model-url', HTMLInputElement);
  #files = byId('model-files', HTMLInputElement);
  #reload = byId('reload-model', HTMLButtonElement);
  #fields = new Map<LoadKey, FieldHandle>();
  #selects: { element: HTMLSelectElement; key: 'module' | 'kvCache' }[] = [];
  #settings: Settings;
  #actions: ModelPanelActions;
  #stored = new StoredModels({ load: (choice) => this.#take({ ok: true, value: choice }) });

  constructor(settings: Settings, actions: ModelPanelActions) {
    this.#settings = settings;
    this.#actions = actions;
    prepareDialog(this.#dialog);
    this.#buildLoadOptions();
    this.#files.addEventListener('change', () => {
      const files = [...(this.#files.files ?? [])];
      // The same file can be chosen again after a failure.
      this.#files.value = '';
      if (files.length > 0) this.openFiles(files);
    });
    byId('url-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      this.#take(choiceFromUrl(this.#url.value, document.baseURI), this.#url);
    });
    byId('load-default', HTMLButtonElement).addEventListener('click', () => {
      this.#take({ ok: true, value: defaultChoice(document.baseURI) });
    });
    this.#reload.addEventListener('click', () => {
      this.#dialog.close();
      actions.reload();
    });
  }

  open(): void {
    this.#refuse('');
    void this.#stored.show();
    this.#showLoadOptions();
    openDialog(this.#dialog);
  }

  /** Opened at what runs the model, and why. */
  openRuntime(): void {
    this.open();
    const title = this.#info.querySelector<HTMLElement>('#runtime-title');
    title?.scrollIntoView({ block: 'start' });
    title?.focus({ preventScroll: true });
  }

  /** Files that were chosen or dropped; what is wrong with them is said in the dialog. */
  openFiles(files: readonly File[]): void {
    this.#take(choiceFromFiles(files));
  }

  update(settings: Settings, name: string, info: EngineInfo | undefined): void {
    this.#settings = settings;
    this.#reload.hidden = info === undefined;
    if (info === undefined) {
      this.#info.replaceChildren(el('p', {}, 'No model is loaded.'));
      return;
    }
    this.#info.replaceChildren(
      el('p', { class: 'model-title', 'data-testid': 'info-name' }, name),
      list(describeModel(info)),
      el('h3', { id: 'runtime-title', tabindex: -1 }, 'How it runs'),
      list(describeRuntime(info)),
      el('p', { class: 'hint' }, 'Why:'),
      el(
        'ul',
        { class: 'reasons', 'data-testid': 'reasons' },
        ...info.runtime.reasons.map((reason) => el('li', {}, reason)),
      ),
    );
  }

  #take(checked: ReturnType<typeof choiceFromUrl>, field?: HTMLInputElement): void {
    if (checked.ok) {
      this.#refuse('');
      this.#dialog.close();
      this.#actions.load(checked.value);
      return;
    }
    this.open();
    this.#refuse(checked.message);
    field?.setAttribute('aria-invalid', 'true');
    field?.focus();
  }

  #refuse(message: string): void {
    this.#error.textContent = message;
    if (message === '') this.#url.removeAttribute('aria-invalid');
  }

  #buildLoadOptions(): void {
    const container = byId('load-fields', HTMLElement);
    for (const field of loadFields) {
      const key = field.key as LoadKey;
      const { element, handle } = numberField(field, (_key, value) => {
        if (value === undefined) delete this.#settings.load[key];
        else this.#settings.load[key] = value;
        this.#actions.settingsChanged();
      });
      this.#fields.set(key, handle);
      container.append(element);
    }
    this.#addSelect(container, 'module', 'Module', moduleChoices, {
      ...{ auto: 'automatic: the fastest that works', simd: 'SIMD', relaxed: 'relaxed SIMD' },
    });
    this.#addSelect(container, 'kvCache', 'KV cache', cacheChoices, {
      ...{
        f32: '32-bit floats',
        f16: '16-bit floats: half the memory',
        int8: '8-bit integers: a quarter of the memory, and faster',
      },
    });
  }

  #addSelect<K extends 'module' | 'kvCache'>(
    container: HTMLElement,
    key: K,
    label: string,
    choices: readonly Settings['load'][K][],
    names: Record<Settings['load'][K], string>,
  ): void {
    const id = `field-${key}`;
    const element = el('select', { id, 'data-testid': id });
    for (const choice of choices) element.append(el('option', { value: choice }, names[choice]));
    element.addEventListener('change', () => {
      const chosen = choices.find((choice) => choice === element.value);
      if (chosen) this.#settings.load[key] = chosen;
      this.#actions.settingsChanged();
    });
    this.#selects.push({ element, key });
    container.append(el('div', { class: 'field' }, el('label', { for: id }, label), element));
  }

  #showLoadOptions(): void {
    for (const [key, handle] of this.#fields) {
      handle.show({ value: this.#settings.load[key], fallback: undefined });
    }
    for (const { element, key } of this.#selects) element.value = this.#settings.load[key];
  }
}

function list(rows: readonly InfoRow[]): HTMLElement {
  const entries = rows.map(({ term, value }) =>
    el('div', {}, el('dt', {}, term), el('dd', {}, value)),
  );
  return el('dl', { class: 'facts' }, ...entries);
}
