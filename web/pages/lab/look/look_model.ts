// The model that the section looks into: the page's default, the constructed circuit, or the visitor's file. Loaded when it is
// first needed; a later choice replaces one that is still loading.
import { Engine, inspectModel, type LoadProgress } from 'headlight-wasm';
import { inductionCircuit } from 'headlight-wasm/lab';
import type { ModelChoice } from '../../shared/model_source.js';

export const circuitName = 'circuit';

/** Of a visitor's file: more than the page shows, and less cache than for the model's whole context. */
const nCtxWanted = 1024;

export class LookModel {
  #default: ModelChoice;
  #file: ModelChoice | undefined;
  /** To go back to, until the file is loaded. */
  #former: { file: ModelChoice | undefined } | undefined;
  #name = '';
  #engine: Promise<Engine> | undefined;
  #abort: AbortController | undefined;
  #onProgress: (progress: LoadProgress) => void;

  constructor(defaultChoice: ModelChoice, onProgress: (progress: LoadProgress) => void) {
    this.#default = defaultChoice;
    this.#onProgress = onProgress;
  }

  get file(): ModelChoice | undefined {
    return this.#file;
  }

  useFile(choice: ModelChoice): void {
    this.#former ??= { file: this.#file };
    this.#file = choice;
    this.#name = '';
  }

  /** After the file failed to load. False: there is nothing to go back to. */
  goBack(): boolean {
    if (this.#former === undefined) return false;
    this.#file = this.#former.file;
    this.#former = undefined;
    this.#name = '';
    return true;
  }

  /** @param name 'circuit', 'file' or anything else for the default model */
  engine(name: string): Promise<Engine> {
    if (this.#engine !== undefined && this.#name === name) return this.#engine;
    const former = this.#engine;
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    this.#name = name;
    const loading = this.#load(name, abort.signal);
    this.#engine = loading;
    loading.catch(() => {
      if (this.#engine === loading) this.#engine = undefined;
    });
    void former?.then((engine) => engine.dispose()).catch(() => {});
    return loading;
  }

  async #load(name: string, signal: AbortSignal): Promise<Engine> {
    const source =
      name === circuitName
        ? inductionCircuit()
        : ((name === 'file' ? this.#file : undefined) ?? this.#default).source;
    const onProgress = (progress: LoadProgress) => {
      if (!signal.aborted) this.#onProgress(progress);
    };
    const options = { signal, onProgress };
    if (name !== 'file') return Engine.load(source, options);
    const { model } = await inspectModel(source, { signal });
    const nCtx = Math.min(model.nCtxTrain, nCtxWanted);
    const engine = await Engine.load(source, { ...options, nCtx });
    if (!signal.aborted) this.#former = undefined;
    return engine;
  }
}
