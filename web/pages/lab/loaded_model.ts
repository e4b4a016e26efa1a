// The model that the page's sections share: which one was chosen, and its engine, loaded when a section first needs it.
import { Engine } from 'headlight-wasm';
import { ModelLab } from 'headlight-wasm/lab';
import { messageOf } from '../shared/errors.js';
import type { ModelChoice } from '../shared/model_source.js';

/** What went wrong with a file, in the error's own words, and what is shown now. Errors about bytes alone do not name the file. */
export function earlierStays(name: string, error: unknown): string {
  const message = messageOf(error).replace(/\.$/, '');
  return `${message.includes(name) ? '' : `${name}: `}${message}. The model before it stays in use.`;
}

interface Hooks {
  progress(text: string): void;
  /** A chosen model could not be loaded: the one before is the choice again. */
  wentBack(message: string): void;
}

export class LoadedModel {
  #choice: ModelChoice;
  /** To go back to, until the chosen one is loaded. */
  #former: ModelChoice | undefined;
  #engine: Promise<Engine> | undefined;
  #lab: Promise<ModelLab> | undefined;
  #listeners: (() => void)[] = [];
  #hooks: Hooks;

  constructor(choice: ModelChoice, hooks: Hooks) {
    this.#choice = choice;
    this.#hooks = hooks;
  }

  get choice(): ModelChoice {
    return this.#choice;
  }

  /** Another model: the engine of the one before is ended, and what was shown of it is out of date. */
  choose(choice: ModelChoice): void {
    this.#former ??= this.#choice;
    this.#turnTo(choice);
  }

  #turnTo(choice: ModelChoice): void {
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
    this.#engine ??= this.#loadChosen();
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

  async #loadChosen(): Promise<Engine> {
    const choice = this.#choice;
    try {
      const engine = await this.#load(choice);
      if (choice === this.#choice) this.#former = undefined;
      return engine;
    } catch (error) {
      if (choice === this.#choice) {
        const former = this.#former;
        [this.#engine, this.#former] = [undefined, undefined];
        this.#hooks.progress('');
        if (former !== undefined) {
          this.#turnTo(former);
          this.#hooks.wentBack(earlierStays(choice.name, error));
        }
      }
      throw error;
    }
  }

  async #load({ source, name }: ModelChoice): Promise<Engine> {
    const engine = await Engine.load(source, {
      // The lab is in the modules of one thread only.
      threads: 1,
      onProgress: ({ phase, loadedBytes, totalBytes }) => {
        const share = totalBytes ? ` ${Math.round((100 * loadedBytes) / totalBytes)} %` : '';
        this.#hooks.progress(phase === 'ready' ? '' : `Loading ${name} …${share}`);
      },
    });
    this.#hooks.progress('');
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
