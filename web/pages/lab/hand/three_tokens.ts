// "Three tokens": every matrix of the third article's example, editable, each step computed anew, each number with its own
// arithmetic. Weights and outputs come from the kernels and are held against the written-out arithmetic.
import { byId, el } from '../../shared/dom.js';
import { exportBar, type FigureData } from '../figure.js';
import { type Kernels, Latest } from '../kernels.js';
import type { UrlState } from '../url_state.js';
import { flat, largestDifference, type Matrix, rowsOf } from './arithmetic.js';
import { MatrixInput, MatrixView } from './matrix_view.js';
import {
  articleMatrices,
  computeSteps,
  explain,
  type InputName,
  type Inputs,
  type MatrixName,
  type Source,
  type StepName,
  type Steps,
  scaleOf,
  sinkScores,
  symbols,
  tokens,
} from './three_steps.js';

const inputNames = Object.keys(articleMatrices) as InputName[];
const dims = ['0', '1', '2', '3'];

type SwitchedInput = 'isScaled' | 'isCausal' | 'isNormed' | 'isPadded' | 'hasSink';

/** Boxes to tick, their names in the address, and how the article has them. */
const switches = [
  { id: 'three-scale', name: 'scale', input: 'isScaled', isOn: true },
  { id: 'three-mask', name: 'mask', input: 'isCausal', isOn: true },
  { id: 'three-qknorm', name: 'qknorm', input: 'isNormed', isOn: false },
  { id: 'three-padding', name: 'padding', input: 'isPadded', isOn: false },
  { id: 'three-sink', name: 'learnedsink', input: 'hasSink', isOn: false },
] as const satisfies readonly { id: string; name: string; input: SwitchedInput; isOn: boolean }[];

interface StepText {
  title: string;
  text: string;
  /** Below the title, in this order. */
  shows: readonly StepName[];
}

const stepTexts: readonly StepText[] = [
  {
    title: '1. Three roles for each token',
    text: 'The same row of X gives a query (what am I looking for?), a key (what do I offer?) and a value (what do I hand over?).',
    shows: ['q', 'k', 'v'],
  },
  {
    title: '2. Scores: Q Kᵀ',
    text: 'Row: who asks. Column: who is looked at. A dot product is large where query and key point the same way. With QK-norm each row of Q and K is divided by its root mean square first: then no score exceeds d_qk, however large X is.',
    shows: ['qNormed', 'kNormed', 'scores'],
  },
  {
    title: '3. Scale: divide by √d_qk',
    text: 'Long vectors make large scores; dividing by √d_qk takes that back.',
    shows: ['scaled'],
  },
  {
    title: '4. Mask: no look ahead, no padding',
    text: 'What a token must not see gets −∞, whose exponential is exactly zero: later tokens, and padding that only fills up a batch. Without the causal mask every token sees all others, as in BERT.',
    shows: ['masked'],
  },
  {
    title: '5. Softmax: one budget of 1',
    text: 'Each row becomes shares of exactly 1; with a learned sink, of less: a head that finds nothing leaves its budget there. This is where the kernels’ numbers begin.',
    shows: ['weights'],
  },
  {
    title: '6. Blend: A V',
    text: 'Each output is the values, mixed in those shares.',
    shows: ['out'],
  },
];

const viewSizes: Record<StepName, { nColumns: number; columns: readonly string[] }> = {
  q: { nColumns: 2, columns: ['0', '1'] },
  k: { nColumns: 2, columns: ['0', '1'] },
  v: { nColumns: 2, columns: ['0', '1'] },
  qNormed: { nColumns: 2, columns: ['0', '1'] },
  kNormed: { nColumns: 2, columns: ['0', '1'] },
  scores: { nColumns: 3, columns: tokens },
  scaled: { nColumns: 3, columns: tokens },
  masked: { nColumns: 3, columns: tokens },
  weights: { nColumns: 3, columns: tokens },
  out: { nColumns: 2, columns: ['0', '1'] },
};

const normedNames: readonly StepName[] = ['qNormed', 'kNormed'];

interface Pointed {
  name: StepName;
  row: number;
  column: number;
}
const firstPointed: Pointed = { name: 'weights', row: 2, column: 0 };

interface FromKernels {
  weights: number[][];
  out: number[][];
  kernel: string;
  module: string;
}

export class ThreeTokens {
  #state: UrlState;
  #kernels: Kernels;
  #latest: Latest;
  #inputViews = new Map<InputName, MatrixInput>();
  #views = new Map<StepName, MatrixView>();
  #inputs: Inputs;
  #steps: Steps;
  #switches = switches.map((it) => ({ ...it, box: byId(it.id, HTMLInputElement) }));
  #pointed: Pointed = firstPointed;

  constructor(state: UrlState, kernels: Kernels, failed: (message: string) => void) {
    this.#state = state;
    this.#kernels = kernels;
    this.#latest = new Latest(failed);
    this.#inputs = this.#read();
    this.#steps = computeSteps(this.#inputs);
    this.#addInputs();
    this.#addSteps();
    for (const { box, name, isOn } of this.#switches) {
      box.addEventListener('change', () =>
        this.#set(name, box.checked === isOn ? undefined : box.checked ? 'on' : 'off'),
      );
    }
    byId('three-reset', HTMLButtonElement).addEventListener('click', () => {
      const names = [...inputNames, ...switches.map(({ name }) => name)];
      for (const name of names) this.#state.set(name, undefined);
      void this.update();
    });
    byId('three-export', HTMLElement).append(exportBar('all matrices', () => this.#data(), failed));
  }

  /** Resolves when the kernels' numbers stand. */
  async update(): Promise<void> {
    this.#inputs = this.#read();
    this.#steps = computeSteps(this.#inputs);
    for (const { box, input } of this.#switches) box.checked = this.#inputs[input];
    for (const name of inputNames) this.#inputViews.get(name)?.show(this.#inputs[name]);
    for (const [name, view] of this.#views) {
      if (name !== 'weights' && name !== 'out') view.show(this.#steps[name]);
    }
    this.#showNormed();
    await this.#latest.run(
      () => this.#compute(this.#inputs, this.#steps),
      (result) => this.#showKernels(result),
    );
  }

  /** Without QK-norm these two would only repeat Q and K. */
  #showNormed(): void {
    const { isNormed } = this.#inputs;
    for (const name of normedNames) {
      const view = this.#views.get(name);
      if (view) view.root.hidden = !isNormed;
      if (!isNormed && this.#pointed.name === name) this.#pointed = firstPointed;
    }
  }

  #read(): Inputs {
    const matrix = (name: InputName): Matrix => {
      const article = articleMatrices[name];
      const columns = article[0].length;
      const values = this.#state.numbers(name, article.length * columns);
      return values ? rowsOfNumbers(values, columns) : article;
    };
    return {
      x: matrix('x'),
      wq: matrix('wq'),
      wk: matrix('wk'),
      wv: matrix('wv'),
      isScaled: this.#isOn('isScaled'),
      isCausal: this.#isOn('isCausal'),
      isNormed: this.#isOn('isNormed'),
      isPadded: this.#isOn('isPadded'),
      hasSink: this.#isOn('hasSink'),
    };
  }

  #isOn(input: SwitchedInput): boolean {
    const { name, isOn } = switches.find((it) => it.input === input) ?? switches[0];
    const text = this.#state.get(name);
    return text === 'on' || (isOn && text !== 'off');
  }

  #addInputs(): void {
    const box = byId('three-inputs', HTMLElement);
    for (const name of inputNames) {
      const values = this.#inputs[name];
      const labels =
        name === 'x' ? { rows: tokens, columns: dims } : { rows: dims, columns: ['0', '1'] };
      const view = new MatrixInput(
        { name: symbols[name], values, testid: `three-${name}`, ...labels },
        (edited) => {
          const text = edited.flat().join(',');
          this.#set(name, text === articleMatrices[name].flat().join(',') ? undefined : text);
        },
      );
      this.#inputViews.set(name, view);
      box.append(view.root);
    }
  }

  #addSteps(): void {
    const box = byId('three-steps', HTMLElement);
    for (const { title, text, shows } of stepTexts) {
      const matrices = shows.map((name) => {
        const view = new MatrixView(
          {
            name: symbols[name],
            rows: tokens,
            nRows: 3,
            testid: `three-${name}`,
            ...viewSizes[name],
          },
          (row, column) => {
            this.#pointed = { name, row, column };
            this.#explain();
          },
        );
        this.#views.set(name, view);
        return view.root;
      });
      box.append(
        el(
          'li',
          { class: 'step' },
          el('h4', {}, title),
          el('p', {}, text),
          el('div', { class: 'matrices' }, ...matrices),
        ),
      );
    }
  }

  #set(name: string, value: string | undefined): void {
    this.#state.set(name, value);
    void this.update();
  }

  /** attend() takes queries and keys that are ready for the dot product: a model normalises and rotates them before it. */
  async #compute(inputs: Inputs, { qNormed, kNormed, v }: Steps): Promise<FromKernels> {
    const lab = await this.#kernels.lab();
    const common = {
      nQHeads: 1,
      nKvHeads: 1,
      dQk: 2,
      q: flat(qNormed),
      k: flat(kNormed),
      scale: scaleOf(inputs),
      causal: inputs.isCausal,
      ...(inputs.isPadded ? { mask: Uint8Array.of(1, 1, 0) } : {}),
      ...(inputs.hasSink ? { sinkLogits: Float32Array.from(sinkScores(inputs)) } : {}),
    };
    const weights = await lab.weights(common);
    const { out, kernel } = await lab.attend({ ...common, dV: 2, v: flat(v) });
    return { weights: rowsOf(weights, 3), out: rowsOf(out, 2), kernel, module: lab.runtime.module };
  }

  #showKernels({ weights, out, kernel, module }: FromKernels): void {
    const difference = Math.max(
      largestDifference(weights, this.#steps.weights),
      largestDifference(out, this.#steps.out),
    );
    this.#steps = { ...this.#steps, weights, out };
    this.#views.get('weights')?.show(weights);
    this.#views.get('out')?.show(out);
    byId('three-check', HTMLElement).textContent =
      `A and out: kernel “${kernel}” of module ${module}, in 32-bit floats; at most ` +
      `${difference.toExponential(0)} from the arithmetic shown.`;
    this.#explain();
  }

  #explain(): void {
    const { name, row, column } = this.#pointed;
    const explanation = explain(name, row, column, this.#inputs);
    byId('three-name', HTMLElement).textContent = explanation.name;
    byId('three-text', HTMLElement).textContent = explanation.text;
    const isSource = (matrix: MatrixName, sources: readonly Source[]) => (i: number, j: number) =>
      sources.some(
        (source) =>
          source.matrix === matrix && (source.row ?? i) === i && (source.column ?? j) === j,
      );
    const { sources } = explanation;
    for (const [matrix, view] of this.#inputViews) view.mark(isSource(matrix, sources));
    for (const [matrix, view] of this.#views) {
      view.mark(isSource(matrix, sources));
      view.root.querySelector('.pointed')?.classList.remove('pointed');
      if (matrix === name) {
        view.root.querySelector(`[data-cell="${row},${column}"]`)?.classList.add('pointed');
      }
    }
  }

  #data(): FigureData {
    const all: [string, Matrix][] = [
      ...inputNames.map((name): [string, Matrix] => [symbols[name], this.#inputs[name]]),
      ...[...this.#views.keys()].map((name): [string, Matrix] => [
        symbols[name],
        this.#steps[name],
      ]),
    ];
    return {
      name: 'three-tokens',
      columns: ['matrix', 'row', '0', '1', '2', '3'],
      rows: all.flatMap(([name, matrix]) =>
        matrix.map((row, i) => [name, i, ...dims.map((_, j) => finite(row[j]))]),
      ),
    };
  }
}

/** JSON has no infinity. */
function finite(value: number | undefined): number | string {
  if (value === undefined) return '';
  return Number.isFinite(value) ? value : '-Infinity';
}

function rowsOfNumbers(values: readonly number[], columns: number): number[][] {
  return Array.from({ length: values.length / columns }, (_, i) =>
    values.slice(i * columns, (i + 1) * columns),
  );
}
