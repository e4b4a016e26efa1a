// `lab --label`, `--rank`, `--trace`: what is in a model's heads, weights and blocks; nothing is changed.
import process from 'node:process';
import type { Engine } from 'headlight-wasm';
import {
  ATTENTION_TENSORS,
  type BlockTrace,
  ModelLab,
  type SurveyedHead,
  surveyHeads,
} from 'headlight-wasm/lab';
import { withEngine } from './engine.js';
import { alignedTable, bytesText, printJson } from './output.js';
import { type Call, numberOf, stringOf, tokensOf, UsageError } from './usage.js';

type View = (engine: Engine, call: Call, json: boolean) => Promise<void>;

const VIEWS: Readonly<Record<string, View>> = { label, rank, trace };

/** Flags that belong to a view, or that say how the model is loaded; all others are changes. */
const BESIDES = [
  'prompt',
  'tokens',
  'json',
  'n-ctx',
  'threads',
  'module',
  'kv-cache',
  'activations',
];

/** Whether the call asks to look; then that was done. Throws UsageError where it also asks for a change. */
export async function looked(call: Call, json: boolean): Promise<boolean> {
  const given = Object.keys(call.values).filter((flag) => call.values[flag] !== undefined);
  const [name, ...more] = given.filter((flag) => flag in VIEWS);
  const view = VIEWS[name ?? ''];
  if (view === undefined) return false;
  const others = [...more, ...given.filter((flag) => !(flag in VIEWS) && !BESIDES.includes(flag))];
  if (others.length > 0)
    throw new UsageError(`lab --${name} changes nothing: leave out ${others.join(', ')}`);
  // The lab is in the modules of one thread only.
  const single = { ...call, values: { threads: '1', ...call.values } };
  await withEngine(single, { json }, (engine) => view(engine, call, json));
  return true;
}

/** Every head's metrics and label. */
async function label(engine: Engine, _: Call, json: boolean): Promise<void> {
  const heads = await surveyHeads(engine);
  if (json) printJson({ heads });
  else process.stdout.write(labelTable(heads));
}

function labelTable(heads: readonly SurveyedHead[]): string {
  const columns = ['previousToken', 'firstToken', 'induction', 'uniform', 'distance'] as const;
  return alignedTable([
    ['head', 'label', 'kind', 'spread', ...columns],
    ...heads.map(({ layer, head, label: name, kind, spread, metrics }) => [
      ...[`${layer}.${head}`, name, kind, spread.toFixed(3)],
      ...columns.map((column) => metrics[column]?.toFixed(2) ?? ''),
    ]),
  ]);
}

/** Stable rank and singular values of W_Q, W_K, W_V and W_O of every layer. */
async function rank(engine: Engine, _: Call, json: boolean): Promise<void> {
  const { original } = new ModelLab(engine);
  const layers = [];
  const rows = [];
  for (const layer of original.layers.keys()) {
    const tensors: Record<string, { stableRank: number; singularValues: number[] }> = {};
    const row = [String(layer)];
    for (const which of ATTENTION_TENSORS) {
      const { stableRank, singularValues } = await original.spectrum(layer, which);
      tensors[which] = { stableRank, singularValues: Array.from(singularValues) };
      row.push(`${stableRank.toFixed(1)} of ${singularValues.length}`);
    }
    layers.push({ layer, tensors });
    rows.push(row);
  }
  if (json) {
    printJson({ layers });
    return;
  }
  const titles = ATTENTION_TENSORS.map((which) => `W_${which.toUpperCase()}`);
  process.stdout.write(alignedTable([['layer', ...titles], ...rows]));
}

/** Every tensor of one block while it computes the prompt: shape, bytes, time. */
async function trace(engine: Engine, { values }: Call, json: boolean): Promise<void> {
  const text = stringOf(values, 'prompt');
  const tokens = tokensOf(values) ?? (text === undefined ? [] : await engine.tokenize(text));
  if (tokens.length === 0)
    throw new UsageError('lab --trace: --prompt TEXT or --tokens 1,2,3 is expected');
  const layer = numberOf(values, 'trace') ?? 0;
  const traced = await new ModelLab(engine).original.trace(tokens, { layer });
  if (!json) {
    process.stdout.write(traceTable(traced));
    return;
  }
  const tensors = traced.tensors.map(({ values: numbers, ...tensor }) => ({
    ...tensor,
    dtype: 'f32',
    values: Array.from(numbers),
  }));
  printJson({ layer, nTokens: traced.nTokens, nPasses: traced.nPasses, tensors });
}

function traceTable({ tensors }: BlockTrace): string {
  return alignedTable([
    ['tensor', 'shape', 'bytes', 'ms'],
    ...tensors.map(({ name, shape, bytes, ms }) => [
      ...[name, shape.join(' x '), bytesText(bytes), ms === 0 ? '' : ms.toFixed(4)],
    ]),
  ]);
}
