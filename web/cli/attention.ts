// `inspect`: where one query head looks, by the kernels that computed the result.
import process from 'node:process';
import type { CapturedArray, CaptureOptions, Engine } from 'headlight-wasm';
import { withEngine } from './engine.js';
import { printJson } from './output.js';
import { type Call, numberOf, stringOf, tokensOf, UsageError, type Values } from './usage.js';

/** How many keys of a row people get to see. */
const N_SHOWN = 6;
const BAR_WIDTH = 40;

function indexOf(values: Values, flag: 'layer' | 'head'): number {
  const index = numberOf(values, flag);
  if (index === undefined)
    throw new UsageError(`inspect: --${flag} N is missing: which ${flag}, counted from 0`);
  if (!Number.isInteger(index) || index < 0)
    throw new UsageError(`--${flag} ${index}: an integer from 0 is expected`);
  return index;
}

function rowsOf(values: Values): 'last' | 'all' {
  const rows = stringOf(values, 'rows') ?? 'last';
  if (rows !== 'last' && rows !== 'all')
    throw new UsageError(`--rows '${rows}': 'last' or 'all' is expected`);
  return rows;
}

async function tokensToLookAt(engine: Engine, values: Values): Promise<number[]> {
  const tokens = tokensOf(values);
  const prompt = stringOf(values, 'prompt');
  if ((tokens === undefined) === (prompt === undefined))
    throw new UsageError('inspect: one of --prompt TEXT and --tokens 1,2,3 is expected');
  return tokens ?? engine.tokenize(prompt ?? '', { addSpecial: true });
}

export async function inspect(call: Call, json: boolean): Promise<void> {
  const { values } = call;
  const layer = indexOf(values, 'layer');
  const head = indexOf(values, 'head');
  // The package checks what it may be.
  const what = (stringOf(values, 'what') ?? 'weights') as NonNullable<CaptureOptions['what']>;
  const rows = rowsOf(values);
  await withEngine(call, { json }, async (engine) => {
    const tokens = await tokensToLookAt(engine, values);
    const { capture } = await engine.forward(tokens, {
      capture: { layers: [layer], heads: [head], rows, what },
    });
    const captured = capture?.layers[0];
    const shape = engine.info.model.layers[layer];
    if (capture === undefined || captured === undefined || shape === undefined) return;
    const pieces = await engine.tokenTexts(tokens);
    const { nQHeads, nKvHeads } = shape;
    const positions = Array.from(capture.positions);
    const weights = rowsOfArray(captured.attention);
    const sinkMass = Array.from(captured.sinkMass.data);
    if (json) {
      const found = { tokens, pieces, nQHeads, nKvHeads, layer, head, what, positions };
      // JSON has no infinity: a score of a key that is not admitted is null.
      printJson({ ...found, weights, sinkMass });
    } else {
      process.stdout.write(`layer ${layer}, head ${head} of ${nQHeads} (${nKvHeads} KV heads)\n`);
      if (rows === 'last') process.stdout.write(lastRowText(pieces, weights[0] ?? [], what));
      else process.stdout.write(allRowsText(pieces, weights));
    }
  });
}

/** Of one head: [rows][keys]. */
function rowsOfArray({ data, shape }: CapturedArray): number[][] {
  const [, nRows = 0, nKv = 0] = shape;
  return Array.from({ length: nRows }, (_, row) =>
    Array.from(data.subarray(row * nKv, (row + 1) * nKv)),
  );
}

function lastRowText(pieces: readonly string[], row: readonly number[], what: string): string {
  const width = Math.max(...pieces.map((piece) => JSON.stringify(piece).length));
  const lines = row.map((value, key) => {
    const bar = what === 'weights' ? '#'.repeat(Math.round(value * BAR_WIDTH)) : '';
    const label = JSON.stringify(pieces[key]).padEnd(width);
    return `${String(key).padStart(5)}  ${label}  ${value.toFixed(4).padStart(9)}  ${bar}`.trimEnd();
  });
  return `${lines.join('\n')}\n`;
}

function allRowsText(pieces: readonly string[], rows: readonly (readonly number[])[]): string {
  const width = Math.max(...pieces.map((piece) => JSON.stringify(piece).length));
  const lines = rows.map((row, position) => {
    const largest = Array.from(row.keys())
      .sort((a, b) => (row[b] ?? 0) - (row[a] ?? 0))
      .slice(0, N_SHOWN)
      .filter((key) => Number.isFinite(row[key]) && row[key] !== 0);
    const keys = largest.map(
      (key) => `${key} ${JSON.stringify(pieces[key])} ${(row[key] ?? 0).toFixed(3)}`,
    );
    return `${String(position).padStart(5)}  ${JSON.stringify(pieces[position]).padEnd(width)}  ${keys.join('   ')}`;
  });
  return `${lines.join('\n')}\n`;
}
