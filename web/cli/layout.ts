// `layout`: what head layouts cost, by the same code as the lab page. Rows of a named preset or of a model's own layout, each
// changed by the flags.
import process from 'node:process';
import { Engine, inspectModel } from 'headlight-wasm';
import {
  type LayoutCacheType,
  type LayoutCost,
  type LayoutOptions,
  type LayoutRun,
  layoutCost,
  layoutPreset,
  type ModelShape,
  PRESET_NAMES,
  type PresetRow,
  runLayouts,
  shapeOfModel,
  type WeightType,
} from 'headlight-wasm/lab';
import { alignedTable, bytesText, printJson } from './output.js';
import { type Call, numberOf, stringOf, UsageError, type Values } from './usage.js';

const MB = 1e6;

/** Flags that change one number of the shape. */
const SHAPE_FLAGS = {
  layers: 'nLayers',
  'd-model': 'dModel',
  'q-heads': 'nQHeads',
  'kv-heads': 'nKvHeads',
  'd-qk': 'dQk',
  'd-v': 'dV',
  'd-ff': 'dFf',
  vocab: 'vocabSize',
} as const satisfies Record<string, keyof ModelShape>;

function changed(shape: ModelShape, values: Values): ModelShape {
  const changes = Object.entries(SHAPE_FLAGS).flatMap(([flag, name]) => {
    const number = numberOf(values, flag);
    return number === undefined ? [] : [[name, number] as const];
  });
  return { ...shape, ...Object.fromEntries(changes) };
}

interface Source {
  rows: readonly PresetRow[];
  /** Default of --weights. */
  weights: WeightType;
  note: string;
}

async function sourceOf(call: Call): Promise<Source> {
  const preset = stringOf(call.values, 'preset');
  if ((preset === undefined) === (call.model === '')) {
    const known = PRESET_NAMES.join(', ');
    throw new UsageError(`layout: one of a MODEL and --preset NAME is expected. Presets: ${known}`);
  }
  if (preset !== undefined) return layoutPreset(preset);
  const { model } = await inspectModel(call.model);
  const { shape, isUniform } = shapeOfModel(model);
  const note = isUniform
    ? ''
    : 'The layers differ in their heads: all are counted as the first one.';
  return { rows: [{ label: model.name || call.model, shape, printed: {} }], weights: 'f16', note };
}

interface LayoutRow extends LayoutCost {
  label: string;
  layout: ModelShape;
  /** Against the first row: -0.078 is 7.8 % smaller. */
  fileChange: number;
}

export async function layout(call: Call, json: boolean): Promise<void> {
  const { values } = call;
  const { rows: sources, weights, note } = await sourceOf(call);
  const cache = stringOf(values, 'cache') ?? 'f16';
  const options: LayoutOptions = {
    weights: (stringOf(values, 'weights') ?? weights) as WeightType,
    cacheK: cache as LayoutCacheType,
    cacheV: cache as LayoutCacheType,
    nCtx: numberOf(values, 'n-ctx') ?? 8192,
  };
  const rows: LayoutRow[] = [];
  for (const { label, shape } of sources) {
    const layoutShape = changed(shape, values);
    const cost = layoutCost(layoutShape, options);
    const first = rows[0]?.fileBytes ?? cost.fileBytes;
    rows.push({ label, layout: layoutShape, ...cost, fileChange: cost.fileBytes / first - 1 });
  }
  const runs = values.run === true ? await run(rows) : undefined;
  const more = runs === undefined ? {} : { runs };
  if (json) printJson({ weights: options.weights, cache, nCtx: options.nCtx, note, rows, ...more });
  else process.stdout.write(table(rows, note) + (runs === undefined ? '' : runTable(runs)));
}

/** Models of the layouts with random weights, in turns. */
function run(rows: readonly LayoutRow[]): Promise<LayoutRun[]> {
  const layouts = rows.map(({ label, layout: shape }) => ({ label, shape }));
  return runLayouts(layouts, { load: Engine.load });
}

function runTable(runs: readonly LayoutRun[]): string {
  const fillings = runs[0]?.decode.map(({ nKv }) => `${nKv} keys, ms`) ?? [];
  const body = runs.map(({ label, weightsBytes, kvBytesPerToken, decode, prefill, errors }) => [
    ...[label, bytesText(weightsBytes), bytesText(kvBytesPerToken)],
    (1000 / prefill.median).toFixed(0),
    ...decode.map(({ ms }) => ms.median.toFixed(3)),
    ...errors.slice(1).map(({ error }) => `${(100 * error).toPrecision(2)} %`),
  ]);
  const errors = runs[0]?.errors.slice(1).map(({ cache }) => `${cache} error`) ?? [];
  const head = ['run', 'weights', 'KV a token', 'prefill tokens/s', ...fillings, ...errors];
  const notes = runs
    .filter(({ note }) => note !== '')
    .map(({ label, note }) => `${label}: ${note}`);
  return `\n${alignedTable([head, ...body], 1)}${notes.map((note) => `${note}\n`).join('')}`;
}

const COLUMNS: readonly (readonly [title: string, cell: (row: LayoutRow) => string])[] = [
  ['parameters', ({ parameters }) => `${(parameters / MB).toFixed(2)} M`],
  ['file', ({ fileBytes }) => `${(fileBytes / MB).toFixed(1)} MB`],
  ['change', ({ fileChange }) => `${(100 * fileChange).toFixed(1)} %`],
  ['KV a token', ({ kvBytesPerToken }) => bytesText(kvBytesPerToken)],
  ['KV at n_ctx', ({ kvBytes }) => bytesText(kvBytes)],
  ['moved a token', ({ bytesMovedPerToken }) => `${(bytesMovedPerToken / MB).toFixed(1)} MB`],
  ['GFLOP a token', ({ flopsPerToken }) => (flopsPerToken / 1e9).toFixed(3)],
];

function table(rows: readonly LayoutRow[], note: string): string {
  const head = ['', ...COLUMNS.map(([title]) => title)];
  const body = rows.map((row) => [row.label, ...COLUMNS.map(([, cell]) => cell(row))]);
  return `${alignedTable([head, ...body], 1)}${note === '' ? '' : `${note}\n`}`;
}
