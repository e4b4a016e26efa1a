// The lab over the default model: edits and what they cost, undo, export, calibration, spectra, a block's tensors. The edits'
// arithmetic is tested in tests/cpp/lab; here is what a user of headlight-wasm/lab gets.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type * as Package from '../../../web/runtime/src/index.js';
import { readGguf } from '../../../web/runtime/src/lab/gguf_file.js';
import type * as Lab from '../../../web/runtime/src/lab/index.js';
import { headlight, headlightLab } from '../built_package.js';

const { Engine } = headlight;
const { ModelLab, sampleDialogues, sampleQuestions } = headlightLab;

const modelUrl = new URL('../../../examples/models/default-q8_0.gguf', import.meta.url);
const file = new Uint8Array(readFileSync(modelUrl));
const loadOptions = { module: 'simd', threads: 1 } as const;

let engine: Package.Engine;
let lab: Lab.ModelLab;
beforeAll(async () => {
  engine = await Engine.load(file, loadOptions);
  lab = new ModelLab(engine);
});
afterAll(() => engine?.dispose());

const question = [
  { role: 'user', content: 'My name is Nora. I keep a green kite in the attic.' },
  { role: 'assistant', content: 'A green kite in the attic. I will remember that.' },
  { role: 'user', content: 'What colour is my kite?' },
];

async function answerOf(session: Package.EngineSession): Promise<string> {
  const { text } = await session.chat(question, { temperature: 0, maxTokens: 24 }).result();
  return text;
}

async function promptLogits(of: Package.Engine): Promise<Float32Array> {
  const tokens = await of.tokenize('The code for box seven is 4192.', { addSpecial: true });
  return (await of.forward(tokens, { logits: 'all' })).logits;
}

function relativeRms(a: Float32Array, b: Float32Array): number {
  let [difference, size] = [0, 0];
  for (const [i, value] of b.entries()) {
    difference += ((a[i] ?? 0) - value) ** 2;
    size += value ** 2;
  }
  return Math.sqrt(difference / size);
}

describe('the loaded model', () => {
  test('perplexity and recall are those of its documentation, on other sentences', async () => {
    const { loss, lossError, recall, answersOnly, countedTokens } = await lab.original.evaluate();
    expect(answersOnly).toBe(true);
    expect(countedTokens).toBeGreaterThan(1000);
    // examples/models/README.md: validation loss 0.310 nats an answer token, recall 80.5 %.
    expect(Math.abs(loss - 0.31)).toBeLessThan(3 * lossError + 0.05);
    expect(recall.asked).toBe(sampleQuestions().length);
    expect(recall.right / recall.asked).toBeGreaterThan(0.6);
    expect(recall.answers[0]?.isRight).toBe(
      recall.answers[0]?.answer.toLowerCase().includes(recall.answers[0].expected.toLowerCase()),
    );
  });

  test('the text has dialogues that end with an answer and questions without one', () => {
    expect(sampleDialogues().length).toBeGreaterThan(20);
    for (const dialogue of sampleDialogues()) expect(dialogue.length).toBeGreaterThan(3);
    for (const { messages, expected } of sampleQuestions()) {
      expect(messages.at(-1)?.role).toBe('user');
      expect(expected.length).toBeGreaterThan(0);
    }
  });

  test('speed is measured in turns and has a spread', async () => {
    const [first, second] = await lab.speed([lab.original, lab.original], {
      rounds: 3,
      nPrompt: 16,
      nTokens: 8,
    });
    expect(first?.lowest).toBeLessThanOrEqual(first?.tokensPerSecond ?? 0);
    expect(first?.highest).toBeGreaterThanOrEqual(first?.tokensPerSecond ?? 0);
    // 6 layers, 2 KV heads, 24 + 32 floats.
    expect(second?.kvBytesPerToken).toBe(6 * 2 * (24 + 32) * 4);
  });
});

describe('edits', () => {
  test('a pruned recall head costs recall; the loaded model gives the same bits afterwards', async () => {
    const before = await promptLogits(engine);
    const heads = [0, 1, 2, 3, 4, 5, 6, 7];
    const prune = [4, 5].flatMap((layer) => heads.map((head) => ({ layer, head })));
    const edited = await lab.edit({ prune });
    const options = { dialogues: [] };
    const whole = await lab.original.evaluate(options);
    const { recall, weightsIdleBytes } = await edited.evaluate(options);
    expect(recall.right).toBeLessThan(whole.recall.right / 2);
    // q8_0: 34 bytes for 32 weights. Of two layers all queries, and all of W_o.
    expect(weightsIdleBytes).toBe((2 * (8 * 24 * 192 + 192 * 8 * 32) * 34) / 32);
    expect(whole.weightsIdleBytes).toBe(0);
    const session = await edited.session();
    const [own, changed] = [await answerOf(engine.session()), await answerOf(session)];
    expect(own).toContain('green');
    expect(changed).not.toBe(own);
    await session.close();
    await edited.drop();
    await expect(edited.evaluate()).rejects.toMatchObject({ code: 'BadOption' });
    expect(await promptLogits(engine)).toEqual(before);
  });

  test('widths, KV heads and bytes are those of the smaller layout', async () => {
    const edited = await lab.edit({ kvHeads: 1, dQk: 16, dV: 24 });
    for (const layer of edited.layers)
      expect(layer).toMatchObject({ nQHeads: 8, nKvHeads: 1, dQk: 16, dV: 24, nRot: 16 });
    // q8_0: 34 bytes for 32 weights. Less: 8 * 8 + 24 * 2 - 16 rows of W_q and W_k, 64 - 24 of W_v, and 64 columns of W_o.
    const rows = 8 * 8 + (48 - 16) + (64 - 24);
    const saved = 6 * ((rows * 192 + 192 * 64) / 32) * 34;
    // A matrix begins at a multiple of 64 bytes.
    const exact = lab.original.weightsBytes - edited.weightsBytes;
    expect(Math.abs(exact - saved)).toBeLessThan(6 * 4 * 64);
    const [speed] = await lab.speed([edited], { rounds: 1, nPrompt: 4, nTokens: 2 });
    expect(speed?.kvBytesPerToken).toBe(6 * (16 + 24) * 4);
    await edited.drop();
  });

  test('the more is cut, the more it costs', async () => {
    const options = { questions: [], dialogues: sampleDialogues().slice(0, 12) };
    for (const edits of [
      [{ dQk: 20 }, { dQk: 12 }, { dQk: 4 }],
      [{ dV: 28 }, { dV: 18 }, { dV: 8 }],
    ]) {
      let last = (await lab.original.evaluate(options)).loss - 0.01;
      for (const edit of edits) {
        const edited = await lab.edit(edit);
        const { loss } = await edited.evaluate(options);
        expect(loss).toBeGreaterThan(last);
        last = loss;
        await edited.drop();
      }
    }
  });

  test('a window with the first keys kept costs less than one without', async () => {
    const dialogues = sampleDialogues().slice(0, 12);
    const options = { questions: [], dialogues };
    const sinks = await lab.edit({ window: 24, sinks: 4 });
    const bare = await lab.edit({ window: 24 });
    const [a, b] = [await sinks.evaluate(options), await bare.evaluate(options)];
    expect(a.loss).toBeLessThan(b.loss);
    await sinks.drop();
    await bare.drop();
  });

  test('a session gives keys up by its own policy: without the first ones it costs more', async () => {
    const options = { questions: [], dialogues: sampleDialogues().slice(0, 12) };
    const loss = async (eviction?: Package.Eviction) =>
      (await lab.original.evaluate({ ...options, ...(eviction && { eviction }) })).loss;
    const whole = await loss();
    expect(await loss({ policy: 'none' })).toBe(whole);
    const sinks = await loss({ policy: 'sinks', sinks: 4, window: 24 });
    const bare = await loss({ policy: 'sinks', sinks: 0, window: 24 });
    expect(whole).toBeLessThan(sinks);
    expect(sinks).toBeLessThan(bare);
    // Without first keys it is the window's mask, bit for bit.
    const masked = await lab.edit({ window: 24 });
    expect((await masked.evaluate(options)).loss).toBe(bare);
    await masked.drop();
    expect(await loss({ policy: 'h2o', budget: 24 })).toBeGreaterThan(whole);
    // A dialogue that is measured is one prompt, at whose end nothing is asked any more.
    expect(await loss({ policy: 'snapkv', budget: 24 })).toBe(whole);
  });

  test('SnapKV shows in recall; speed and conversations keep what the session keeps', async () => {
    const eviction = { policy: 'snapkv', budget: 16 } as const;
    const options = { dialogues: [], eviction };
    const { recall } = await lab.original.evaluate(options);
    const whole = await lab.original.evaluate({ dialogues: [] });
    expect(recall.right).toBeLessThan(whole.recall.right);
    const few = { policy: 'sinks', sinks: 0, window: 16 } as const;
    const [all, kept] = await lab.speed([lab.original, lab.original], {
      ...{ rounds: 1, nPrompt: 4, nTokens: 2 },
      keeps: [{}, { eviction: few }],
    });
    expect(kept?.kvCacheBytes).toBeLessThan(all?.kvCacheBytes ?? 0);
    const session = await lab.original.session({ eviction: few });
    expect(await answerOf(session)).not.toBe(await answerOf(engine.session()));
    await session.close();
    await expect(
      lab.original.evaluate({ eviction: { policy: 'sinks', sinks: 99 } }),
    ).rejects.toMatchObject({ code: 'BadOption', details: { option: 'sinks' } });
    await expect(lab.original.session({ kvcache: {} } as never)).rejects.toMatchObject({
      code: 'BadOption',
    });
  });

  test('what cannot be is refused by name, before anything is computed', async () => {
    const refusal = (edit: Lab.ModelEdit) => expect(lab.edit(edit)).rejects;
    await refusal({ kvHeads: 3 }).toMatchObject({
      code: 'BadOption',
      details: { option: 'n_kv_heads' },
    });
    await refusal({ dV: 33 }).toMatchObject({ code: 'BadOption', details: { option: 'd_v' } });
    await refusal({ prune: [{ layer: 6, head: 0 }] }).toMatchObject({
      details: { option: 'layer' },
    });
    await refusal({ fix: [{ layer: 0, head: 8 }] }).toMatchObject({ details: { option: 'head' } });
    await refusal({ sinks: 4 }).toMatchObject({ details: { option: 'sinks' } });
    await refusal({ dQk: 7 }).toMatchObject({ details: { option: 'd_qk' } });
    for (const layer of [6, -1, 0.5, 2 ** 32])
      for (const look of [lab.original.tensor(layer, 'q'), lab.original.spectrum(layer, 'q')])
        await expect(look).rejects.toMatchObject({ details: { option: 'layer' } });
  });

  test('a long evaluation is cancelled, and the engine goes on', async () => {
    const controller = new AbortController();
    const seen: string[] = [];
    const running = lab.original.evaluate({
      signal: controller.signal,
      onProgress: ({ done, what }) => {
        seen.push(what);
        if (done > 0.1) controller.abort();
      },
    });
    await expect(running).rejects.toMatchObject({ code: 'Aborted' });
    expect(seen.length).toBeGreaterThan(1);
    expect((await engine.tokenize('on')).length).toBeGreaterThan(0);
  });
});

describe('calibration', () => {
  test('every head has a mean map, a spread and errors of the patterns; shares of pairs sum to 1', async () => {
    const { layers, nSegments, segmentTokens } = await lab.calibrate();
    expect(nSegments).toBeGreaterThan(20);
    expect(layers).toHaveLength(6);
    for (const { heads, pairShares } of layers) {
      expect(pairShares).toHaveLength(12);
      expect(pairShares.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 5);
      for (const head of heads) {
        expect(head.byOffset).toHaveLength(segmentTokens);
        expect(head.spread).toBeGreaterThan(0);
        expect(head.spread).toBeLessThanOrEqual(0.51);
        const { shift, mean, first, table } = head.outputErrors;
        for (const error of [shift, mean, first, table]) expect(error).toBeGreaterThan(0);
      }
    }
  });

  test('the most fixed head is replaced for little, the layer that recalls for much', async () => {
    const { layers } = await lab.calibrate();
    const heads = layers.flatMap(({ heads: some }, layer) =>
      some.map(({ outputErrors: { shift, mean, first } }, head) => ({
        ...{ layer, head },
        error: Math.min(shift, mean, first),
      })),
    );
    heads.sort((a, b) => a.error - b.error);
    const [fixed] = heads;
    if (fixed === undefined) throw new Error('no heads');
    const edited = await lab.edit({ fix: [fixed] });
    const options = { questions: [] };
    const before = await lab.original.evaluate(options);
    const after = await edited.evaluate(options);
    expect(after.loss - before.loss).toBeLessThan(0.05);
    expect(edited.layers[fixed.layer]?.nQHeads).toBe(8);
    await edited.drop();
  });
});

describe('export', () => {
  test('the exported file loads, and gives what the edited model gives', async () => {
    const edited = await lab.edit({
      ...{ prune: [{ layer: 1, head: 2 }], kvHeads: 1, dQk: 16, samePairs: true, dV: 24 },
    });
    const bytes = await edited.exportGguf(file);
    const loaded = await Engine.load(bytes, loadOptions);
    expect(loaded.info.model.layers.map(({ nQHeads }) => nQHeads)).toEqual([8, 7, 8, 8, 8, 8]);
    expect(loaded.info.model.layers[0]).toMatchObject({ nKvHeads: 1, dQk: 16, dV: 24, nRot: 16 });
    const session = await edited.session();
    expect(await answerOf(loaded.session())).toBe(await answerOf(session));
    const other = new ModelLab(loaded);
    const options = { questions: [], dialogues: sampleDialogues().slice(0, 8) };
    const [a, b] = [await edited.evaluate(options), await other.original.evaluate(options)];
    expect(Math.abs(a.loss - b.loss)).toBeLessThan(1e-4);
    await session.close();
    await edited.drop();
    await loaded.dispose();
  });

  test('an unedited model is written as it was, tensor by tensor', async () => {
    const bytes = await lab.original.exportGguf(new Blob([file]));
    const [a, b] = [readGguf(file), readGguf(bytes)];
    expect(b.keys).toEqual(a.keys);
    expect(b.tensors.map(({ name, dims, type }) => ({ name, dims, type }))).toEqual(
      a.tensors.map(({ name, dims, type }) => ({ name, dims, type })),
    );
    const again = await Engine.load(bytes, loadOptions);
    expect(await promptLogits(again)).toEqual(await promptLogits(engine));
    await again.dispose();
  });

  test('what the format cannot hold is refused with the reason', async () => {
    const cases: [Lab.ModelEdit, RegExp][] = [
      [
        { fix: [{ layer: 0, head: 0, pattern: { kind: 'first' } }] },
        /no head that works by a fixed pattern/,
      ],
      [{ window: 32 }, /cannot name a window/],
      [{ dQk: 16, layers: [1] }, /key_length is one for all/],
      [{ dV: 16, layers: [1] }, /value_length is one for all/],
      [{ dQk: 12 }, /one table of frequencies/],
    ];
    for (const [edit, reason] of cases) {
      const edited = await lab.edit(edit);
      await expect(edited.exportGguf(file)).rejects.toMatchObject({
        code: 'Unsupported',
        message: expect.stringMatching(reason),
      });
      await edited.drop();
    }
    const pruned = await lab.edit({ prune: [{ layer: 0, head: 0 }] });
    await expect(pruned.exportGguf(new Uint8Array(100))).rejects.toMatchObject({
      code: 'BadModel',
    });
    await expect(pruned.exportGguf(file.slice(0, 5000))).rejects.toMatchObject({
      code: 'BadModel',
    });
    await pruned.drop();
  });
});

describe('inside', () => {
  test('stable rank: sum of squares over the largest square of the singular values', async () => {
    for (const which of ['q', 'k', 'v', 'o'] as const) {
      const { singularValues, stableRank } = await lab.original.spectrum(2, which);
      const { rows, cols, values } = await lab.original.tensor(2, which);
      expect(singularValues).toHaveLength(Math.min(rows, cols));
      expect([...singularValues].sort((a, b) => b - a)).toEqual([...singularValues]);
      const squares = values.reduce((sum, x) => sum + x * x, 0);
      const largest = singularValues[0] ?? 0;
      expect(stableRank).toBeCloseTo(squares / largest ** 2, 2);
      expect(stableRank).toBeGreaterThan(1);
    }
    await expect(lab.original.spectrum(6, 'q')).rejects.toMatchObject({ code: 'BadOption' });
  });

  test('one token through a block: sixteen tensors with shapes, bytes and times', async () => {
    const tokens = await engine.tokenize('What is a quadratic equation?', { addSpecial: true });
    const { tensors, nPasses } = await lab.original.trace(tokens, {
      layer: 3,
      lastOnly: true,
      budgetMs: 20,
    });
    expect(nPasses).toBeGreaterThan(1);
    const shapes = Object.fromEntries(tensors.map(({ name, shape }) => [name, shape.join(' x ')]));
    expect(shapes).toMatchObject({
      ...{ input: '1 x 192', norm: '1 x 192', q: '1 x 192', k: '1 x 48', v: '1 x 64' },
      ...{ 'q rotated': '1 x 8 x 24', 'k rotated': '1 x 2 x 24', 'head outputs': '1 x 8 x 32' },
      ...{ 'attention out': '1 x 192', gate: '1 x 512', output: '1 x 192' },
    });
    for (const { bytes, values } of tensors) expect(bytes).toBe(4 * values.length);
    expect(tensors.reduce((sum, { ms }) => sum + ms, 0)).toBeGreaterThan(0);
    const all = await lab.original.trace(tokens, { layer: 3, budgetMs: 0 });
    const output = all.tensors.at(-1)?.values.slice(-192) ?? new Float32Array();
    expect(relativeRms(output, tensors.at(-1)?.values ?? new Float32Array())).toBe(0);
  });
});
