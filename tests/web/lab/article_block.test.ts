// Statements of the articles about a block, held against models that run: the lookup of embeddings, the residual stream,
// what W_O does with one head, a fixed head at any length, the end of a table of positions, what latent attention caches.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rowsOf } from '../../../web/pages/lab/hand/arithmetic.js';
import {
  embeddingRows,
  embeddingText,
  mixingOf,
  mixingText,
} from '../../../web/pages/lab/phases/mixing.js';
import type * as Package from '../../../web/runtime/src/index.js';
import { readGguf } from '../../../web/runtime/src/lab/gguf_file.js';
import type * as Lab from '../../../web/runtime/src/lab/index.js';
import { makeFamily } from '../../families/make_family.mjs';
import { headlight, headlightLab } from '../built_package.js';

const { Engine } = headlight;
const { layoutCost, ModelLab, PLAIN, randomModel } = headlightLab;

const modelUrl = new URL('../../../examples/models/default-q8_0.gguf', import.meta.url);
const loadOptions = { module: 'simd', threads: 1 } as const;
const latentBase = { nLayers: 1, dModel: 7168, nQHeads: 128, dFf: 1, vocabSize: 0, tiedHead: true };

let engine: Package.Engine;
let lab: Lab.ModelLab;
beforeAll(async () => {
  engine = await Engine.load(new Uint8Array(readFileSync(modelUrl)), loadOptions);
  lab = new ModelLab(engine);
});
afterAll(() => engine?.dispose());

type Traced = Record<Lab.TracedTensorName, Float32Array>;

async function traced(model: Lab.LabModel, tokens: Package.TokenIds, layer: number) {
  const { tensors } = await model.trace(tokens, { layer, budgetMs: 0 });
  return Object.fromEntries(tensors.map(({ name, values }) => [name, values])) as Traced;
}

/** Of a binary16 number. */
function half(bits: number): number {
  const [sign, exponent, fraction] = [bits >> 15, (bits >> 10) & 31, bits & 1023];
  return (sign === 0 ? 1 : -1) * 2 ** (exponent - 15) * (1 + fraction / 1024);
}

test('an embedding is a row of a table: ids 464, 3797, 3332 of 50,257', async () => {
  const shape: Lab.ModelShape = {
    ...PLAIN,
    ...{ nLayers: 1, dModel: 16, nQHeads: 2, nKvHeads: 1, dQk: 8, dV: 8, dFf: 16 },
    ...{ vocabSize: 50_257, tiedHead: true },
  };
  const bytes = randomModel(shape, { weights: 'f16', nCtx: 16 });
  const small = await Engine.load(bytes, loadOptions);
  const ids = [464, 3797, 3332, 464];
  const { input } = await traced(new ModelLab(small).original, ids, 0);
  await small.dispose();
  const table = readGguf(bytes).tensors.find(({ name }) => name === 'token_embd.weight');
  if (!table) throw new Error('no table');
  const halves = new Uint16Array(table.data.slice().buffer);
  const expected = ids.map((id) => [...halves.subarray(id * 16, id * 16 + 16)].map(half));
  expect(rowsOf(input, 16)).toEqual(expected);
});

describe('one block of the default model', () => {
  const layer = 3;
  let tokens: Package.TokenIds;
  let whole: Traced;
  beforeAll(async () => {
    tokens = await engine.tokenize('My code is 4192. My', { addSpecial: true });
    whole = await traced(lab.original, tokens, layer);
  });

  test('the norm is a copy: what attention gives is added to the untouched stream, bit for bit', () => {
    const sums = whole.input.map((x, i) => x + (whole['attention out'][i] ?? 0));
    expect([...whole['after attention']]).toEqual([...sums]);
    expect([...whole.norm]).not.toEqual([...whole.input]);
    const outputs = whole['after attention'].map((x, i) => x + (whole.down[i] ?? 0));
    expect([...whole.output]).toEqual([...outputs]);
  });

  test('W_O mixes: one head reaches every place of the stream, by its own slice of W_O', async () => {
    const head = 5;
    const { layers } = lab.original;
    const { nQHeads = 0, dV = 0 } = layers[layer] ?? {};
    const model = await lab.edit({ prune: [{ layer, head }] });
    const pruned = await traced(model, tokens, layer);
    await model.drop();
    for (const name of ['input', 'norm', 'k', 'v'] as const)
      expect([...pruned[name]]).toEqual([...whole[name]]);
    const o = await lab.original.tensor(layer, 'o');
    const dModel = o.rows;
    let [wrong, size] = [0, 0];
    for (let t = 0; t < tokens.length; t++) {
      for (let i = 0; i < dModel; i++) {
        const at = t * dModel + i;
        const taken = (whole['attention out'][at] ?? 0) - (pruned['attention out'][at] ?? 0);
        let slice = 0;
        for (let j = 0; j < dV; j++)
          slice +=
            (o.values[i * o.cols + head * dV + j] ?? 0) *
            (whole['head outputs'][(t * nQHeads + head) * dV + j] ?? 0);
        expect(taken).not.toBe(0);
        wrong += (taken - slice) ** 2;
        size += slice ** 2;
      }
    }
    // Activations are rounded to 8 bits before they meet W_O.
    expect(Math.sqrt(wrong / size)).toBeLessThan(0.01);
  });

  test('the page says both: what enters block 0 is the table’s rows (C1), one head reaches every place (B36)', async () => {
    const ids = Array.from(tokens).slice(0, 3);
    const { vocabSize } = engine.info.model;
    const shown = await embeddingRows(lab.original, ids, ['a', 'b', 'c'], vocabSize);
    const { input } = await traced(lab.original, ids, 0);
    expect([...shown.rows]).toEqual([...input]);
    expect(embeddingText(shown)).toMatch(/embedding table, 2,048 × 192\. “a” is row \d+: /);
    const mixing = await mixingOf(lab, Array.from(tokens), layer, 5);
    expect(mixing).toMatchObject({ changed: mixing.places, before: 0 });
    expect(mixing.places).toBe(tokens.length * 192);
    expect(mixingText(mixing)).toContain('no key or value');
  });

  test('a head fixed to an offset blends values by it at every length, without query and key', async () => {
    const { nQHeads = 0, nKvHeads = 1, dV = 1 } = lab.original.layers[layer] ?? {};
    const [head, offset] = [6, 3];
    const kvHead = Math.floor((head * nKvHeads) / nQHeads);
    const pattern = { kind: 'shift', offset } as const;
    const model = await lab.edit({ fix: [{ layer, head, pattern }] });
    for (const n of [5, 40]) {
      const ids = Array.from({ length: n }, (_, i) => 100 + ((i * 37) % 900));
      const run = await traced(model, ids, layer);
      // Outputs of fixed heads follow those of the heads that look.
      const outs = rowsOf(run['head outputs'], run['head outputs'].length / n);
      const values = rowsOf(run.v, dV);
      for (let t = offset; t < n; t++)
        expect(outs[t]?.slice(-dV)).toEqual(values[(t - offset) * nKvHeads + kvHead]);
    }
    await model.drop();
  });
});

test('a table of positions ends: a longer context is refused', async () => {
  const bytes = new Uint8Array(makeFamily('gpt2'));
  const { nCtxTrain } = await Engine.load(bytes, loadOptions).then(async (one) => {
    await one.dispose();
    return one.info.model;
  });
  const nCtx = nCtxTrain + 1;
  await expect(Engine.load(bytes, { ...loadOptions, nCtx })).rejects.toMatchObject({
    code: 'BadOption',
    message: `n_ctx is ${nCtx}, it must be at most ${nCtxTrain}, the context that the model was trained for`,
  });
  // Nor does a stream of evicted keys go on past it.
  const stream = { ...loadOptions, nCtx, eviction: { policy: 'sinks' } } as const;
  await expect(Engine.load(bytes, stream)).rejects.toMatchObject({
    code: 'BadOption',
    details: { option: 'n_ctx', value: String(nCtx), range: `at most ${nCtxTrain}` },
    message: `n_ctx is ${nCtx}, the model's table of learned positions has ${nCtxTrain} rows; use a smaller n_ctx`,
  });
});

describe('latent attention', () => {
  test('caches its latent of 24 and one rotary key of 8 in each of three layers, and no values', async () => {
    const kvCache = { k: 'f32', v: 'f32' } as const;
    const bytes = new Uint8Array(makeFamily('deepseek2'));
    const one = await Engine.load(bytes, { ...loadOptions, kvCache });
    await one.dispose();
    expect(one.info.model.layers).toHaveLength(3);
    expect(one.info.memory.kvBytesPerToken).toBe(3 * (24 + 8) * 4);
  });

  test('512 + 64 numbers a layer instead of 32,768: 56.9 times fewer, as 2.25 groups of 128 + 128', () => {
    const numbers = (heads: Pick<Lab.ModelShape, 'nKvHeads' | 'dQk' | 'dV'>) => {
      const cost = layoutCost({ ...PLAIN, ...latentBase, ...heads });
      return { keys: cost.kvKeyBytesPerToken / 2, all: cost.kvBytesPerToken / 2 };
    };
    // Values are read from the same latent, so only the keys of this layout are kept.
    const latent = numbers({ nKvHeads: 1, dQk: 512 + 64, dV: 512 }).keys;
    const full = numbers({ nKvHeads: 128, dQk: 128, dV: 128 }).all;
    expect([latent, full]).toEqual([576, 32_768]);
    expect((full / latent).toFixed(1)).toBe('56.9');
    expect(latent / numbers({ nKvHeads: 1, dQk: 128, dV: 128 }).all).toBe(2.25);
  });
});
