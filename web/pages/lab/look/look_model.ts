// The model that the section looks into: the one that the page's sections share, or the constructed circuit, which is tiny and has
// an engine of its own.
import { Engine } from 'headlight-wasm';
import { inductionCircuit } from 'headlight-wasm/lab';
import type { ModelChoice } from '../../shared/model_source.js';
import type { LoadedModel } from '../loaded_model.js';

export const circuitName = 'circuit';

export class LookModel {
  readonly #shared: LoadedModel;
  readonly #default: ModelChoice;
  #file: ModelChoice | undefined;
  #circuit: Promise<Engine> | undefined;

  constructor(shared: LoadedModel) {
    this.#shared = shared;
    this.#default = shared.choice;
  }

  useFile(choice: ModelChoice): void {
    this.#file = choice;
  }

  /** @param name 'circuit', 'file' or anything else for the default model: that becomes the page's, if it is not yet */
  engine(name: string): Promise<Engine> {
    if (name === circuitName) {
      this.#circuit ??= Engine.load(inductionCircuit()).catch((error: unknown) => {
        this.#circuit = undefined;
        throw error;
      });
      return this.#circuit;
    }
    this.#shared.choose((name === 'file' ? this.#file : undefined) ?? this.#default);
    return this.#shared.engine();
  }
}
