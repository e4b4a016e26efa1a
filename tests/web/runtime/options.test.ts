// Options are checked when they are given: what cannot be honoured throws, and says which option, which value, which range.
import { describe, expect, it } from 'vitest';
import { attendSpec } from '../../../web/runtime/src/attend.js';
import type { LoadOptions } from '../../../web/runtime/src/types.js';
import { PIECES } from './fake_module.js';
import { fakePlatform, loadFake } from './fake_platform.js';

const USER = [{ role: 'user', content: 'Hi' }];
const BAD_GENERATE: [string, unknown][] = [
  ['temperature', -0.1],
  ['temperature', Number.NaN],
  ['temperature', '1'],
  ['topK', 1.5],
  ['topK', -1],
  ['topP', 0],
  ['topP', 1.1],
  ['minP', 1],
  ['minP', -0.1],
  ['repetitionPenalty', 0],
  ['frequencyPenalty', 2.1],
  ['presencePenalty', -2.1],
  ['penaltyLastN', -1],
  ['seed', -1],
  ['seed', 2 ** 53],
  ['seed', 0.5],
  ['logitBias', { x: 1 }],
  ['logitBias', { [PIECES.length]: 1 }],
  ['logitBias[5]', Number.POSITIVE_INFINITY],
  ['maxTokens', 0],
  ['maxTokens', 1.5],
  ['stop', ''],
  ['stop', ['a', '']],
  ['stop', 5],
  ['logprobs', 21],
  ['logprobs', true],
  ['ignoreEndOfGeneration', 1],
  ['signal', {}],
  ['temprature', 1],
  ['toString', 1],
];

describe('generate options', () => {
  it.each(BAD_GENERATE)('%s: %j is refused by name', async (option, value) => {
    const engine = await loadFake(fakePlatform());
    const given = option === 'logitBias[5]' ? { logitBias: { 5: value } } : { [option]: value };
    const error = thrownBy(() => engine.complete('x', given as never));
    expect(error).toMatchObject({ code: 'BadOption', details: { option } });
    expect((error as { details: { range: string } }).details.range).not.toBe('');
    expect(String(error)).toContain(option);
  });

  it('options given as undefined count as left out', async () => {
    const engine = await loadFake(fakePlatform());
    const options = { temperature: undefined, maxTokens: undefined } as never;
    expect((await engine.complete('x', options).result()).text).toBe('Hello');
  });

  it('an unknown name is answered with the known ones', async () => {
    const engine = await loadFake(fakePlatform());
    expect(String(thrownBy(() => engine.chat(USER, { topp: 1 } as never)))).toMatch(/'topp'.*topP/);
  });

  it.each([
    ['no messages', []],
    ['not an array', {}],
    ['no role', [{ content: 'a' }]],
    ['content that is no string', [{ role: 'user', content: null }]],
  ])('chat refuses %s', async (_, messages) => {
    const engine = await loadFake(fakePlatform());
    expect(thrownBy(() => engine.chat(messages as never))).toMatchObject({ code: 'BadOption' });
  });

  it.each([[[]], [[PIECES.length]], [[-1]], [[1.5]], [{}]])(
    'complete refuses the tokens %j',
    async (tokens) => {
      const engine = await loadFake(fakePlatform());
      expect(thrownBy(() => engine.complete(tokens as never))).toMatchObject({ code: 'BadOption' });
    },
  );

  it('forward, tokenize and truncate refuse what they do not know', async () => {
    const engine = await loadFake(fakePlatform());
    const refused = { code: 'BadOption' };
    await expect(engine.forward([5], { logits: 'first' } as never)).rejects.toMatchObject(refused);
    await expect(engine.tokenize(5 as never)).rejects.toMatchObject(refused);
    await expect(engine.tokenize('a', { special: true } as never)).rejects.toMatchObject(refused);
    await expect(engine.session().truncate(-1)).rejects.toMatchObject(refused);
    await expect(engine.session().truncate(2 ** 32)).rejects.toMatchObject(refused);
  });
});

describe('load options', () => {
  it.each([
    ['nCtx', { nCtx: 0 }],
    ['nCtx', { nCtx: '4096' }],
    ['threads', { threads: 0 }],
    ['threads', { threads: 65 }],
    ['k', { kvCache: { k: 'int4' } }],
    ['kvCache', { kvCache: null }],
    ['K', { kvCache: { K: 'f16' } }],
    ['module', { module: 'fast' }],
    ['activations', { activations: 'f16' }],
    ['onProgress', { onProgress: 1 }],
    ['signal', { signal: null }],
    ['gpu', { gpu: true }],
  ])('%s: %j is refused by name', async (option, options) => {
    const error = await loadFake(fakePlatform(), options as unknown as LoadOptions).catch(
      (e: unknown) => e,
    );
    expect(error).toMatchObject({ code: 'BadOption' });
    expect(String(error)).toContain(option);
  });

  it('threads that cannot be had throw and say why', async () => {
    const loading = loadFake(fakePlatform(), { threads: 2 });
    await expect(loading).rejects.toThrow(/threads: 2 cannot be honoured: this is a test/);
  });

  it("module: 'relaxed' throws where there is no relaxed SIMD", async () => {
    await expect(loadFake(fakePlatform(), { module: 'relaxed' })).rejects.toMatchObject({
      code: 'BadOption',
    });
  });
});

describe('attend options', () => {
  const good = {
    nQHeads: 4,
    nKvHeads: 2,
    dQk: 3,
    dV: 5,
    q: new Float32Array(4 * 3),
    k: new Float32Array(7 * 2 * 3),
    v: new Float32Array(7 * 2 * 5),
  };

  it('counts rows from the arrays and fills in the defaults', () => {
    expect(attendSpec(good)).toMatchObject({
      nTokens: 1,
      nKv: 7,
      scale: 0,
      causal: true,
      kernel: 'auto',
      kvCacheK: 'f32',
      firstPosition: 6,
      mask: null,
      capture: null,
    });
  });

  it.each([
    ['q', { q: undefined }],
    ['q', { q: [1, 2] }],
    ['q.length', { q: new Float32Array(13) }],
    ['q', { q: new Float32Array(8 * 4 * 3) }],
    ['v', { v: new Float32Array(6 * 2 * 5) }],
    ['nKvHeads', { nKvHeads: 3 }],
    ['dQk', { dQk: 0 }],
    ['kernel', { kernel: 'fast' }],
    ['scale', { scale: 0 }],
    ['heads', { heads: 4 }],
  ])('%s: refused by name', (option, changes) => {
    const error = thrownBy(() => attendSpec({ ...good, ...changes } as never));
    expect(error).toMatchObject({ code: 'BadOption', details: { option } });
  });
});

function thrownBy(f: () => unknown): unknown {
  try {
    f();
  } catch (error) {
    return error;
  }
  return undefined;
}
