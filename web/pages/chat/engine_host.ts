// Holds the loaded model. A new one is loaded beside the old one, which is given up only when the new one is ready: a
// broken file or a cancelled download leaves the page as it was. One load at a time; a later one replaces it.
import { Engine, type LoadOptions, type LoadProgress } from 'headlight-wasm';
import type { ModelChoice } from '../shared/model_source.js';
import type { ModelKind } from './suggestions.js';

export interface LoadedModel {
  choice: ModelChoice;
  engine: Engine;
  kind: ModelKind;
  /** For people. */
  name: string;
}

export interface Loading {
  choice: ModelChoice;
  progress: LoadProgress | undefined;
}

function kindOf(choice: ModelChoice, engine: Engine): ModelKind {
  if (choice.kind === 'default') return 'default';
  return engine.info.model.hasChatTemplate ? 'chat' : 'plain';
}

export class EngineHost {
  #loaded: LoadedModel | undefined;
  #loading: (Loading & { controller: AbortController }) | undefined;
  #onProgress: () => void;

  /** @param onProgress called whenever `loading` changes while a load is under way */
  constructor(onProgress: () => void) {
    this.#onProgress = onProgress;
  }

  get loaded(): LoadedModel | undefined {
    return this.#loaded;
  }

  get loading(): Loading | undefined {
    return this.#loading;
  }

  /**
   * The model that is loaded afterwards, or undefined when a later call took over. Rejects with the package's errors
   * (AbortedError after cancel()), the former model still being loaded.
   */
  async load(choice: ModelChoice, options: LoadOptions): Promise<LoadedModel | undefined> {
    this.cancel();
    const controller = new AbortController();
    const loading = { choice, controller, progress: undefined as LoadProgress | undefined };
    this.#loading = loading;
    this.#onProgress();
    const onProgress = (progress: LoadProgress) => {
      if (this.#loading !== loading) return;
      loading.progress = progress;
      this.#onProgress();
    };
    try {
      const { signal } = controller;
      // The default model comes with the page and changes with it; a file is on the disk already.
      const store = choice.kind === 'url';
      const engine = await Engine.load(choice.source, { ...options, store, onProgress, signal });
      if (this.#loading !== loading) {
        await engine.dispose();
        return undefined;
      }
      const former = this.#loaded;
      this.#loaded = { choice, engine, kind: kindOf(choice, engine), name: choice.name };
      await former?.engine.dispose();
      return this.#loaded;
    } catch (error) {
      if (this.#loading !== loading) return undefined;
      throw error;
    } finally {
      if (this.#loading === loading) this.#loading = undefined;
    }
  }

  /** Ends the load under way, whose promise then rejects. */
  cancel(): void {
    this.#loading?.controller.abort();
  }

  /** Gives the model's memory back. */
  async unload(): Promise<void> {
    const former = this.#loaded;
    this.#loaded = undefined;
    await former?.engine.dispose();
  }
}
