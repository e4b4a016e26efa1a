// `lab`: what a change of a model's attention costs: the same figures before and after, by the same code as the lab page.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import type { Eviction } from 'headlight-wasm';
import {
  type Evaluation,
  type HeadRef,
  type LabModel,
  type ModelEdit,
  ModelLab,
  type SessionKeeps,
  type SpeedResult,
} from 'headlight-wasm/lab';
import { withEngine } from './engine.js';
import { evictionOf } from './eviction.js';
import { looked } from './lab_views.js';
import { bytesText, printJson } from './output.js';
import { type Call, numberOf, stringOf, UsageError, type Values } from './usage.js';

/** "3.5,4.1": layer.head, from 0. */
function headsOf(values: Values, flag: string): HeadRef[] | undefined {
  const text = stringOf(values, flag);
  if (text === undefined) return undefined;
  return text.split(',').map((part) => {
    const found = /^\s*(\d+)\.(\d+)\s*$/.exec(part);
    if (found === null) {
      throw new UsageError(
        `--${flag} ${text}: heads as LAYER.HEAD from 0 are expected, such as 3.5,4.1`,
      );
    }
    return { layer: Number(found[1]), head: Number(found[2]) };
  });
}

function layersOf(values: Values): number[] | undefined {
  const text = stringOf(values, 'layers');
  if (text === undefined) return undefined;
  if (!/^\d+(,\d+)*$/.test(text))
    throw new UsageError(`--layers ${text}: layer numbers from 0 are expected, such as 0,3`);
  return text.split(',').map(Number);
}

export function editOf(values: Values): ModelEdit {
  const edit = {
    layers: layersOf(values),
    prune: headsOf(values, 'prune'),
    fix: headsOf(values, 'fix'),
    kvHeads: numberOf(values, 'pool-kv'),
    dQk: numberOf(values, 'cut-qk'),
    samePairs: values['same-pairs'] === true ? true : undefined,
    dV: numberOf(values, 'cut-v'),
    window: numberOf(values, 'window'),
  };
  const given = Object.entries(edit).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as ModelEdit;
}

interface Figures extends Omit<Evaluation, 'recall'> {
  recall: { right: number; asked: number };
  tokensPerSecond: number;
  tokensPerSecondRange: [lowest: number, highest: number];
  kvBytesPerToken: number;
  /** Of the whole context. */
  kvCacheBytes: number;
  /** Answers to the lab's questions. */
  answers: Evaluation['recall']['answers'];
}

function figures({ recall, ...rest }: Evaluation, speed: SpeedResult | undefined): Figures {
  const { right, asked, answers } = recall;
  return {
    ...rest,
    recall: { right, asked },
    tokensPerSecond: speed?.tokensPerSecond ?? 0,
    tokensPerSecondRange: [speed?.lowest ?? 0, speed?.highest ?? 0],
    kvBytesPerToken: speed?.kvBytesPerToken ?? 0,
    kvCacheBytes: speed?.kvCacheBytes ?? 0,
    answers,
  };
}

export async function lab(call: Call, json: boolean): Promise<void> {
  if (await looked(call, json)) return;
  const edit = editOf(call.values);
  const cache = stringOf(call.values, 'kv-cache-after');
  const eviction = evictionOf(call.values);
  if (Object.keys(edit).length === 0 && cache === undefined && eviction === undefined) {
    throw new UsageError(
      'lab: a change is expected, or --label, --rank or --trace: --prune, --pool-kv, --fix, --cut-qk, --cut-v, --window, --evict or --kv-cache-after',
    );
  }
  // The lab is in the modules of one thread only. What is evicted, is so after the change.
  const single = { ...call, values: { threads: '1', ...call.values, evict: undefined } };
  await withEngine(single, { json }, async (engine) => {
    const modelLab = new ModelLab(engine);
    const edited = await modelLab.edit(edit);
    await exportTo(stringOf(call.values, 'out'), call.model, edited);
    const { before, after } = await measure(modelLab, edited, keepsOf(call.values, eviction));
    const fixed = (edit.fix ?? []).length > 0 ? await patternsOf(modelLab, edit) : undefined;
    const result = {
      ...{ edit, ...(eviction && { eviction }), layers: edited.layers, before, after },
      ...(fixed && { fixed }),
    };
    if (json) printJson(result);
    else process.stdout.write(table(before, after));
  });
}

/** How sessions keep keys and values before and after. The package checks the names. */
function keepsOf(
  values: Values,
  eviction: Eviction | undefined,
): [before: SessionKeeps, after: SessionKeeps] {
  const plain = stringOf(values, 'kv-cache');
  const keeps = (type: string | undefined) =>
    type === undefined ? {} : { kvCache: { k: type, v: type } as never };
  const after = stringOf(values, 'kv-cache-after') ?? plain;
  return [keeps(plain), { ...keeps(after), ...(eviction && { eviction }) }];
}

async function measure(
  modelLab: ModelLab,
  edited: LabModel,
  keeps: [before: SessionKeeps, after: SessionKeeps],
): Promise<{ before: Figures; after: Figures }> {
  const before = await modelLab.original.evaluate(keeps[0]);
  const after = await edited.evaluate(keeps[1]);
  const [first, second] = await modelLab.speed([modelLab.original, edited], { keeps });
  return { before: figures(before, first), after: figures(after, second) };
}

/** What calibration says about the heads that were fixed. */
async function patternsOf(modelLab: ModelLab, { fix = [] }: ModelEdit) {
  const { layers } = await modelLab.calibrate();
  return fix.map(({ layer, head }) => {
    const measured = layers[layer]?.heads[head];
    const { spread, likeliestOffset, outputErrors } = measured ?? {};
    return { layer, head, spread, likeliestOffset, outputErrors };
  });
}

async function exportTo(path: string | undefined, model: string, edited: LabModel): Promise<void> {
  if (path === undefined) return;
  writeFileSync(path, await edited.exportGguf(readFileSync(model)));
}

function table(before: Figures, after: Figures): string {
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  const rows: [string, (figures: Figures) => string][] = [
    ['perplexity', ({ perplexity }) => perplexity.toFixed(3)],
    ['loss, nats', ({ loss, lossError }) => `${loss.toFixed(4)} ± ${lossError.toFixed(4)}`],
    ['first choice right', ({ firstChoiceShare }) => percent(firstChoiceShare)],
    ['recall', ({ recall }) => `${recall.right} of ${recall.asked}`],
    ['tokens/s', ({ tokensPerSecond }) => tokensPerSecond.toFixed(0)],
    [
      'weights read',
      ({ weightsBytes, weightsIdleBytes }) => bytesText(weightsBytes - weightsIdleBytes),
    ],
    ['KV a token', ({ kvBytesPerToken }) => bytesText(kvBytesPerToken)],
    ['KV, whole context', ({ kvCacheBytes }) => bytesText(kvCacheBytes)],
    ['writes', ({ answers }) => answers[0]?.answer ?? ''],
  ];
  const lines = rows.map(([name, cell]) => [name, cell(before), cell(after)] as const);
  const width = Math.max(6, ...lines.map(([, cell]) => cell.length));
  const head = `${''.padEnd(20)}${'before'.padEnd(width)}  after`;
  const body = lines.map(([name, a, b]) => `${name.padEnd(20)}${a.padEnd(width)}  ${b}`);
  return `${[head, ...body].join('\n')}\n`;
}
