// The page as a whole: owns the settings, connects the chat, the model and the panels, and decides what is shown.

import { copyText } from '../shared/clipboard.js';
import { byId } from '../shared/dom.js';
import { download } from '../shared/download.js';
import { acceptDrops } from '../shared/drop.js';
import type { Remedy } from '../shared/errors.js';
import { defaultChoice } from '../shared/model_source.js';
import { Toast } from '../shared/toast.js';
import { Announcer } from './announcer.js';
import { ChatController } from './chat_controller.js';
import { Composer } from './composer.js';
import type { LoadedModel } from './engine_host.js';
import { exportName, toJson, toMarkdown } from './export.js';
import { LoadStrip } from './load_strip.js';
import { ModelController } from './model_controller.js';
import { ModelPanel } from './model_panel.js';
import { ScrollFollower } from './scroll.js';
import { SettingsPanel } from './settings/panel.js';
import { defaultSettings } from './settings/schema.js';
import { StatusBar } from './status_bar.js';
import { deleteStored, loadChat, loadSettings, saveChat, saveSettings } from './store.js';
import { Transcript } from './transcript.js';
import { followKeyboard } from './viewport.js';
import { Welcome } from './welcome.js';

export class ChatPage {
  #settings = loadSettings();
  #announcer = new Announcer(byId('live-log', HTMLElement), byId('live-status', HTMLElement));
  #toast = new Toast(byId('toast', HTMLElement));
  #status = new StatusBar();
  #follower: ScrollFollower;
  #chat: ChatController;
  #models: ModelController;
  #composer: Composer;
  #welcome: Welcome;
  #settingsPanel: SettingsPanel;
  #modelPanel: ModelPanel;

  constructor() {
    const jump = byId('jump', HTMLButtonElement);
    this.#follower = new ScrollFollower(byId('scroll', HTMLElement), (following) => {
      jump.hidden = following;
    });
    jump.addEventListener('click', () => this.#follower.toEnd());
    this.#chat = this.#makeChat();
    this.#models = this.#makeModels();
    this.#composer = this.#makeComposer();
    this.#welcome = new Welcome((prompt) => this.#suggested(prompt));
    this.#settingsPanel = this.#makeSettingsPanel();
    this.#modelPanel = new ModelPanel(this.#settings, {
      load: (choice) => void this.#models.load(choice),
      reload: () => void this.#models.reload(),
      settingsChanged: () => saveSettings(this.#settings),
    });
  }

  start(): void {
    loadChat(this.#chat.conversation);
    this.#wireHeader();
    this.#wireKeys();
    acceptDrops(byId('drop-target', HTMLElement), (files) => this.#modelPanel.openFiles(files));
    followKeyboard(() => this.#follower.contentChanged());
    // A closing page gets no other chance; this one also comes when a phone puts the tab away.
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'hidden') this.#save();
    });
    this.#changed();
    this.#follower.toEnd();
    if (matchMedia('(pointer: fine)').matches) this.#composer.focus();
    void this.#models.load(defaultChoice(document.baseURI));
  }

  #makeChat(): ChatController {
    const transcript = new Transcript(byId('transcript', HTMLElement), {
      copy: (text) => void this.#copy(text),
      edit: (id, text) => this.#chat.edit(id, text),
      regenerate: () => this.#chat.regenerate(),
      selectVariant: (id, index) => this.#chat.selectVariant(id, index),
    });
    return new ChatController({
      transcript,
      announcer: this.#announcer,
      toast: this.#toast,
      follower: this.#follower,
      status: this.#status,
      settings: () => this.#settings,
      model: () => this.#models.model,
      blockedReason: () => this.#models.blockedReason,
      changed: () => this.#changed(),
      act: (remedy) => this.#act(remedy, () => this.#chat.regenerate()),
    });
  }

  #makeModels(): ModelController {
    const strip = new LoadStrip(byId('load-strip', HTMLElement), {
      cancel: () => this.#models.cancel(),
      loadDefault: () => void this.#models.load(defaultChoice(document.baseURI)),
      chooseModel: () => this.#modelPanel.open(),
    });
    return new ModelController({
      strip,
      announcer: this.#announcer,
      settings: () => this.#settings,
      stopChat: () => this.#chat.stop(),
      loaded: (model, former) => this.#loaded(model, former),
      changed: () => this.#changed(),
      act: (remedy) => this.#act(remedy, () => void this.#models.retry()),
    });
  }

  #makeComposer(): Composer {
    const elements = {
      form: byId('composer', HTMLFormElement),
      input: byId('input', HTMLTextAreaElement),
      send: byId('send', HTMLButtonElement),
      stop: byId('stop', HTMLButtonElement),
      note: byId('composer-note', HTMLElement),
    };
    return new Composer(elements, {
      send: (text) => this.#chat.send(text),
      stop: () => this.#stop(),
      editLast: () => this.#chat.editLast(),
      refused: (reason) => this.#announcer.status(reason),
    });
  }

  #makeSettingsPanel(): SettingsPanel {
    const exportAs = (make: typeof toJson, extension: string, type: string) => {
      const date = new Date();
      const { systemPrompt } = this.#settings;
      const context = { systemPrompt, modelName: this.#models.model?.name ?? 'no model', date };
      download(make(this.#chat.conversation, context), exportName(date, extension), type);
    };
    return new SettingsPanel(this.#settings, {
      changed: () => saveSettings(this.#settings),
      keepChatChanged: () => this.#save(),
      exportMarkdown: () => exportAs(toMarkdown, 'md', 'text/markdown'),
      exportJson: () => exportAs(toJson, 'json', 'application/json'),
      clearStored: () => void this.#clearStored(),
    });
  }

  #wireHeader(): void {
    const onClick = (id: string, run: () => void) =>
      byId(id, HTMLButtonElement).addEventListener('click', run);
    onClick('model-button', () => this.#modelPanel.open());
    onClick('runtime-button', () => this.#modelPanel.openRuntime());
    onClick('settings-button', () => this.#settingsPanel.open());
    onClick('new-chat', () => {
      this.#chat.newChat();
      this.#composer.focus();
    });
  }

  #wireKeys(): void {
    document.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || event.isComposing || event.defaultPrevented) return;
      // An open dialog takes Escape for itself.
      if (document.querySelector('dialog[open]') || !this.#chat.isRunning) return;
      event.preventDefault();
      this.#stop();
    });
  }

  #stop(): void {
    if (this.#chat.isRunning) void this.#chat.stop();
  }

  #suggested(prompt: string): void {
    if (this.#models.blockedReason === '' && !this.#chat.isRunning) {
      this.#chat.send(prompt);
      return;
    }
    this.#composer.text = prompt;
    this.#composer.focus();
    this.#announcer.status(this.#models.blockedReason);
  }

  #loaded(model: LoadedModel, former: LoadedModel | undefined): void {
    const isOther = former !== undefined && former.name !== model.name;
    this.#chat.modelChanged(
      isOther ? `From here on ${model.name} answers. It sees the conversation so far.` : '',
    );
    this.#status.setRuntime(model.engine.info.runtime);
    this.#settingsPanel.update(this.#settings, model.kind === 'default');
  }

  #act(remedy: Remedy, retry: () => void): void {
    const acts: Record<Remedy, () => void> = {
      retry,
      'default-model': () => void this.#models.load(defaultChoice(document.baseURI)),
      'free-memory': () => void this.#models.freeAndRetry(),
      settings: () => this.#settingsPanel.open(),
      reload: () => void this.#models.reload(),
      'default-options': () => {
        this.#settings.load = defaultSettings().load;
        saveSettings(this.#settings);
        void this.#models.retry();
      },
      model: () => this.#modelPanel.open(),
    };
    acts[remedy]();
  }

  async #copy(text: string): Promise<void> {
    const copied = await copyText(text);
    this.#toast.show(copied ? 'Copied' : 'The browser refused to copy. Select the text instead.');
  }

  async #clearStored(): Promise<void> {
    await this.#chat.stop();
    this.#chat.conversation.clear();
    this.#settings = defaultSettings();
    deleteStored();
    document.documentElement.dataset.theme = matchMedia('(prefers-color-scheme: dark)').matches
      ? 'dark'
      : 'light';
    this.#settingsPanel.close();
    this.#changed();
    this.#toast.show('The chat and all settings were deleted.');
  }

  #save(): void {
    saveChat(this.#chat.conversation, this.#settings.keepChat);
  }

  /** Shows what follows from the state as a whole. */
  #changed(): void {
    const { model, blockedReason } = this.#models;
    const running = this.#chat.isRunning;
    const plain = model?.kind === 'plain';
    this.#chat.show();
    this.#composer.update({
      running,
      blocked: blockedReason,
      note: plain ? 'This model has no chat template: it continues your text.' : '',
    });
    this.#welcome.update({
      kind: model?.kind ?? 'default',
      modelName: model?.name,
      turns: this.#chat.conversation.turns,
      running,
    });
    this.#settingsPanel.update(this.#settings, (model?.kind ?? 'default') === 'default');
    this.#modelPanel.update(this.#settings, model?.name ?? '', model?.engine.info);
    const state = running ? 'running' : model && !blockedReason ? 'ready' : model ? 'loading' : '';
    this.#showState(state || (blockedReason === 'No model is loaded.' ? 'no-model' : 'loading'));
    if (state === 'ready') this.#save();
  }

  #showState(state: 'loading' | 'ready' | 'running' | 'no-model' | string): void {
    document.body.dataset.state = state;
    const name = this.#models.model?.name;
    byId('model-name', HTMLElement).textContent =
      name ?? (state === 'loading' ? 'Loading…' : 'No model');
    if (!this.#models.model) this.#status.clear();
  }
}
