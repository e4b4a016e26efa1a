// The section "Stable rank": how many directions each attention matrix of the loaded model really uses, layer by layer, and the
// singular values behind it.
import type { LabModel } from 'headlight-wasm/lab';
import { byId, el } from '../../shared/dom.js';
import { messageOf } from '../../shared/errors.js';
import { exportBar, type FigureData } from '../figure.js';
import { lineChart, lineLegend } from '../line_chart.js';
import { type LoadedModel, whenSeen } from '../loaded_model.js';
import type { UrlState } from '../url_state.js';
import {
  type LayerRanks,
  MATRICES,
  MATRIX_LABELS,
  type MatrixName,
  rankSentence,
  stableRank,
} from './rank_findings.js';

type Spectra = Record<MatrixName, Float32Array>;

export class WeightsSection {
  #url: UrlState;
  #model: LoadedModel;
  #failed: (message: string) => void;
  #spectra: Spectra[] = [];
  #run = 0;
  #layer: HTMLSelectElement = byId('rank-layer', HTMLSelectElement);

  constructor(url: UrlState, model: LoadedModel, failed: (message: string) => void) {
    [this.#url, this.#model, this.#failed] = [url, model, failed];
    this.#layer.addEventListener('change', () => {
      this.#url.set('rl', this.#layer.value === '0' ? undefined : this.#layer.value);
      this.#drawSpectrum();
    });
    byId('rank-export', HTMLElement).append(
      exportBar('the stable ranks', () => this.#rankData(), failed),
    );
    byId('spectrum-export', HTMLElement).append(
      exportBar('the singular values', () => this.#spectrumData(), failed),
    );
    byId('rank-legend', HTMLElement).append(
      ...lineLegend(MATRICES.map((name) => MATRIX_LABELS[name])),
    );
    model.onChange(() => void this.#compute());
  }

  start(): void {
    whenSeen(byId('ranks', HTMLElement), () => void this.#compute());
  }

  async #compute(): Promise<void> {
    this.#run += 1;
    const mine = this.#run;
    const status = byId('rank-status', HTMLElement);
    try {
      const lab = await this.#model.lab();
      this.#spectra = [];
      const { layers } = lab.original;
      this.#layer.replaceChildren(...layers.map((_, i) => new Option(`layer ${i}`, String(i))));
      this.#layer.value = String(Math.floor(this.#url.number('rl', 0, layers.length - 1) ?? 0));
      for (const layer of layers.keys()) {
        status.textContent = `Singular values of layer ${layer + 1} of ${layers.length} …`;
        const spectra = await spectraOf(lab.original, layer);
        if (mine !== this.#run) return;
        this.#spectra.push(spectra);
        this.#drawRanks();
        if (String(layer) === this.#layer.value) this.#drawSpectrum();
      }
      status.textContent = rankSentence(this.#ranks());
    } catch (error) {
      if (mine === this.#run) this.#failed(messageOf(error));
    }
  }

  #ranks(): LayerRanks[] {
    return this.#spectra.map((spectra, layer) => ({
      layer,
      ranks: Object.fromEntries(
        MATRICES.map((name) => [
          name,
          { stable: stableRank(spectra[name]), full: spectra[name].length },
        ]),
      ) as LayerRanks['ranks'],
    }));
  }

  #rankChart(width: number): SVGSVGElement {
    const ranks = this.#ranks();
    return lineChart({
      label: 'Stable rank of the attention matrices, layer by layer',
      ...{ xLabel: 'layer', yLabel: 'stable rank', width },
      series: MATRICES.map((name) => ({
        name: MATRIX_LABELS[name],
        points: ranks.map(({ layer, ranks: of }) => [layer, of[name].stable] as const),
      })),
      show: (text) => {
        byId('rank-detail', HTMLElement).textContent = text;
      },
    });
  }

  #drawRanks(): void {
    const chart = byId('rank-chart', HTMLElement);
    chart.replaceChildren(this.#rankChart(chart.clientWidth || 560));
    const head = ['Layer', ...MATRICES.map((name) => MATRIX_LABELS[name])];
    const rows = this.#ranks().map(({ layer, ranks }) =>
      el(
        'tr',
        { 'data-rank-layer': layer },
        el('th', { scope: 'row' }, String(layer)),
        ...MATRICES.map((name) =>
          el('td', {}, `${ranks[name].stable.toFixed(1)} of ${ranks[name].full}`),
        ),
      ),
    );
    byId('rank-table', HTMLTableElement).replaceChildren(
      el('thead', {}, el('tr', {}, ...head.map((title) => el('th', { scope: 'col' }, title)))),
      el('tbody', {}, ...rows),
    );
  }

  #spectrumChart(width: number): SVGSVGElement {
    const spectra = this.#spectra[Number(this.#layer.value)];
    return lineChart({
      label: 'Singular values of one layer as shares of the largest',
      ...{ xLabel: 'share of the directions', yLabel: 'share of the largest', width },
      series: MATRICES.map((name) => {
        const values = spectra?.[name] ?? new Float32Array();
        const [largest = 1] = values;
        return {
          name: MATRIX_LABELS[name],
          points: Array.from(
            values,
            (value, i) => [(i + 1) / values.length, value / largest] as const,
          ),
        };
      }),
    });
  }

  #drawSpectrum(): void {
    if (this.#spectra[Number(this.#layer.value)] === undefined) return;
    const chart = byId('spectrum-chart', HTMLElement);
    chart.replaceChildren(this.#spectrumChart(chart.clientWidth || 560));
  }

  #rankData(): FigureData {
    return {
      name: 'stable-rank',
      columns: ['layer', ...MATRICES.map((name) => MATRIX_LABELS[name])],
      rows: this.#ranks().map(({ layer, ranks }) => [
        layer,
        ...MATRICES.map((name) => ranks[name].stable),
      ]),
      picture: (width) => this.#rankChart(width),
    };
  }

  #spectrumData(): FigureData {
    const spectra = this.#spectra[Number(this.#layer.value)];
    const longest = Math.max(0, ...MATRICES.map((name) => spectra?.[name].length ?? 0));
    return {
      name: `singular-values-layer-${this.#layer.value}`,
      columns: ['i', ...MATRICES.map((name) => MATRIX_LABELS[name])],
      rows: Array.from({ length: longest }, (_, i) => [
        i,
        ...MATRICES.map((name) => spectra?.[name][i] ?? ''),
      ]),
      picture: (width) => this.#spectrumChart(width),
    };
  }
}

async function spectraOf(model: LabModel, layer: number): Promise<Spectra> {
  const entries: [MatrixName, Float32Array][] = [];
  for (const name of MATRICES)
    entries.push([name, (await model.spectrum(layer, name)).singularValues]);
  return Object.fromEntries(entries) as Spectra;
}
