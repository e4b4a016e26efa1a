// The section "Try a layout": the calculator's layout as a whole model, beside the row it came from.
import { Engine } from 'headlight-wasm';
import {
  LAYOUT_FILLINGS,
  LAYOUT_ROUNDS,
  type LayoutRun,
  type LayoutRunProgress,
  layoutWinner,
  type ModelShape,
  type NamedLayout,
  runLayouts,
} from 'headlight-wasm/lab';
import { byId, el } from '../../shared/dom.js';
import { binaryBytes } from '../bytes/units.js';
import { exportBar, type FigureData } from '../figure.js';
import { lineChart, lineLegend } from '../line_chart.js';
import { StopButton } from '../stop_button.js';

export class RunSection {
  #shape: ModelShape | undefined;
  #base: ModelShape | undefined;
  #rows: LayoutRun[] = [];

  constructor(failed: (message: string) => void) {
    new StopButton({
      button: byId('run-models', HTMLButtonElement),
      status: byId('run-status', HTMLElement),
      label: 'Run again',
      run: (signal) => this.#run(signal),
      failed,
    });
    byId('run-export', HTMLElement).append(exportBar('the run', () => this.#data(), failed));
  }

  /** @param base the row that the calculator began with */
  show(shape: ModelShape, base: ModelShape): void {
    [this.#shape, this.#base] = [shape, base];
    const names = this.#models().map(({ label }) => label);
    byId('run-what', HTMLElement).textContent =
      names.length < 2
        ? `${names[0] ?? ''}. Change the calculator above to compare two.`
        : `${names[0]} against ${names[1]}.`;
  }

  #models(): NamedLayout[] {
    const [shape, base] = [this.#shape, this.#base];
    if (!shape || !base) return [];
    const own = { label: name(shape), shape };
    const first = { label: name(base), shape: base };
    return own.label === first.label ? [own] : [first, own];
  }

  async #run(signal: AbortSignal): Promise<void> {
    this.#rows = await runLayouts(this.#models(), {
      load: Engine.load,
      signal,
      onProgress: (progress) => {
        byId('run-status', HTMLElement).textContent = progressText(progress);
      },
    });
    this.#show();
  }

  #show(): void {
    const notes = this.#rows.flatMap(({ label, note }) =>
      note === '' ? [] : [`${label}: ${note}.`],
    );
    byId('run-status', HTMLElement).textContent = [
      `Random weights, one thread, median of ${LAYOUT_ROUNDS} rounds (from, to).`,
      layoutWinner(this.#rows),
      ...notes,
    ].join(' ');
    const titles = ['Layout', 'Weights', 'Cache a token', 'Prompt, 512 tokens'];
    const head = [
      ...titles,
      ...LAYOUT_FILLINGS.map((n) => `One token, ${n} in the cache`),
      'Error of the logits',
    ];
    const body = this.#rows.map((row) =>
      el(
        'tr',
        { 'data-run': row.label },
        el('th', { scope: 'row' }, row.label),
        el('td', {}, binaryBytes(row.weightsBytes)),
        el('td', {}, binaryBytes(row.kvBytesPerToken)),
        el('td', {}, `${(1000 / row.prefill.median).toFixed(0)} tokens/s`),
        ...row.decode.map(({ ms }) =>
          el(
            'td',
            {},
            `${(1000 / ms.median).toFixed(0)} tokens/s`,
            el('small', {}, `${ms.low.toFixed(2)} to ${ms.high.toFixed(2)} ms`),
          ),
        ),
        el(
          'td',
          {},
          row.errors
            .filter(({ cache }) => cache !== 'f32')
            .map(({ cache, error }) => `${cache} ${(100 * error).toPrecision(2)} %`)
            .join(', '),
        ),
      ),
    );
    byId('run-table', HTMLTableElement).replaceChildren(
      el('thead', {}, el('tr', {}, ...head.map((title) => el('th', { scope: 'col' }, title)))),
      el('tbody', {}, ...body),
    );
    byId('run-results', HTMLElement).hidden = false;
    byId('run-legend', HTMLElement).replaceChildren(
      ...lineLegend(this.#rows.map(({ label }) => label)),
    );
    const chart = byId('run-chart', HTMLElement);
    chart.replaceChildren(this.#chart(chart.clientWidth || 560));
  }

  #chart(width: number): SVGSVGElement {
    return lineChart({
      label: 'Attention’s time for one token as the cache fills',
      ...{ xLabel: 'tokens in the cache', yLabel: 'attention, ms a token', width },
      series: this.#rows.map(({ label, decode }) => ({
        name: label,
        points: decode.map(({ nKv, attentionMs }) => [nKv, attentionMs.median] as const),
      })),
      show: (text) => {
        byId('run-detail', HTMLElement).textContent = text;
      },
    });
  }

  #data(): FigureData {
    return {
      name: 'layouts',
      columns: [
        'layout',
        'nKv',
        'decodeMs',
        'lowMs',
        'highMs',
        'attentionMs',
        'weightsBytes',
        'kvBytesPerToken',
      ],
      rows: this.#rows.flatMap(({ label, decode, weightsBytes, kvBytesPerToken }) =>
        decode.map(({ nKv, ms, attentionMs }) => [
          ...[label, nKv, ms.median, ms.low, ms.high],
          ...[attentionMs.median, weightsBytes, kvBytesPerToken],
        ]),
      ),
      picture: (width) => this.#chart(width),
    };
  }
}

function progressText({ round, nRounds, building }: LayoutRunProgress): string {
  if (building !== undefined) return `Building ${building} …`;
  return round === 0 ? 'Warming up …' : `Round ${round} of ${nRounds} …`;
}

function name({ nQHeads, nKvHeads, dQk, dV, nLayers, dModel }: ModelShape): string {
  return `${nLayers} × ${dModel}, ${nQHeads}/${nKvHeads} heads, ${dQk}/${dV} wide`;
}
