// Head metrics on constructed heads, where each number is known; the induction circuit on the real kernels; and a survey of
// the default model.
import { readFileSync } from 'node:fs';
import { type CapturedArray, Engine } from 'headlight-wasm';
import {
  contentSpread,
  headKind,
  headLabel,
  headMetrics,
  inductionCircuit,
  rowDistance,
  rowEntropy,
  SURVEY_TEXT,
  surveyHeads,
} from 'headlight-wasm/lab';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** Row i of the map has weight 1 at key pick(i). */
function pointing(n: number, pick: (row: number) => number): Float32Array {
  const map = new Float32Array(n * n);
  for (let i = 0; i < n; i++) map[i * n + pick(i)] = 1;
  return map;
}
function uniformMap(n: number): Float32Array {
  return Float32Array.from({ length: n * n }, (_, at) => {
    const [i, j] = [Math.floor(at / n), at % n];
    return j <= i ? 1 / (i + 1) : 0;
  });
}
const ABCAB = [10, 11, 12, 10, 11];

describe('head metrics on constructed heads', () => {
  it('a previous-token head', () => {
    const metrics = headMetrics(
      pointing(5, (i) => Math.max(0, i - 1)),
      ABCAB,
    );
    // Row 1's previous token is the first one.
    expect(metrics).toMatchObject({ previousToken: 1, firstToken: 1 / 4, self: 0, distance: 1 });
    expect(metrics).toMatchObject({ entropy: 0, uniform: 0, induction: 0 });
    expect(headLabel(metrics)).toBe('previous-token');
  });

  it('a first-token sink', () => {
    const metrics = headMetrics(
      pointing(5, () => 0),
      ABCAB,
    );
    expect(metrics).toMatchObject({ firstToken: 1, previousToken: 1 / 4, distance: 2.5 });
    expect(headLabel(metrics)).toBe('first-token sink');
  });

  it('a uniform head: weights 1, .5, .33, .25, .2', () => {
    const metrics = headMetrics(uniformMap(5), ABCAB);
    expect(metrics.uniform).toBeCloseTo(1, 6);
    expect(metrics.entropy).toBeCloseTo(Math.log(2 * 3 * 4 * 5) / 4, 6);
    expect(metrics.distance).toBeCloseTo((0.5 + 1 + 1.5 + 2) / 4, 6);
    expect(headLabel(metrics)).toBe('uniform');
  });

  it('an induction head: A B C A B looks at 0, 1, 2, 1, 2', () => {
    const metrics = headMetrics(
      pointing(5, (i) => [0, 1, 2, 1, 2][i] ?? 0),
      ABCAB,
    );
    expect(metrics).toMatchObject({ induction: 1, self: 1 / 2 });
    expect(headLabel(metrics)).toBe('induction');
    // Where no token comes twice nothing can be said about it.
    const identity = headMetrics(
      pointing(5, (i) => i),
      [1, 2, 3, 4, 5],
    );
    expect(identity).toMatchObject({ induction: undefined, self: 1 });
    expect(headLabel(identity)).toBe('mixed');
  });

  it('a mixed head, halves of two', () => {
    const [a, b] = [pointing(5, () => 0), pointing(5, (i) => i)];
    const half = a.map((weight, at) => (weight + (b[at] ?? 0)) / 2);
    const metrics = headMetrics(half, [1, 2, 3, 4, 5]);
    expect(metrics).toMatchObject({ firstToken: 0.5, self: 0.5 });
    const third = half.map((weight, at) => 0.6 * weight + 0.4 * (uniformMap(5)[at] ?? 0));
    expect(headLabel(headMetrics(third, [1, 2, 3, 4, 5]))).toBe('mixed');
  });

  it('rows: entropy of halves is ln 2, their mean distance half a token', () => {
    expect(rowEntropy([0.5, 0.5])).toBeCloseTo(Math.LN2, 12);
    expect(rowDistance([0.5, 0.5])).toBe(0.5);
    expect(rowEntropy([0, 1])).toBe(0);
  });

  it('fixed or by content: the spread of maps over texts', () => {
    const fixed = pointing(4, () => 0);
    expect(contentSpread([fixed, fixed, fixed], 4)).toBe(0);
    expect(headKind(0)).toBe('fixed pattern');
    // Two texts that move all the weight of each row: deviation 0.5 in each.
    const other = pointing(4, (i) => i);
    expect(contentSpread([fixed, other], 4)).toBeCloseTo(0.5, 6);
    expect(headKind(0.5)).toBe('content-based');
  });

  it('a map that is not square and a single text are refused with the remedy', () => {
    expect(() => headMetrics(new Float32Array(5), ABCAB)).toThrow(/25 weights.*rows: 'all'/);
    expect(() => contentSpread([new Float32Array(16)], 4)).toThrow(/at least 2/);
  });
});

/** Where each row has most of its weight, and the least of these weights. */
function looks({ data, shape: [, nRows = 0, nKv = 0] }: CapturedArray) {
  const at: number[] = [];
  let least = 1;
  for (let i = 0; i < nRows; i++) {
    const row = Array.from(data.subarray(i * nKv, (i + 1) * nKv));
    const largest = Math.max(...row);
    at.push(row.indexOf(largest));
    least = Math.min(least, largest);
  }
  return { at, least };
}

describe('the induction circuit', () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await Engine.load(inductionCircuit(), { threads: 1 });
  });
  afterAll(() => engine.dispose());

  async function run(text: string) {
    const tokens = await engine.tokenize(text, { addSpecial: true });
    const { capture, logits } = await engine.forward(tokens, { capture: { rows: 'all' } });
    const [previous, induction] = capture?.layers ?? [];
    const probable = logits.indexOf(Math.max(...logits));
    return {
      tokens,
      says: (await engine.tokenTexts([probable]))[0],
      previous: looks(previous?.attention as CapturedArray),
      induction: looks(induction?.attention as CapturedArray),
      map: induction?.attention.data as Float32Array,
    };
  }

  it('says C after A B C A B; rows look at 0, 1, 2, 1, 2 behind the first token', async () => {
    const { tokens, says, previous, induction, map } = await run('A B C A B');
    expect(await engine.tokenTexts(tokens)).toEqual(['<s>', ' A', ' B', ' C', ' A', ' B']);
    expect(says).toBe(' C');
    expect(previous.at).toEqual([0, 0, 1, 2, 3, 4]);
    expect(previous.least).toBeGreaterThan(0.9999);
    // The start token stands at 0; the letters' rows are one further.
    expect(induction.at).toEqual([0, 1, 2, 3, 2, 3]);
    expect(induction.least).toBeGreaterThan(0.999);
    expect(headLabel(headMetrics(map, tokens))).toBe('induction');
  });

  it('without repetition every row looks at itself', async () => {
    const { induction } = await run('A B C D E');
    expect(induction.at).toEqual([0, 1, 2, 3, 4, 5]);
    expect(induction.least).toBeGreaterThan(0.999);
  });

  it('completes a name it has read once, far back and with the int8 cache too', async () => {
    const far = 'Q X A D F G H I J K L M N O P R S T U V W Y Z B C E Q';
    expect((await run(far)).says).toBe(' X');
    const int8 = await Engine.load(inductionCircuit(), { kvCache: { k: 'int8', v: 'int8' } });
    const { text } = await int8.complete('H P W H', { temperature: 0, maxTokens: 3 }).result();
    expect(text).toBe(' P W H');
    await int8.dispose();
  });
});

describe('a survey of the default model', () => {
  const defaultModel = new URL('../../../examples/models/default-q8_0.gguf', import.meta.url);

  it('labels every head, says how much each depends on the text, and reports progress', async () => {
    const engine = await Engine.load(new Uint8Array(readFileSync(defaultModel)), { threads: 1 });
    const text = 'Once upon a time a small lamp stood in a window. '.repeat(6);
    const tokens = await engine.tokenize(text);
    const done: number[] = [];
    const heads = await surveyHeads(engine, tokens, {
      partLength: 24,
      onProgress: (part) => done.push(part),
    });
    const { layers } = engine.info.model;
    expect(heads).toHaveLength(layers.reduce((n, { nQHeads }) => n + nQHeads, 0));
    expect(done.length).toBe(Math.floor(tokens.length / 24));
    for (const { metrics, spread } of heads) {
      for (const share of [metrics.previousToken, metrics.firstToken, metrics.uniform]) {
        expect(share).toBeGreaterThanOrEqual(0);
        expect(share).toBeLessThanOrEqual(1.000001);
      }
      expect(spread).toBeGreaterThanOrEqual(0);
      expect(spread).toBeLessThanOrEqual(0.5);
    }
    await expect(surveyHeads(engine, [1, 2, 3])).rejects.toThrow(/at least 2 parts.*built-in text/);
    await engine.dispose();
  });

  it('without tokens it is over the built-in text; without an engine it says what is missing', async () => {
    const engine = await Engine.load(new Uint8Array(readFileSync(defaultModel)), { threads: 1 });
    const heads = await surveyHeads(engine);
    expect(heads).toEqual(await surveyHeads(engine, await engine.tokenize(SURVEY_TEXT)));
    expect(heads).toHaveLength(6 * 8);
    // Names and phrases come again in it.
    for (const { metrics } of heads) expect(metrics.induction).toBeGreaterThanOrEqual(0);
    await engine.dispose();
    await expect(surveyHeads(undefined as never)).rejects.toMatchObject({
      ...{ code: 'BadOption', details: { option: 'engine', value: 'undefined' } },
    });
  });
});
