// An edited model as a GGUF file: the original's keys and tensors with what the edit changed put in their place. What the
// format has no words for is refused with the reason.
import { UnsupportedError } from '../errors.js';
import type { EngineInfo, LayerInfo } from '../types.js';
import { type GgufFile, perLayerKey, readGguf, setKey, writeGguf } from './gguf_file.js';
import { ggufKey } from './gguf_keys.js';
import { ATTENTION_TENSORS, type AttentionTensor } from './lab_call.js';
import type { LabModel } from './model_lab.js';

const TENSOR_NAMES: Readonly<Record<AttentionTensor, string>> = {
  q: 'attn_q',
  k: 'attn_k',
  v: 'attn_v',
  o: 'attn_output',
};
const F32 = 0;
const ROPE_FACTORS = 'rope_freqs.weight';
/** Families whose files may have a table of rotary factors. */
const WITH_FACTORS = ['llama', 'exaone'];

function refuse(why: string): never {
  throw new UnsupportedError(`This change cannot be written to a GGUF file: ${why}`);
}

function sameInAll(layers: readonly LayerInfo[], field: 'dQk' | 'dV' | 'nRot'): boolean {
  return layers.every((layer) => layer[field] === layers[0]?.[field]);
}

/** Throws UnsupportedError for what the format cannot hold. */
export function checkExport(
  model: LabModel,
  architecture: string,
  before: readonly LayerInfo[],
): void {
  const { edit, layers, keptPairs } = model;
  if ((edit.fix ?? []).length > 0)
    refuse(
      'it has no head that works by a fixed pattern. Prune the head instead, or undo fixing it.',
    );
  if (edit.window !== undefined)
    refuse(`files of the family '${architecture}' cannot name a window for attention.`);
  if (!sameInAll(layers, 'dQk'))
    refuse(
      'the layers differ in the width of queries and keys, and key_length is one for all. Cut every layer.',
    );
  if (!sameInAll(layers, 'dV'))
    refuse(
      'the layers differ in the width of values, and value_length is one for all. Cut every layer.',
    );
  const isWhole = layers.every(({ nRot }, i) => nRot === before[i]?.nRot);
  if (keptPairs === undefined || isWhole) return;
  if (
    !sameInAll(layers, 'nRot') ||
    keptPairs.some((pairs) => String(pairs) !== String(keptPairs[0]))
  )
    refuse(
      'each layer keeps other rotary pairs, and the format has one table of frequencies. Cut with samePairs.',
    );
  if (!WITH_FACTORS.includes(architecture))
    refuse(`files of the family '${architecture}' have no table of rotary frequencies.`);
}

export async function exportGguf(
  model: LabModel,
  { model: { architecture, layers: before } }: EngineInfo,
  original: Blob | ArrayBuffer | Uint8Array,
): Promise<Uint8Array<ArrayBuffer>> {
  checkExport(model, architecture, before);
  const bytes = original instanceof Blob ? await original.arrayBuffer() : original;
  const file = readGguf(bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes));
  if (file.keys.some(({ name }) => name === 'split.count'))
    refuse('the original is one file of a split model. Merge its files first.');
  const changed = before.flatMap((layer, i) => (differs(layer, i, model) ? [i] : []));
  for (const layer of changed) {
    for (const which of ATTENTION_TENSORS) await replaceTensor(file, model, layer, which);
  }
  if (changed.length > 0) writeKeys(file, architecture, model, before);
  return writeGguf(file);
}

function differs(layer: LayerInfo, i: number, { edit, layers }: LabModel): boolean {
  const now = layers[i];
  const names = ['nQHeads', 'nKvHeads', 'dQk', 'dV'] as const;
  const isListed = edit.layers === undefined || edit.layers.includes(i);
  const isTouched =
    (edit.prune ?? []).some((head) => head.layer === i) ||
    (isListed && [edit.kvHeads, edit.dQk, edit.dV].some((width) => width !== undefined));
  return isTouched || names.some((name) => layer[name] !== now?.[name]);
}

async function replaceTensor(
  file: GgufFile,
  model: LabModel,
  layer: number,
  which: AttentionTensor,
): Promise<void> {
  const name = `blk.${layer}.${TENSOR_NAMES[which]}.weight`;
  const tensor = file.tensors.find((one) => one.name === name);
  if (tensor === undefined)
    refuse(`the original has no tensor '${name}'. Give the file that the engine was loaded from.`);
  const { rows, cols, type, bytes } = await model.encodedTensor(layer, which);
  Object.assign(tensor, { dims: [cols, rows], type, data: bytes });
}

function writeKeys(
  file: GgufFile,
  architecture: string,
  model: LabModel,
  before: readonly LayerInfo[],
): void {
  const { layers } = model;
  const key = (name: string) => `${architecture}.${name}`;
  const [first] = layers;
  if (first === undefined) return;
  setKey(
    file.keys,
    perLayerKey(
      key('attention.head_count'),
      layers.map(({ nQHeads }) => nQHeads),
    ),
  );
  setKey(
    file.keys,
    perLayerKey(
      key('attention.head_count_kv'),
      layers.map(({ nKvHeads }) => nKvHeads),
    ),
  );
  setKey(file.keys, ggufKey(key('attention.key_length'), first.dQk));
  setKey(file.keys, ggufKey(key('attention.value_length'), first.dV));
  const rotary = layers.findIndex(({ ropeStyle }) => ropeStyle !== 'none');
  if (rotary < 0) return;
  const nRot = layers[rotary]?.nRot ?? first.dQk;
  setKey(file.keys, ggufKey(key('rope.dimension_count'), nRot));
  const pairs = model.keptPairs?.[rotary];
  if (pairs === undefined || nRot === before[rotary]?.nRot) return;
  writeFactors(
    file,
    before[rotary] as LayerInfo,
    pairs.filter((pair) => pair < (before[rotary]?.nRot ?? 0) / 2),
  );
}

/** Frequencies of the kept pairs: each is base^(-2i / nRot) of its new place, divided by its factor. */
function writeFactors(
  file: GgufFile,
  { nRot, ropeFreqBase }: LayerInfo,
  pairs: readonly number[],
): void {
  const old = file.tensors.find(({ name }) => name === ROPE_FACTORS);
  const oldFactor = (pair: number) =>
    old === undefined
      ? 1
      : new DataView(old.data.buffer, old.data.byteOffset).getFloat32(pair * 4, true);
  const factors = pairs.map((pair, i) => {
    const frequency = ropeFreqBase ** ((-2 * pair) / nRot) / oldFactor(pair);
    return ropeFreqBase ** (-i / pairs.length) / frequency;
  });
  const data = new Uint8Array(Float32Array.from(factors).buffer);
  const tensor = { name: ROPE_FACTORS, dims: [factors.length], type: F32, data };
  if (old === undefined) file.tensors.push(tensor);
  else Object.assign(old, tensor);
}
