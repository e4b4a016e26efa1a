// Looking inside a model through the package: forward() and runs, over the real module and the default model.
import { readFileSync } from 'node:fs';
import { attend, type Captured, Engine } from 'headlight-wasm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const MODEL = new URL('../../../examples/models/default-q8_0.gguf', import.meta.url);
const bytes = new Uint8Array(readFileSync(MODEL));

let engine: Engine;
let tokens: number[];
beforeAll(async () => {
  engine = await Engine.load(bytes, { threads: 1 });
  tokens = await engine.tokenize('Once upon a time there was a small lamp', { addSpecial: true });
});
afterAll(() => engine.dispose());

const refused = (option: string, value: string) => ({
  code: 'BadOption',
  details: expect.objectContaining({ option, value }),
});

/** Of all heads and rows of a captured layer. */
function rowSums({ layers, nKv }: Captured): number[] {
  return layers.flatMap(({ attention: { data } }) =>
    Array.from({ length: data.length / nKv }, (_, row) =>
      data.subarray(row * nKv, (row + 1) * nKv).reduce((a, b) => a + b, 0),
    ),
  );
}

describe('forward with capture', () => {
  it('gives every layer and head of the last row by default, with shapes', async () => {
    const { capture, logits } = await engine.forward(tokens, { capture: {} });
    const { model } = engine.info;
    expect(capture?.layers.map(({ layer }) => layer)).toEqual(model.layers.map((_, i) => i));
    expect(capture).toMatchObject({ what: 'weights', nKv: tokens.length });
    expect(Array.from(capture?.positions ?? [])).toEqual([tokens.length - 1]);
    for (const { heads, attention, sinkMass, headOutputs } of capture?.layers ?? []) {
      expect(Array.from(heads)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      expect(attention.shape).toEqual([8, 1, tokens.length]);
      expect(attention.data).toHaveLength(8 * tokens.length);
      expect(sinkMass.shape).toEqual([8, 1]);
      expect(headOutputs).toBeUndefined();
    }
    for (const sum of rowSums(capture as Captured)) expect(Math.abs(sum - 1)).toBeLessThan(1e-6);
    expect((await engine.forward(tokens)).logits).toEqual(logits);
  });

  it('head outputs, residual norms and the lens come with their shapes; the last lens is the logits', async () => {
    const n = tokens.length;
    const nLayers = engine.info.model.layers.length;
    const { capture, logits } = await engine.forward(tokens, {
      logits: 'all',
      capture: {
        layers: [2],
        heads: [5, 1],
        rows: 'all',
        headOutputs: true,
        residualNorms: true,
        logitLens: 'all',
      },
    });
    const [layer] = capture?.layers ?? [];
    expect(layer?.attention.shape).toEqual([2, n, n]);
    expect(layer?.headOutputs?.shape).toEqual([2, n, engine.info.model.layers[2]?.dV]);
    expect(capture?.residualNorms?.shape).toEqual([nLayers + 1, n]);
    expect(capture?.residualNorms?.data.every((norm) => norm > 0)).toBe(true);
    expect(capture?.logitLens).toHaveLength(nLayers);
    const last = capture?.logitLens?.at(-1);
    expect(last?.logits.shape).toEqual([n, 2048]);
    expect(last?.logits.data).toEqual(logits);
  });

  it.each(['simd', 'relaxed'] as const)('%s: two threads give the bits of one', async (module) => {
    const captures: Captured[] = [];
    for (const threads of [1, 2]) {
      const other = await Engine.load(bytes, { threads, module });
      const capture = { rows: 'all', headOutputs: true, logitLens: [1] } as const;
      captures.push((await other.forward(tokens, { capture })).capture as Captured);
      await other.dispose();
    }
    expect(captures[1]).toEqual(captures[0]);
  });

  it('the int8 cache: rows sum to 1 too', async () => {
    const int8 = await Engine.load(bytes, { kvCache: { k: 'int8', v: 'int8' } });
    const { capture } = await int8.forward(tokens, { capture: { rows: 'all' } });
    for (const sum of rowSums(capture as Captured)) expect(Math.abs(sum - 1)).toBeLessThan(1e-6);
    await int8.dispose();
  });

  it('what is not there is a BadOption that names value and range', async () => {
    const at = (capture: object) => engine.forward(tokens, { capture: capture as never });
    await expect(at({ layers: [0, 99] })).rejects.toMatchObject(refused('capture.layers[1]', '99'));
    await expect(at({ heads: [8] })).rejects.toMatchObject(refused('capture.heads[0]', '8'));
    await expect(at({ rows: [tokens.length] })).rejects.toMatchObject(
      refused('capture.rows[0]', String(tokens.length)),
    );
    await expect(at({ rows: [1, 1] })).rejects.toMatchObject(refused('capture.rows[1]', '1'));
    await expect(at({ logitLens: [50] })).rejects.toMatchObject(
      refused('capture.logitLens[0]', '50'),
    );
    await expect(at({ rows: 'first' })).rejects.toMatchObject(refused('rows', "'first'"));
    await expect(at({ what: 'logits' })).rejects.toMatchObject(refused('what', "'logits'"));
    await expect(at({ layers: [-1] })).rejects.toMatchObject({ code: 'BadOption' });
    await expect(at({ head: [1] })).rejects.toThrow(/no option 'head'.*heads/);
    await expect(at([])).rejects.toMatchObject({ code: 'BadOption' });
    // And the engine goes on.
    expect((await engine.forward(tokens)).nRows).toBe(1);
  });
});

describe('runs with capture', () => {
  it('bring the prompt first, then the row of each token; the same as a forward pass of that length', async () => {
    const run = engine.complete(tokens, {
      temperature: 0,
      maxTokens: 4,
      ignoreEndOfGeneration: true,
      capture: { layers: [3], heads: [2], rows: 'all' },
    });
    const captured: Captured[] = [];
    const made: number[] = [];
    for await (const chunk of run) {
      captured.push(...(chunk.capture ?? []));
      made.push(...chunk.tokens);
    }
    expect(captured.map(({ nKv }) => nKv)).toEqual([0, 1, 2, 3].map((i) => tokens.length + i));
    expect(captured.map(({ positions }) => positions.length)).toEqual([tokens.length, 1, 1, 1]);
    const whole = await engine.forward([...tokens, ...made.slice(0, 3)], {
      capture: { layers: [3], heads: [2] },
    });
    expect(captured[3]?.layers[0]?.attention.data).toEqual(
      whole.capture?.layers[0]?.attention.data,
    );
  });

  it('chat takes it too, and a bad layer fails the run and leaves the session usable', async () => {
    const messages = [{ role: 'user', content: 'Who are you?' }];
    const bad = engine.chat(messages, { capture: { layers: [99] } });
    await expect(bad.result()).rejects.toMatchObject(refused('capture.layers[0]', '99'));
    let nCaptured = 0;
    const run = engine.chat(messages, { temperature: 0, maxTokens: 3, capture: { layers: [0] } });
    for await (const { capture } of run) nCaptured += capture?.length ?? 0;
    expect(nCaptured).toBe(3);
    expect((await engine.chat(messages, { temperature: 0, maxTokens: 3 }).result()).text).toMatch(
      /^I am/,
    );
  });

  it('a run that asks for nothing gets nothing', async () => {
    for await (const chunk of engine.complete(tokens, { maxTokens: 2 }))
      expect(chunk.capture).toBeUndefined();
  });
});

describe('attend: every mask is reachable', () => {
  // Two heads of width 1 with q = 0: all scores are 0 before anything is added; value r is r.
  const layer = {
    nQHeads: 2,
    nKvHeads: 1,
    dQk: 1,
    dV: 1,
    q: new Float32Array(2 * 4),
    k: new Float32Array(4).fill(1),
    v: Float32Array.from([0, 1, 2, 3]),
  };
  const outOf = async (options: object) => Array.from((await attend({ ...layer, ...options })).out);
  const close = (actual: number[], expected: number[]) => {
    expect(actual).toHaveLength(expected.length);
    for (const [i, value] of actual.entries()) expect(value).toBeCloseTo(expected[i] ?? 0, 5);
  };

  it.each(['reference', 'tiled', 'decode'] as const)('by the %s kernel', async (kernel) => {
    const of = (options: object) => outOf({ ...options, kernel });
    close(await of({}), [0, 0, 0.5, 0.5, 1, 1, 1.5, 1.5]);
    close(await of({ causal: false }), Array(8).fill(1.5));
    close(await of({ prefix: 3 }), [1, 1, 1, 1, 1, 1, 1.5, 1.5]);
    close(await of({ window: 1 }), [0, 0, 1, 1, 2, 2, 3, 3]);
    close(await of({ window: 1, windowSinks: 1 }), [0, 0, 0.5, 0.5, 1, 1, 1.5, 1.5]);
    close(await of({ mask: Uint8Array.of(0, 0, 0, 1), causal: false }), Array(8).fill(3));
    const shifted = Float32Array.of(0, 0, 0, Math.log(3));
    close(await of({ mask: shifted, causal: false }), Array(8).fill((0 + 1 + 2 + 9) / 6));
    close(await of({ sinkLogits: Float32Array.of(0, -100), firstPosition: 0 }), [
      0,
      0,
      1 / 3,
      0.5,
      3 / 4,
      1,
      6 / 5,
      1.5,
    ]);
    const slope = Math.log(2); // weights halve with each step back
    close(await of({ alibiSlopes: Float32Array.of(slope, 0) }), [
      0,
      0,
      2 / 3,
      0.5,
      10 / 7,
      1,
      34 / 15,
      1.5,
    ]);
    const perHead = Uint8Array.from({ length: 2 * 4 * 4 }, (_, i) =>
      i % 4 === Math.floor(i / 16) ? 1 : 0,
    );
    close(await of({ mask: perHead, causal: false }), [0, 1, 0, 1, 0, 1, 0, 1]);
  });

  it('captures weights and what a sink takes', async () => {
    const { captured, sinkMass } = await attend({
      ...layer,
      sinkLogits: Float32Array.of(0, Math.log(2)),
      capture: 'weights',
    });
    expect(captured?.shape).toEqual([2, 4, 4]);
    expect(sinkMass?.shape).toEqual([2, 4]);
    close(Array.from(captured?.data.subarray(0, 8) ?? []), [0.5, 0, 0, 0, 1 / 3, 1 / 3, 0, 0]);
    close(Array.from(sinkMass?.data ?? []), [
      1 / 2,
      1 / 3,
      1 / 4,
      1 / 5,
      2 / 3,
      2 / 4,
      2 / 5,
      2 / 6,
    ]);
  });

  it.each([
    ['mask.length', { mask: new Float32Array(5) }],
    ['mask', { mask: [0, 1] }],
    ['alibiSlopes.length', { alibiSlopes: new Float32Array(3) }],
    ['sinkLogits', { sinkLogits: Float32Array.of(0, Number.NaN) }],
    ['capture', { capture: 'logits' }],
    ['firstPosition', { firstPosition: -1 }],
  ])('%s is refused by name', async (option, changes) => {
    await expect(attend({ ...layer, ...(changes as object) })).rejects.toMatchObject({
      code: 'BadOption',
      details: { option },
    });
  });
});
