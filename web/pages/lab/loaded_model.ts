// The model that the page's sections share: which one was chosen, and its engine, loaded when a section first needs it.
import { Engine } from 'headlight-wasm';
import { ModelLab } from 'headlight-wasm/lab';
import type { ModelChoice } from '../shared/model_source.js';

export class LoadedModel {
  #choice: ModelChoice;
  #engine: Promise<Engine> | undefined;
  #lab: Promise<ModelLab> | undefined;
  #listeners: (() => void)[] = [];
  #onProgress: (text: string) => void;

  constructor(choice: ModelChoice, onProgress: (text: string) => void = () => {}) {
    this.#choice = choice;
    this.#onProgress = onProgress;
  }

  get choice(): ModelChoice {
    return this.#choice;
  }

  /** Another model: the engine of the one before is ended, and what was shown of it is out of date. */
  choose(choice: ModelChoice): void {
    const before = this.#engine;
    this.#choice = choice;
    this.#engine = undefined;
    this.#lab = undefined;
    void before?.then((engine) => engine.dispose()).catch(() => {});
    for (const listener of this.#listeners) listener();
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  engine(): Promise<Engine> {
    this.#engine ??= this.#load().catch((error: unknown) => {
      this.#engine = undefined;
      throw error;
    });
    return this.#engine;
  }

  lab(): Promise<ModelLab> {
    this.#lab ??= this.engine()
      .then((engine) => new ModelLab(engine))
      .catch((error: unknown) => {
        this.#lab = undefined;
        throw error;
      });
    return this.#lab;
  }

  /** The file's bytes, for writing a changed one. Split models have no one file. */
  async file(): Promise<Blob> {
    const { source, name } = this.#choice;
    if (source instanceof Blob) return source;
    if (Array.isArray(source))
      throw new Error(`${name} is split into several files. Merge them to export a changed model.`);
    const response = await fetch(String(source));
    if (!response.ok) throw new Error(`${name} could not be fetched again: ${response.status}`);
    return response.blob();
  }

  async #load(): Promise<Engine> {
    const { source, name } = this.#choice;
    const engine = await Engine.load(source, {
      // The lab is in the modules of one thread only.
      threads: 1,
      onProgress: ({ phase, loadedBytes, totalBytes }) => {
        const share = totalBytes ? ` ${Math.round((100 * loadedBytes) / totalBytes)} %` : '';
        this.#onProgress(phase === 'ready' ? '' : `Loading ${name} …${share}`);
      },
    });
    this.#onProgress('');
    return engine;
  }
}

/** Calls `work` once, when the element comes near the window. */
export function whenSeen(element: Element, work: () => void): void {
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      observer.disconnect();
      work();
    },
    { rootMargin: '300px' },
  );
  observer.observe(element);
}
