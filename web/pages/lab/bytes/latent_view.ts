// What multi-head latent attention keeps of a token in a layer, beside heads with keys and values of their own.
import { layoutCost, PLAIN } from 'headlight-wasm/lab';
import { byId } from '../../shared/dom.js';
import { exportBar, type FigureData } from '../figure.js';
import type { UrlState } from '../url_state.js';
import { NumberField } from './fields.js';
import { trimmed } from './units.js';

export interface LatentInputs {
  latent: number;
  rotary: number;
  heads: number;
  width: number;
}

/** DeepSeek-V3's (arXiv 2412.19437). */
export const latentArticle: LatentInputs = { latent: 512, rotary: 64, heads: 128, width: 128 };

const numbers = {
  latent: { key: 'mlac', label: 'Width of the latent' },
  rotary: { key: 'mlar', label: 'Shared rotary key' },
  heads: { key: 'mlah', label: 'Heads' },
  width: { key: 'mlaw', label: 'Width of keys and values' },
} as const;
type Name = keyof typeof numbers;
const names = Object.keys(numbers) as Name[];
const most = 8192;

export interface LatentCost {
  /** Numbers of a token in a layer. */
  latent: number;
  full: number;
  times: number;
  /** KV heads of grouped queries that would cost the same. */
  groups: number;
}

export function latentCost({ latent, rotary, heads, width }: LatentInputs): LatentCost {
  const base = { ...PLAIN, nLayers: 1, dModel: 1, dFf: 1, vocabSize: 0, tiedHead: true };
  const kept = (nHeads: number, dQk: number, dV: number) => {
    const shape = { ...base, nQHeads: nHeads, nKvHeads: nHeads, dQk, dV };
    const { kvBytesPerToken, kvKeyBytesPerToken } = layoutCost(shape);
    return { keys: kvKeyBytesPerToken / 2, all: kvBytesPerToken / 2 };
  };
  // Values are read out of the same latent: only these keys are kept.
  const own = kept(1, latent + rotary, latent).keys;
  const full = kept(heads, width, width).all;
  return { latent: own, full, times: full / own, groups: own / kept(1, width, width).all };
}

export function latentSentence(inputs: LatentInputs): string {
  const { latent, full, times, groups } = latentCost(inputs);
  const count = (n: number) => n.toLocaleString('en-GB');
  const { width } = inputs;
  return (
    `${count(latent)} numbers a token and layer instead of ${count(full)}: ${times.toFixed(1)} times fewer, ` +
    `as many as ${trimmed(groups)} KV heads of ${width} + ${width} would keep.`
  );
}

export class LatentView {
  #state: UrlState;
  #fields = new Map<Name, NumberField>();

  constructor(state: UrlState, failed: (message: string) => void) {
    this.#state = state;
    for (const name of names) {
      const { key, label } = numbers[name];
      const field = new NumberField({ id: `mla-${name}`, label, min: 1, max: most }, (value) => {
        this.#state.set(key, value === latentArticle[name] ? undefined : value);
        this.#show();
      });
      this.#fields.set(name, field);
      byId('mla-fields', HTMLElement).append(field.root);
    }
    byId('mla-export', HTMLElement).append(exportBar('the latent', () => this.#data(), failed));
    this.#show();
  }

  #inputs(): LatentInputs {
    const read = (name: Name) =>
      Math.round(this.#state.number(numbers[name].key, 1, most) ?? latentArticle[name]);
    return {
      latent: read('latent'),
      rotary: read('rotary'),
      heads: read('heads'),
      width: read('width'),
    };
  }

  #show(): void {
    const inputs = this.#inputs();
    for (const [name, field] of this.#fields) field.show(inputs[name]);
    byId('mla-result', HTMLElement).textContent = latentSentence(inputs);
  }

  #data(): FigureData {
    const inputs = this.#inputs();
    const { latent, full, times, groups } = latentCost(inputs);
    return {
      name: 'latent',
      columns: [...names, 'latentNumbers', 'fullNumbers', 'times', 'groups'],
      rows: [[...names.map((name) => inputs[name]), latent, full, times, groups]],
    };
  }
}
