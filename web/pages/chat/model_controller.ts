// Loading models as the user sees it: the strip with its bytes and cancel button, what is said when it fails, and the
// words for the message field while no model can answer.

import { explain, isAborted, type Remedy } from '../shared/errors.js';
import type { ModelChoice } from '../shared/model_source.js';
import type { Announcer } from './announcer.js';
import { EngineHost, type LoadedModel } from './engine_host.js';
import type { LoadStrip } from './load_strip.js';
import { problemBox } from './problem_box.js';
import { loadOptions, type Settings } from './settings/schema.js';

export interface ModelParts {
  strip: LoadStrip;
  announcer: Announcer;
  settings(): Settings;
  /** Before anything else: the answer under way ends. */
  stopChat(): Promise<void>;
  /** A model was loaded; `former` is the one that it replaced. */
  loaded(model: LoadedModel, former: LoadedModel | undefined): void;
  /** Something that others show has changed. */
  changed(): void;
  act(remedy: Remedy): void;
}

export class ModelController {
  #parts: ModelParts;
  #host: EngineHost;
  #lastChoice: ModelChoice | undefined;

  constructor(parts: ModelParts) {
    this.#parts = parts;
    this.#host = new EngineHost(() => this.#showLoading());
  }

  get model(): LoadedModel | undefined {
    return this.#host.loaded;
  }

  /** Why nothing can be sent; empty when it can. */
  get blockedReason(): string {
    if (this.#host.loading) {
      return this.#host.loaded
        ? 'Another model is being loaded; you can send when it is ready.'
        : 'The model is being loaded; you can send when it is ready.';
    }
    return this.#host.loaded ? '' : 'No model is loaded.';
  }

  async load(choice: ModelChoice): Promise<void> {
    this.#lastChoice = choice;
    await this.#parts.stopChat();
    const former = this.#host.loaded;
    this.#parts.announcer.status(`Loading ${choice.name}`);
    try {
      const model = await this.#host.load(choice, loadOptions(this.#parts.settings()));
      if (model === undefined) return;
      this.#parts.strip.hide();
      this.#parts.announcer.status(`${model.name} is ready`);
      this.#parts.loaded(model, former);
    } catch (error) {
      this.#failed(error, choice);
    }
    this.#parts.changed();
  }

  /** The last choice again, whether it failed or not. */
  async retry(): Promise<void> {
    if (this.#lastChoice) await this.load(this.#lastChoice);
  }

  /** The loaded model again, for other load options. */
  async reload(): Promise<void> {
    const choice = this.#host.loaded?.choice ?? this.#lastChoice;
    if (choice) await this.load(choice);
  }

  /** Gives the loaded model up, so that the one that did not fit may. */
  async freeAndRetry(): Promise<void> {
    await this.#parts.stopChat();
    await this.#host.unload();
    await this.retry();
  }

  cancel(): void {
    this.#host.cancel();
  }

  /** After a failure was dismissed: nothing, or that no model is there. */
  showIdle(): void {
    if (this.#host.loaded) this.#parts.strip.hide();
    else this.#parts.strip.showNoModel();
  }

  #showLoading(): void {
    const { loading } = this.#host;
    if (loading) this.#parts.strip.showLoading(loading);
    this.#parts.changed();
  }

  #failed(error: unknown, choice: ModelChoice): void {
    if (isAborted(error)) {
      this.#parts.announcer.status('Loading was cancelled');
      this.showIdle();
      return;
    }
    const explanation = explain(error, {
      during: 'load',
      modelName: choice.name,
      hasFormerModel: this.#host.loaded !== undefined,
      source: choice.kind,
    });
    explanation.title = `${choice.name}: ${explanation.title.replace(/^[A-Z](?=[a-z' ])/, (first) => first.toLowerCase())}`;
    const box = problemBox(
      explanation,
      (remedy) => this.#parts.act(remedy),
      () => {
        this.showIdle();
        this.#parts.changed();
      },
    );
    this.#parts.strip.showProblem(box);
  }
}
