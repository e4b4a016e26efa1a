// The settings dialog: system prompt, sampling, and what is kept. It edits the Settings object that it is given and
// reports each change; it stores nothing itself.
import { byId, openDialog, prepareDialog } from '../../shared/dom.js';
import { type FieldHandle, numberField } from './number_fields.js';
import { type SamplingKey, type Settings, samplingDefaults, samplingFields } from './schema.js';

export interface SettingsActions {
  changed(): void;
  keepChatChanged(): void;
  exportMarkdown(): void;
  exportJson(): void;
  clearStored(): void;
}

export class SettingsPanel {
  #dialog = byId('settings-dialog', HTMLDialogElement);
  #prompt = byId('system-prompt', HTMLTextAreaElement);
  #keepChat = byId('keep-chat', HTMLInputElement);
  #fields = new Map<SamplingKey, FieldHandle>();
  #settings: Settings;
  #isDefaultModel = true;

  constructor(settings: Settings, actions: SettingsActions) {
    this.#settings = settings;
    prepareDialog(this.#dialog);
    const container = byId('sampling-fields', HTMLElement);
    for (const field of samplingFields) {
      const key = field.key as SamplingKey;
      const { element, handle } = numberField(field, (_key, value) => {
        if (value === undefined) delete this.#settings.sampling[key];
        else this.#settings.sampling[key] = value;
        actions.changed();
      });
      container.append(element);
      this.#fields.set(key, handle);
    }
    this.#prompt.addEventListener('input', () => {
      this.#settings.systemPrompt = this.#prompt.value;
      actions.changed();
    });
    this.#keepChat.addEventListener('change', () => {
      this.#settings.keepChat = this.#keepChat.checked;
      actions.changed();
      actions.keepChatChanged();
    });
    this.#wireButtons(actions);
  }

  open(): void {
    this.#show();
    openDialog(this.#dialog);
  }

  close(): void {
    this.#dialog.close();
  }

  /** Takes other settings, or another model's defaults, into the form. */
  update(settings: Settings, isDefaultModel: boolean): void {
    this.#settings = settings;
    this.#isDefaultModel = isDefaultModel;
    if (this.#dialog.open) this.#show();
  }

  #wireButtons(actions: SettingsActions): void {
    const onClick = (id: string, run: () => void) =>
      byId(id, HTMLButtonElement).addEventListener('click', run);
    onClick('export-markdown', () => actions.exportMarkdown());
    onClick('export-json', () => actions.exportJson());
    onClick('clear-stored', () => actions.clearStored());
    onClick('sampling-reset', () => {
      this.#settings.sampling = {};
      this.#show();
      actions.changed();
    });
  }

  #show(): void {
    const defaults = samplingDefaults(this.#isDefaultModel);
    for (const [key, handle] of this.#fields) {
      handle.show({ value: this.#settings.sampling[key], fallback: defaults[key] });
    }
    this.#prompt.value = this.#settings.systemPrompt;
    this.#keepChat.checked = this.#settings.keepChat;
  }
}
