// What runs give and in which order they run, over a fake module: what must hold whatever the model says.
import { describe, expect, it } from 'vitest';
import { EngineSession } from '../../../web/runtime/src/engine.js';
import { EOS, PIECES, textTokens, wordToken } from './fake_module.js';
import { fakePlatform, loadFake } from './fake_platform.js';
import { chunksOf } from './runs.js';

const USER = [{ role: 'user', content: 'Hi' }];

describe('a run', () => {
  it('gives the same text by its chunks and by its result', async () => {
    const engine = await loadFake(fakePlatform());
    const run = engine.complete('one');
    const chunks = await chunksOf(run);
    const result = await run.result();
    expect(result).toMatchObject({
      text: 'Hello',
      tokens: textTokens('Hello'),
      finishReason: 'stop',
      droppedMessages: 0,
    });
    expect(chunks.map(({ text }) => text).join('')).toBe('Hello');
    expect(chunks.flatMap(({ tokens }) => tokens)).toEqual(result.tokens);
  });

  it('reports how much of the prompt is computed', async () => {
    const engine = await loadFake(fakePlatform());
    const seen: unknown[] = [];
    await engine
      .complete([5, 6, 7])
      .onPrefill((progress) => seen.push(progress))
      .result();
    expect(seen).toEqual([{ doneTokens: 3, totalTokens: 3 }]);
  });

  it('holds half a character back until it is whole', async () => {
    const engine = await loadFake(fakePlatform({ tokens: textTokens('a😀b') }));
    const texts = (await chunksOf(engine.complete('x'))).map(({ text }) => text);
    expect(texts.filter((text) => text !== '')).toEqual(['a', '😀', 'b']);
  });

  it('turns a character that never becomes whole into U+FFFD at the end', async () => {
    const engine = await loadFake(fakePlatform({ tokens: textTokens('a😀').slice(0, 3) }));
    expect((await engine.complete('x').result()).text).toBe('a\ufffd');
  });

  it('ends before a stop string, shows no part of it and names it', async () => {
    const engine = await loadFake(fakePlatform({ tokens: textTokens('one END two') }));
    const run = engine.complete('x', { stop: ['END', 'never'] });
    const texts = (await chunksOf(run)).map(({ text }) => text);
    expect(texts.join('')).toBe('one ');
    expect(await run.result()).toMatchObject({
      text: 'one ',
      tokens: textTokens('one END'),
      finishReason: 'stop',
      stopString: 'END',
    });
  });

  it('gives held back text at the end when the stop string did not come', async () => {
    const engine = await loadFake(fakePlatform({ tokens: textTokens('one EN') }));
    expect(await engine.complete('x', { stop: 'END' }).result()).toMatchObject({
      text: 'one EN',
      finishReason: 'stop',
    });
  });

  it('gives log-probabilities with the text of each token when asked, and none otherwise', async () => {
    const engine = await loadFake(fakePlatform({ tokens: [wordToken('▁one')] }));
    const [first] = await chunksOf(engine.complete('x', { logprobs: 1 }));
    const token = wordToken('▁one');
    expect(first?.logprobs).toEqual([
      { token, logprob: -0.5, top: [{ token, text: ' one', logprob: -0.5 }] },
    ]);
    expect((await chunksOf(engine.complete('x')))[0]).not.toHaveProperty('logprobs');
  });

  it('passes every end-of-generation token, the sampling options and both halves of the seed on', async () => {
    const platform = fakePlatform();
    const engine = await loadFake(platform);
    const seed = 2 ** 40 + 7;
    const options = { temperature: 0, topK: 3, seed, logitBias: { 5: -Infinity }, maxTokens: 2 };
    const result = await engine.complete('x', options).result();
    expect(result).toMatchObject({ seed, finishReason: 'length', tokens: textTokens('He') });
    const [given] = platform.module().log.options;
    expect(given).toMatchObject({
      temperature: 0,
      topK: 3,
      seedLow: 7,
      seedHigh: 256,
      maxTokens: 2,
      minP: 0.05,
    });
    expect([...(given?.stopTokens ?? [])]).toEqual(
      expect.arrayContaining([EOS, wordToken('<|im_end|>')]),
    );
    expect([...(given?.logitBiasIds ?? [])]).toEqual([5]);
    expect([...(given?.logitBiasValues ?? [])]).toEqual([-Infinity]);
  });

  it('draws a seed where none is given and reports it', async () => {
    const engine = await loadFake(fakePlatform());
    const seeds = await Promise.all([engine.complete('x').result(), engine.complete('x').result()]);
    expect(new Set(seeds.map(({ seed }) => seed)).size).toBe(2);
  });

  it('can be iterated once', async () => {
    const run = (await loadFake(fakePlatform())).complete('x');
    await chunksOf(run);
    expect(() => run[Symbol.asyncIterator]()).toThrow(/once/);
  });
});

describe('order', () => {
  it('calls without await do not interleave: each run begins when the one before has ended', async () => {
    const platform = fakePlatform({ tokens: textTokens('ab') });
    const engine = await loadFake(platform);
    const order: string[] = [];
    const runs = [engine.complete([5]), engine.complete([6]), engine.complete([7])];
    await Promise.all(
      runs.map(async (run, i) => {
        for await (const { text } of run) order.push(`${i}${text}`);
      }),
    );
    expect(order).toEqual(['0a', '0b', '1a', '1b', '2a', '2b']);
    expect(platform.module().log.begun).toEqual([[5], [6], [7]]);
  });

  it('runs of two sessions take turns', async () => {
    const engine = await loadFake(fakePlatform({ tokens: textTokens('abcd') }));
    const order: string[] = [];
    const sessions = [engine, engine.session()];
    await Promise.all(
      sessions.map(async (session, i) => {
        for await (const _ of session.complete([5])) order.push(String(i));
      }),
    );
    expect(order.join('')).toMatch(/01|10/);
    expect(order.join('')).not.toMatch(/0000|1111/);
  });

  it('truncate and forward wait for the runs before them', async () => {
    const engine = await loadFake(fakePlatform());
    const done: string[] = [];
    const session = engine.session();
    await Promise.all([
      session
        .complete([5])
        .result()
        .then(() => done.push('run')),
      session.truncate(1).then(() => done.push('truncate')),
      engine
        .complete([5])
        .result()
        .then(() => done.push('other run')),
      engine.forward([5], { logits: 'all' }).then(() => done.push('forward')),
    ]);
    expect(done.indexOf('run')).toBeLessThan(done.indexOf('truncate'));
    expect(done.indexOf('other run')).toBeLessThan(done.indexOf('forward'));
  });

  it('tokenize comes through while a run is under way', async () => {
    const engine = await loadFake(fakePlatform({ tokens: textTokens('x'.repeat(50)) }));
    const run = engine.complete([5]);
    let ended = false;
    const ending = run.result().then(() => {
      ended = true;
    });
    expect(await engine.tokenize('é')).toEqual(textTokens('é'));
    expect(ended).toBe(false);
    await ending;
  });
});

describe('text', () => {
  it('chat renders the template, and control tokens in a message stay text', async () => {
    const platform = fakePlatform();
    const engine = await loadFake(platform);
    await engine.chat([{ role: 'user', content: 'a<|im_end|>' }]).result();
    const [prompt = []] = platform.module().log.begun;
    const count = (piece: string) => prompt.filter((id) => PIECES[id] === piece).length;
    expect(count('<|im_start|>')).toBe(2);
    expect(count('<|im_end|>')).toBe(1);
  });

  it('complete(text) adds BOS as the file says and reads control tokens as text', async () => {
    const platform = fakePlatform();
    const engine = await loadFake(platform);
    await engine.complete('<|im_end|>').result();
    expect(platform.module().log.begun[0]).toEqual([1, ...textTokens('<|im_end|>')]);
  });

  it('a prompt that does not fit is a ContextFullError with the numbers', async () => {
    const engine = await loadFake(fakePlatform({ nCtx: 8 }));
    const wanted = { code: 'ContextFull', details: { neededTokens: 21, nCtx: 8 } };
    await expect(engine.complete('x'.repeat(20)).result()).rejects.toMatchObject(wanted);
    await expect(engine.chat(USER).result()).rejects.toMatchObject({ code: 'ContextFull' });
  });

  it('a prompt of megabytes is refused at once, and the next call does not wait for it', async () => {
    const engine = await loadFake(fakePlatform({ nCtx: 64 }));
    const text = 'ab '.repeat(2e7);
    const started = performance.now();
    const refused = {
      code: 'ContextFull',
      message: expect.stringMatching(/has at least \d+ tokens/),
    };
    await expect(engine.complete(text).result()).rejects.toMatchObject(refused);
    // A template may make no more than some megabytes.
    const messages = [{ role: 'user', content: text.slice(0, 1_000_000) }];
    await expect(engine.chat(messages).result()).rejects.toMatchObject(refused);
    const chat = engine.chat(messages, { onContextFull: 'drop-oldest' });
    await expect(chat.result()).rejects.toMatchObject(refused);
    // Encoding them takes minutes.
    expect(performance.now() - started).toBeLessThan(20_000);
  });

  it('drop-oldest leaves the oldest messages out and says how many', async () => {
    const platform = fakePlatform({ nCtx: 64 });
    const engine = await loadFake(platform);
    const messages = [
      { role: 'user', content: 'first question' },
      { role: 'assistant', content: 'first answer' },
      { role: 'user', content: 'Hi' },
    ];
    const result = await engine
      .chat(messages, { onContextFull: 'drop-oldest', maxTokens: 1 })
      .result();
    expect(result.droppedMessages).toBe(2);
  });

  it('tokenTexts names each token by itself', async () => {
    const engine = await loadFake(fakePlatform());
    expect(await engine.tokenTexts([wordToken('▁one'), 1, textTokens('é')[0] ?? 0])).toEqual([
      ' one',
      '<s>',
      '\ufffd',
    ]);
  });

  it('stats tell the last timings of a session', async () => {
    const engine = await loadFake(fakePlatform());
    expect(await engine.stats()).toEqual({ contextTokens: 0, nCtx: 64, wasmBytes: 1024 });
    const { timings } = await engine.complete([5, 6]).result();
    const after = await engine.stats();
    expect(after).toMatchObject({ contextTokens: 7, nCtx: 64, last: timings });
    expect(after.stages).toMatchObject({ promptTokens: 2, prefill: { headMs: 0.1 } });
    expect(after.stages?.decode.attentionMs).toBe(0.1);
    expect(engine.session()).toBeInstanceOf(EngineSession);
  });
});

describe('a model without a tokenizer', () => {
  const without = { 'tokenizer.ggml.model': undefined };
  const load = () => loadFake(fakePlatform({ metadata: without, tokens: [7, 8] }));

  it('takes and gives token ids, and ends at the token that its file names', async () => {
    const platform = fakePlatform({ metadata: without, tokens: [7, 8] });
    const engine = await loadFake(platform);
    expect(engine.info.model).toMatchObject({ hasTokenizer: false, hasChatTemplate: false });
    const run = engine.complete([5, 6], { logprobs: 1 });
    const chunks = await chunksOf(run);
    expect(await run.result()).toMatchObject({ tokens: [7, 8], text: '', finishReason: 'stop' });
    expect(chunks[0]?.logprobs?.[0]).toMatchObject({ token: 7, top: [{ token: 7, text: '' }] });
    expect(platform.module().log.options[0]?.stopTokens).toEqual(Uint32Array.of(EOS));
    expect((await engine.forward([5, 6])).logits).toHaveLength(PIECES.length);
  });

  it('refuses each call that needs text, and goes on', async () => {
    const engine = await load();
    const calls = [
      () => engine.complete('text').result(),
      () => engine.complete([5], { stop: 'x' }).result(),
      () => engine.chat(USER).result(),
      () => engine.tokenize('text'),
      () => engine.detokenize([5]),
      () => engine.tokenTexts([5]),
    ];
    for (const call of calls) {
      await expect(call()).rejects.toMatchObject({
        code: 'Unsupported',
        message: expect.stringMatching(/no tokenizer .*token ids/),
      });
    }
    expect(await engine.complete([5]).result()).toMatchObject({ tokens: [7, 8] });
  });

  it('a tokenizer that is not implemented is refused before the weights', async () => {
    const platform = fakePlatform({ metadata: { 'tokenizer.ggml.model': 'bert' } });
    await expect(loadFake(platform)).rejects.toMatchObject({ code: 'Unsupported' });
    expect(platform.module().log.reserved).toEqual([]);
  });
});
