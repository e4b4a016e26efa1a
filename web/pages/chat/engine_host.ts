// Holds the loaded model. A new one is loaded beside the old one, which is given up only when the new one is ready: a
// broken file or a cancelled download leaves the page as it was. One load at a time; a later one replaces it.
import {
  Engine,
  type LoadOptions,
  type LoadProgress,
  modelStore,
  type Preflight,
  type PreflightOptions,
} from 'headlight-wasm';
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
  /** Of a model that is downloaded, once its header has been read. */
  preflight: Preflight | undefined;
}

/** Before hundreds of megabytes are fetched for nothing; what is in the storage needs no download. */
async function beforeDownload(
  { kind, source }: ModelChoice,
  options: PreflightOptions,
): Promise<Preflight | undefined> {
  if (kind !== 'url' || !(source instanceof URL)) return undefined;
  // Without a storage it is not there either.
  const stored = await modelStore.file(source).catch(() => undefined);
  if (stored !== undefined) return undefined;
  const preflight = await Engine.preflight(source, options);
  if (preflight.error !== undefined) throw preflight.error;
  return preflight;
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
    const loading: Loading & { controller: AbortController } = {
      choice,
      controller,
      progress: undefined,
      preflight: undefined,
    };
    this.#loading = loading;
    this.#onProgress();
    const onProgress = (progress: LoadProgress) => {
      if (this.#loading !== loading) return;
      loading.progress = progress;
      this.#onProgress();
    };
    try {
      const { signal } = controller;
      loading.preflight = await beforeDownload(choice, { ...options, signal });
      if (this.#loading !== loading) return undefined;
      this.#onProgress();
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
