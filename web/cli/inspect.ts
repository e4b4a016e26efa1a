// `logits`, `tokenize` and `info`: looks at what a model says, how it reads a text, and what it is.
import process from 'node:process';
import { type Engine, inspectModel, type LayerInfo, type ModelPlan } from 'headlight-wasm';
import { loadOptions, withEngine } from './engine.js';
import { bytesText, printJson } from './output.js';
import { type Call, stringOf, tokensOf, UsageError } from './usage.js';

/** How many of the most likely tokens people get to see. */
const N_SHOWN = 10;

export async function logits(call: Call, json: boolean): Promise<void> {
  const tokens = tokensOf(call.values);
  if (tokens === undefined) throw new UsageError('logits: --tokens 1,2,3 is missing');
  const all = call.values.all === true;
  await withEngine(call, { json }, async (engine) => {
    const trace = await engine.forward(tokens, { logits: all ? 'all' : 'last' });
    const { vocabSize, nRows } = trace;
    const rows = Array.from({ length: nRows }, (_, i) =>
      trace.logits.subarray(i * vocabSize, (i + 1) * vocabSize),
    );
    if (json) {
      const lists = rows.map((row) => Array.from(row));
      printJson({ vocabSize, logits: all ? lists : lists[0] });
      return;
    }
    const first = tokens.length - nRows;
    for (const [i, row] of rows.entries()) await printTop(engine, first + i, row);
  });
}

async function printTop(engine: Engine, position: number, row: Float32Array): Promise<void> {
  const order = Array.from(row.keys())
    .sort((a, b) => (row[b] ?? 0) - (row[a] ?? 0))
    .slice(0, N_SHOWN);
  const texts = await engine.tokenTexts(order);
  process.stdout.write(`after position ${position}:\n`);
  order.forEach((id, i) => {
    process.stdout.write(
      `${(row[id] ?? 0).toFixed(4).padStart(12)} ${String(id).padStart(8)}  ${JSON.stringify(texts[i])}\n`,
    );
  });
}

export async function tokenize(call: Call, json: boolean): Promise<void> {
  const text = stringOf(call.values, 'text');
  if (text === undefined) throw new UsageError('tokenize: --text TEXT is missing');
  await withEngine(call, { json }, async (engine) => {
    const tokens = await engine.tokenize(text, { addSpecial: call.values['add-special'] === true });
    const pieces = await engine.tokenTexts(tokens);
    if (json) {
      printJson({ tokens, pieces });
      return;
    }
    for (const [i, id] of tokens.entries()) {
      process.stdout.write(`${String(id).padStart(8)}  ${JSON.stringify(pieces[i])}\n`);
    }
  });
}

export async function info(call: Call, json: boolean): Promise<void> {
  const plan = await inspectModel(call.model, loadOptions(call.values));
  if (json) printJson(plan);
  else process.stdout.write(planText(plan));
}

function planText({
  model,
  fileBytes,
  nCtx,
  weightsBytes,
  kvCacheBytes,
  kvBytesPerToken,
  workspaceBytes,
}: ModelPlan): string {
  const lines = [
    `${model.name || '(no name)'}: ${model.architecture}, ${(model.parametersUsed / 1e6).toFixed(1)} million weights used per token`,
    `d_model ${model.dModel}, vocabulary ${model.vocabSize}${model.tiedHead ? ' (head is the embedding)' : ''}, trained context ${model.nCtxTrain}`,
    ...layerLines(model.layers),
    `file        ${bytesText(fileBytes)}`,
    `weights     ${bytesText(weightsBytes)}`,
    `KV cache    ${bytesText(kvBytesPerToken)} a token, ${bytesText(kvCacheBytes)} at ${nCtx} tokens`,
    `workspace   ${bytesText(workspaceBytes)} with one thread`,
  ];
  return `${lines.join('\n')}\n`;
}

/** One line for each stretch of layers that are alike. */
function layerLines(layers: readonly LayerInfo[]): string[] {
  const lines: string[] = [];
  let first = 0;
  layers.forEach((layer, i) => {
    const next = layers[i + 1];
    if (next !== undefined && JSON.stringify(next) === JSON.stringify(layer)) return;
    lines.push(`${first === i ? `layer ${i}` : `layers ${first}-${i}`}: ${layerText(layer)}`);
    first = i + 1;
  });
  return lines;
}

function layerText(layer: LayerInfo): string {
  const { nQHeads, nKvHeads, dQk, dV, dFf, window, ropeStyle, nRot, ropeFreqBase } = layer;
  const rope =
    ropeStyle === 'none'
      ? 'no rotary positions'
      : `rotary ${ropeStyle} ${nRot} of ${dQk}, base ${ropeFreqBase}`;
  const span = window === 0 ? '' : `, window ${window}`;
  return `${nQHeads} query heads on ${nKvHeads} KV heads, d_qk ${dQk}, d_v ${dV}${span}, ${rope}, d_ff ${dFf}`;
}
