// Whole models of any layout with random weights, the eight phases of a block, and how a layout is cut down to what a tab can run.
import { describe, expect, test } from 'vitest';
import type * as Lab from '../../../web/runtime/src/lab/index.js';
import { headlight, headlightLab } from '../built_package.js';

const { Engine } = headlight;
const { fittedLayout, layoutPreset, ModelLab, PLAIN, randomModel, randomModelBytes, runLayouts } =
  headlightLab;

const shape: Lab.ModelShape = {
  ...PLAIN,
  ...{ nLayers: 2, dModel: 64, nQHeads: 6, nKvHeads: 2, dQk: 24, dV: 20, dFf: 96 },
  ...{ vocabSize: 128, tiedHead: true },
};

describe('a random model', () => {
  test('loads with its layout, and every cache format costs what it costs', async () => {
    const bytes = randomModel(shape, { nCtx: 256 });
    const engine = await Engine.load(bytes, { module: 'simd', threads: 1 });
    expect(engine.info.model.layers[1]).toMatchObject({ nQHeads: 6, nKvHeads: 2, dQk: 24, dV: 20 });
    expect(engine.info.model.hasTokenizer).toBe(false);
    const lab = new ModelLab(engine);
    const tokens = Array.from({ length: 60 }, (_, i) => (i * 37) % 128);
    const exact = await lab.original.logits(tokens);
    expect(exact.every(Number.isFinite)).toBe(true);
    expect(new Set(exact).size).toBeGreaterThan(100);
    const error = async (type: 'f16' | 'int8') => {
      const logits = await lab.original.logits(tokens, { k: type, v: type });
      return Math.hypot(...logits.map((x, i) => x - (exact[i] ?? 0))) / Math.hypot(...exact);
    };
    const [f16, int8] = [await error('f16'), await error('int8')];
    expect(f16).toBeGreaterThan(0);
    expect(f16).toBeLessThan(int8);
    expect(int8).toBeLessThan(0.1);
    const [speed] = await lab.speed([lab.original], { rounds: 1, nPrompt: 16, nTokens: 4 });
    expect(speed?.kvBytesPerToken).toBe(2 * 2 * (24 + 20) * 4);
    // Texts need a tokenizer.
    await expect(lab.original.evaluate()).rejects.toMatchObject({ code: 'Unsupported' });
    await engine.dispose();
  });

  test('the same seed gives the same file, another seed another', () => {
    expect(randomModel(shape, { seed: 3 })).toEqual(randomModel(shape, { seed: 3 }));
    expect(randomModel(shape, { seed: 4 })).not.toEqual(randomModel(shape, { seed: 3 }));
  });

  test('what cannot be is refused', () => {
    expect(() => randomModel({ ...shape, nKvHeads: 4 })).toThrow(/nKvHeads/);
    const large = layoutPreset('llama70b').rows[1]?.shape ?? shape;
    expect(() => randomModel(large)).toThrow(/at most 1,500 MB/);
  });
});

test('a layout too large for a tab is run with fewer layers and tokens, and says so', () => {
  const large = layoutPreset('llama8b').rows[1]?.shape ?? shape;
  const { shape: small, note } = fittedLayout({ label: 'x', shape: large });
  expect(randomModelBytes(small)).toBeLessThanOrEqual(80e6);
  expect(small.nLayers).toBeLessThan(large.nLayers);
  expect(note).toMatch(/of its 32 layers/);
  const own = fittedLayout({ label: 'x', shape });
  expect(own.note).toBe('');
  expect(own.shape.nLayers).toBe(2);
});

describe('runLayouts', () => {
  const never = { load: Engine.load.bind(Engine) };

  test('two layouts in turns: every filling, the cache’s bytes, errors that grow as bits shrink', async () => {
    const rounds: number[] = [];
    const wide = { ...shape, nKvHeads: 6 };
    const runs = await runLayouts(
      [
        { label: 'grouped', shape },
        { label: 'all heads', shape: wide },
      ],
      { ...never, onProgress: ({ round }) => rounds.push(round) },
    );
    expect(rounds).toEqual([0, 0, 0, 1, 2, 3, 4, 5]);
    expect(runs.map(({ kvBytesPerToken }) => kvBytesPerToken)).toEqual([704, 2112]);
    for (const { decode, prefill, errors } of runs) {
      expect(decode.map(({ nKv }) => nKv)).toEqual([32, 128, 512, 1024]);
      for (const { ms } of [...decode, { ms: prefill }]) expect(ms.low).toBeGreaterThan(0);
      expect(errors[0]).toEqual({ cache: 'f32', error: 0 });
      expect(errors[2]?.error).toBeGreaterThan(errors[1]?.error ?? 1);
    }
  });

  test('is stopped, and refuses what no model can be', async () => {
    const stop = new AbortController();
    const options = { ...never, signal: stop.signal, onProgress: () => stop.abort() };
    const layouts = [{ label: 'a', shape }];
    await expect(runLayouts(layouts, options)).rejects.toMatchObject({ code: 'Aborted' });
    const uneven = [{ label: 'a', shape: { ...shape, nKvHeads: 4 } }];
    await expect(runLayouts(uneven, never)).rejects.toThrow(/nKvHeads/);
    const large = [{ label: 'a', shape: { ...shape, dModel: 16384, dFf: 65536 } }];
    await expect(runLayouts(large, never)).rejects.toMatchObject({
      code: 'BadOption',
      message: expect.stringMatching(/one layer of a is over 80 MB/),
    });
    await expect(runLayouts(layouts, { ...never, rounds: 3 } as never)).rejects.toMatchObject({
      code: 'BadOption',
    });
  });
});
