// The toy of a fixed replacement on the page: the averaged map, the spread and the error over 20 seeds, the article's draw beside.
import { byId, el } from '../../shared/dom.js';
import { messageOf } from '../../shared/errors.js';
import { exportBar, type FigureData } from '../figure.js';
import type { Kernels } from '../kernels.js';
import { type Many, overSeeds, runToy, type ToyKind, type ToyResult, toySeeds } from './toy.js';

const KINDS: readonly { kind: ToyKind; name: string; article: string; content: string }[] = [
  {
    kind: 'previous',
    name: 'Previous-token head, with a weak look at content',
    article: '0.0346 and 0.026 (one draw, printed 0.03 and 0.026)',
    content: 'fixed',
  },
  {
    kind: 'content',
    name: 'Content-based head (x W xᵀ / √d)',
    article: 'about 0.37 and 0.61 (with the scale 1/√d, which its text does not name)',
    content: 'content-based',
  },
];

export class ToyView {
  #kernels: Kernels;
  #failed: (message: string) => void;
  #results = new Map<ToyKind, ToyResult[]>();
  #button = byId('toy-run', HTMLButtonElement);

  constructor(kernels: Kernels, failed: (message: string) => void) {
    [this.#kernels, this.#failed] = [kernels, failed];
    this.#button.addEventListener('click', () => void this.#run());
    byId('toy-export', HTMLElement).append(exportBar('the toy', () => this.#data(), failed));
  }

  async #run(): Promise<void> {
    this.#button.disabled = true;
    const status = byId('toy-status', HTMLElement);
    try {
      const lab = await this.#kernels.lab();
      for (const { kind } of KINDS) {
        const results: ToyResult[] = [];
        this.#results.set(kind, results);
        for (let seed = 0; seed < toySeeds; seed++) {
          status.textContent = `${kind === 'previous' ? 'Previous-token' : 'Content-based'} head, draw ${seed + 1} of ${toySeeds} …`;
          results.push(await runToy((options) => lab.weights(options), kind, seed));
          this.#show();
        }
      }
      status.textContent = 'Computed by the kernels: 2,000 maps and 200 trials a draw.';
    } catch (error) {
      status.textContent = '';
      this.#failed(messageOf(error));
    } finally {
      this.#button.disabled = false;
    }
  }

  #show(): void {
    const rows = KINDS.flatMap(({ kind, name, article }) => {
      const results = this.#results.get(kind) ?? [];
      if (results.length === 0) return [];
      const cells = [many(results, 'spread'), many(results, 'error')].map(text);
      return [
        el(
          'tr',
          { 'data-toy': kind },
          el('th', { scope: 'row' }, name),
          ...[...cells, article].map((cell) => el('td', {}, cell)),
        ),
      ];
    });
    const titles = ['Head', 'Spread: largest deviation', 'Error of the replacement', 'The article'];
    byId('toy-table', HTMLTableElement).replaceChildren(
      el('thead', {}, el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)))),
      el('tbody', {}, ...rows),
    );
    const first = this.#results.get('previous')?.[0];
    byId('toy-map', HTMLTableElement).replaceChildren(
      el(
        'tbody',
        {},
        ...(first?.mean ?? []).map((row, t) =>
          el(
            'tr',
            {},
            ...row.slice(0, t + 1).map((weight) => {
              const cell = el('td', {}, weight.toFixed(2));
              cell.style.setProperty('--share', String(weight));
              return cell;
            }),
          ),
        ),
      ),
    );
    byId('toy-results', HTMLElement).hidden = false;
  }

  #data(): FigureData {
    return {
      name: 'toy',
      columns: ['head', 'draw', 'spread', 'error'],
      rows: KINDS.flatMap(({ kind, content }) =>
        (this.#results.get(kind) ?? []).map(({ spread, error }, i) => [content, i, spread, error]),
      ),
    };
  }
}

function many(results: readonly ToyResult[], field: 'spread' | 'error'): Many {
  return overSeeds(results.map((result) => result[field]));
}

function text({ mean, low, high }: Many): string {
  return `${mean.toFixed(4)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
}
