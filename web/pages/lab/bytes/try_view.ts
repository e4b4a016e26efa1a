// "Run it": the calculator's layout, beside the row that it came from, in this tab.
import type { ModelShape, Spread } from 'headlight-wasm/lab';
import { byId, el } from '../../shared/dom.js';
import { exportBar, type FigureData } from '../figure.js';
import type { Kernels } from '../kernels.js';
import { StopButton } from '../stop_button.js';
import {
  type HeadWidths,
  nRounds,
  promptTokens,
  type TryResult,
  tryLayouts,
  winner,
} from './try_layout.js';
import { binaryBytes } from './units.js';

function milliseconds({ median, low, high }: Spread): string {
  const digits = median < 0.1 ? 3 : 2;
  return `${median.toFixed(digits)} ms (${low.toFixed(digits)} to ${high.toFixed(digits)})`;
}

function widthsText({ nQHeads, nKvHeads, dQk, dV }: HeadWidths): string {
  return `${nQHeads}/${nKvHeads} heads, ${dQk}/${dV} wide`;
}

export class TryView {
  #kernels: Kernels;
  #base: ModelShape | undefined;
  #shape: ModelShape | undefined;
  #result: TryResult | undefined;

  constructor(kernels: Kernels, failed: (message: string) => void) {
    this.#kernels = kernels;
    new StopButton({
      button: byId('try-run', HTMLButtonElement),
      status: byId('try-status', HTMLElement),
      label: 'Run again',
      run: (signal) => this.#run(signal),
      failed,
    });
    byId('try-export', HTMLElement).append(exportBar('the run', () => this.#data(), failed));
  }

  /** @param base the row that the calculator began with */
  show(shape: ModelShape, base: ModelShape): void {
    [this.#shape, this.#base] = [shape, base];
  }

  #layouts(): { label: string; widths: HeadWidths }[] {
    const [shape, base] = [this.#shape, this.#base];
    if (!shape || !base) return [];
    const own = { label: widthsText(shape), widths: widths(shape) };
    const first = { label: widthsText(base), widths: widths(base) };
    return own.label === first.label ? [own] : [first, own];
  }

  async #run(signal: AbortSignal): Promise<void> {
    const lab = await this.#kernels.lab();
    this.#result = await tryLayouts({
      layouts: this.#layouts(),
      attend: (options) => lab.attend(options),
      signal,
      onRound: (round) => {
        byId('try-status', HTMLElement).textContent = `Round ${round} of ${nRounds} …`;
      },
    });
    this.#showResult(this.#result);
  }

  #showResult({ nKv, rows }: TryResult): void {
    const winners = [winner(rows, 'f32'), winner(rows, 'int8')].filter((text) => text !== '');
    byId('try-status', HTMLElement).textContent =
      `One layer, one thread, ${nKv.toLocaleString('en-GB')} random rows in the cache; median of ${nRounds} rounds (from, to). ` +
      (crossOriginIsolated
        ? ''
        : 'This page is not cross-origin isolated: its clock ticks in 0.1 ms. ') +
      (winners.length > 0 ? winners.join(' ') : 'Change the layout above to compare two.');
    const titles = [
      'Layout',
      'Cache',
      'Cache bytes',
      'One token',
      `${promptTokens} tokens`,
      'Error against f32',
    ];
    const head = el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)));
    const body = rows.map(({ label, cache, cacheBytes, decode, prefill, error }) => {
      const cells = [
        cache,
        binaryBytes(cacheBytes),
        milliseconds(decode),
        milliseconds(prefill),
        error === 0 ? '0' : `${(100 * error).toPrecision(2)} %`,
      ];
      return el(
        'tr',
        { 'data-try': `${label}, ${cache}` },
        el('th', { scope: 'row' }, label),
        ...cells.map((cell) => el('td', {}, cell)),
      );
    });
    byId('try-table', HTMLTableElement).replaceChildren(
      el('thead', {}, head),
      el('tbody', {}, ...body),
    );
    byId('try-results', HTMLElement).hidden = false;
  }

  #data(): FigureData {
    return {
      name: 'run',
      columns: [
        'layout',
        'cache',
        'cacheBytes',
        'decodeMs',
        'decodeLowMs',
        'decodeHighMs',
        'prefillMs',
        'relativeRmsError',
      ],
      rows: (this.#result?.rows ?? []).map(
        ({ label, cache, cacheBytes, decode, prefill, error }) => [
          label,
          cache,
          cacheBytes,
          decode.median,
          decode.low,
          decode.high,
          prefill.median,
          error,
        ],
      ),
    };
  }
}

function widths({ nQHeads, nKvHeads, dQk, dV }: ModelShape): HeadWidths {
  return { nQHeads, nKvHeads, dQk, dV };
}
