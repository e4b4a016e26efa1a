// The built package in Node with the real modules and the default model: what a user's program sees.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { headlight, packageEntry } from '../built_package.js';
import { hideKey, splitGguf } from '../gguf_edit.js';
import { chunksOf } from './runs.js';

const modelUrl = new URL('../../../examples/models/default-q8_0.gguf', import.meta.url);
const model = fileURLToPath(modelUrl);
const QUESTION = [{ role: 'user', content: 'Who are you?' }];
const ANSWER = /^I am a tiny language model/;
const GREEDY = { temperature: 0, maxTokens: 12 };

const { Engine, inspectModel, attend, HeadlightError } = headlight;

describe('an engine', () => {
  let engine: InstanceType<typeof Engine>;
  beforeAll(async () => {
    engine = await Engine.load(model, { threads: 1, module: 'simd' });
  });
  afterAll(() => engine.dispose());

  it('tells what was loaded, what runs and what it takes', () => {
    const { info } = engine;
    expect(info.model).toMatchObject({
      architecture: 'llama',
      dModel: 192,
      vocabSize: 2048,
      nCtxTrain: 512,
      hasChatTemplate: true,
    });
    expect(info.model.layers).toHaveLength(6);
    expect(info.model.layers[0]).toMatchObject({
      nQHeads: 8,
      nKvHeads: 2,
      dQk: 24,
      dV: 32,
      dFf: 512,
    });
    expect(info.runtime).toMatchObject({ module: 'simd', threads: 1, dotForm: 'wide' });
    // 6 layers x 2 heads x (24 + 32) x 4 bytes.
    expect(info.memory).toMatchObject({ kvBytesPerToken: 2688, kvCacheBytes: 512 * 2688 });
    expect(info.memory.wasmBytes).toBeGreaterThan(info.memory.weightsBytes);
    expect(info.nCtx).toBe(512);
  });

  it('answers a question, chunk by chunk', async () => {
    const run = engine.chat(QUESTION, { temperature: 0 });
    const chunks = await chunksOf(run);
    const result = await run.result();
    expect(result.text).toMatch(ANSWER);
    expect(chunks.map(({ text }) => text).join('')).toBe(result.text);
    expect(result).toMatchObject({ finishReason: 'stop', usage: { nCtx: 512 } });
    expect(result.usage.completionTokens).toBe(result.tokens.length);
    expect(result.timings.decodeTokensPerSecond).toBeGreaterThan(0);
  });

  it('does not compute again what the session has computed', async () => {
    const session = engine.session();
    const { text } = await session.chat(QUESTION, GREEDY).result();
    const messages = [
      ...QUESTION,
      { role: 'assistant', content: text },
      { role: 'user', content: 'Thanks' },
    ];
    const { usage } = await session.chat(messages, GREEDY).result();
    expect(usage.reusedTokens).toBeGreaterThan(10);
    await session.close();
  });

  it('the same seed gives the same text, another seed another', async () => {
    const at = async (seed: number) =>
      (await engine.complete('Once', { seed, maxTokens: 30 }).result()).text;
    const [first, again, other] = [await at(1), await at(1), await at(2)];
    expect(first).toBe(again);
    expect(first).not.toBe(other);
  });

  it('two sessions under way together give what each gives alone', async () => {
    const [a, b] = [engine.session(), engine.session()];
    const alone = await engine.chat(QUESTION, GREEDY).result();
    const together = await Promise.all([
      a.chat(QUESTION, GREEDY).result(),
      b.chat(QUESTION, GREEDY).result(),
    ]);
    expect(together.map(({ text }) => text)).toEqual([alone.text, alone.text]);
    await Promise.all([a.close(), b.close()]);
  });

  it('a run that was stopped leaves a session that works', async () => {
    const run = engine.complete('Once upon a time', { ignoreEndOfGeneration: true });
    for await (const _ of run) break;
    expect((await run.result()).finishReason).toBe('aborted');
    expect((await engine.chat(QUESTION, GREEDY).result()).text).toMatch(/^I am/);
  });

  it('a full context ends the run with length', async () => {
    const result = await engine
      .complete('Once', { ignoreEndOfGeneration: true, temperature: 0 })
      .result();
    expect(result).toMatchObject({ finishReason: 'length' });
    expect(result.usage.promptTokens + result.usage.completionTokens).toBe(513);
  });

  it('a stop string ends the text before it', async () => {
    const result = await engine.chat(QUESTION, { temperature: 0, stop: [' language'] }).result();
    expect(result).toMatchObject({
      text: 'I am a tiny',
      finishReason: 'stop',
      stopString: ' language',
    });
  });

  it('log-probabilities: the sampled token of a greedy run is the first of the most likely', async () => {
    const [chunk] = await chunksOf(engine.chat(QUESTION, { ...GREEDY, logprobs: 3 }));
    const [entry] = chunk?.logprobs ?? [];
    expect(entry?.top).toHaveLength(3);
    expect(entry?.top[0]).toMatchObject({
      token: chunk?.tokens[0],
      text: 'I',
      logprob: entry?.logprob,
    });
    expect(entry?.top.map(({ logprob }) => logprob)).toEqual(
      entry?.top.map((t) => t.logprob).sort((x, y) => y - x),
    );
  });

  it('forward: the largest logit of the last row is the greedy token, and rows agree with the last', async () => {
    const tokens = await engine.tokenize('Once upon a', { addSpecial: true });
    const last = await engine.forward(tokens);
    const all = await engine.forward(tokens, { logits: 'all' });
    expect([last.nRows, last.logits.length]).toEqual([1, 2048]);
    expect([all.nRows, all.logits.length]).toEqual([tokens.length, tokens.length * 2048]);
    const greedy = await engine.complete(tokens, { temperature: 0, maxTokens: 1 }).result();
    expect(last.logits.indexOf(Math.max(...last.logits))).toBe(greedy.tokens[0]);
    expect(all.logits.subarray(-2048).indexOf(Math.max(...all.logits.subarray(-2048)))).toBe(
      greedy.tokens[0],
    );
  });

  it('text survives tokenize and detokenize; token texts join to it', async () => {
    const text = 'Héllo, wörld! 😀';
    const tokens = await engine.tokenize(text);
    expect(await engine.detokenize(tokens)).toBe(text);
    expect((await engine.tokenTexts(await engine.tokenize('plain words'))).join('')).toBe(
      'plain words',
    );
    expect(await engine.tokenize('<|im_end|>', { parseSpecial: true })).toHaveLength(1);
    expect((await engine.tokenize('<|im_end|>')).length).toBeGreaterThan(1);
  });

  it('stats tell where the time of the last run went', async () => {
    const session = engine.session();
    expect((await session.stats()).stages).toBeUndefined();
    const { usage, timings } = await session
      .complete('Once', { ...GREEDY, maxTokens: 20 })
      .result();
    const { stages } = await session.stats();
    expect(stages?.promptTokens).toBe(usage.promptTokens);
    const sum = Object.values(stages?.decode ?? {}).reduce((all, ms) => all + ms, 0);
    expect(Object.keys(stages?.decode ?? {})).toHaveLength(9);
    expect(sum).toBeGreaterThan(0);
    expect(sum).toBeLessThanOrEqual(timings.decodeMs + 1e-6);
    await session.close();
  });

  it('truncate forgets, and refuses more than there is', async () => {
    const session = engine.session();
    await session.complete('Once', GREEDY).result();
    await session.truncate(2);
    expect((await session.stats()).contextTokens).toBe(2);
    await expect(session.truncate(3)).rejects.toMatchObject({ code: 'BadOption' });
    await session.close();
  });

  it('a prompt that is too long is a ContextFullError; drop-oldest answers all the same', async () => {
    const long = Array.from({ length: 40 }, (_, i) => [
      { role: 'user', content: `Tell me about the number ${i} and the number after it.` },
      { role: 'assistant', content: 'It is a number.' },
    ]).flat();
    const messages = [...long, ...QUESTION];
    await expect(engine.chat(messages, GREEDY).result()).rejects.toMatchObject({
      code: 'ContextFull',
      details: { nCtx: 512 },
    });
    const result = await engine
      .chat(messages, { ...GREEDY, onContextFull: 'drop-oldest' })
      .result();
    expect(result.droppedMessages).toBeGreaterThan(0);
    expect(result.usage.promptTokens).toBeLessThan(512);
  });
});

describe('loading', () => {
  it.each([
    ['bytes', () => new Uint8Array(readFileSync(model))],
    ['a Blob', () => new Blob([readFileSync(model)])],
    ['a file URL', () => modelUrl],
  ])('from %s gives the same answer', async (_, source) => {
    const engine = await Engine.load(source(), { threads: 1 });
    expect((await engine.chat(QUESTION, GREEDY).result()).text).toMatch(/^I am/);
    await engine.dispose();
  });

  it('nCtx, cache format and activations are honoured', async () => {
    const options = {
      nCtx: 64,
      kvCache: { k: 'f16', v: 'f16' },
      activations: 'f32',
      threads: 1,
    } as const;
    const engine = await Engine.load(model, options);
    expect(engine.info).toMatchObject({
      nCtx: 64,
      memory: { kvBytesPerToken: 1344, kvCacheBytes: 64 * 1344 },
    });
    expect((await engine.chat(QUESTION, GREEDY).result()).text).toMatch(/^I am/);
    await engine.dispose();
  });

  it('two threads give the logits of one, pass after pass', async () => {
    // Overlaps of two threads are a matter of chance: one pass would show a race in one run of some. Before other tests
    // with threads, while V8 still runs its baseline tier's code, which is where a fault of Node 20 once showed.
    const [two, one] = [
      await Engine.load(model, { threads: 2 }),
      await Engine.load(model, { threads: 1 }),
    ];
    const wrong: number[] = [];
    for (let i = 0; i < 200; i++) {
      const tokens = Array.from({ length: 1 + (i % 5) }, (_, t) => 5 + i + 7 * t);
      const [a, b] = [await two.forward(tokens), await one.forward(tokens)];
      if (a.logits.some((logit, id) => logit !== b.logits[id])) wrong.push(i);
    }
    expect(wrong).toEqual([]);
    await two.dispose();
    await one.dispose();
  });

  it('two threads give the text of one', async () => {
    const engine = await Engine.load(model, { threads: 2 });
    expect(engine.info.runtime).toMatchObject({ module: 'simd-threads', threads: 2 });
    expect((await engine.chat(QUESTION, { temperature: 0 }).result()).text).toMatch(ANSWER);
    await engine.dispose();
  });

  it('with threads a run stops within a fraction of a second, and the session works on', async () => {
    const engine = await Engine.load(model, { threads: 2 });
    for (let i = 0; i < 20; i++) {
      const run = engine.complete('Once', { ignoreEndOfGeneration: true });
      setTimeout(() => run.abort(), i);
      expect((await run.result()).finishReason).toMatch(/aborted|length/);
    }
    expect((await engine.chat(QUESTION, GREEDY).result()).text).toMatch(/^I am/);
    await engine.dispose();
  });

  it.each([
    ['a file that is not there', '/nowhere/model.gguf', 'BadOption'],
    ['a folder', fileURLToPath(new URL('.', modelUrl)), 'BadOption'],
    ['a cut off file', readFileSync(model).subarray(0, 1_000_000), 'BadModel'],
    ['a damaged header', readFileSync(model).fill(255, 8, 16), 'BadModel'],
    ['another file', new Blob(['{"this": "is not a model"}']), 'BadModel'],
  ])('%s is a typed error', async (_, source, code) => {
    const error = await Engine.load(source as string).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(HeadlightError);
    expect(error).toMatchObject({ code });
  });

  it("more context than the model's is refused", async () => {
    await expect(Engine.load(model, { nCtx: 513 })).rejects.toMatchObject({ code: 'BadOption' });
  });

  it('a process ends by itself when its calls are done, without dispose', async () => {
    const { execFileSync } = await import('node:child_process');
    const program = `import { Engine } from '${packageEntry.href}';
      const engine = await Engine.load(${JSON.stringify(model)}, { threads: 2 });
      console.log((await engine.complete('Once', { maxTokens: 1 }).result()).finishReason);`;
    const args = ['--input-type=module', '-e', program];
    expect(execFileSync(process.execPath, args, { encoding: 'utf8', timeout: 30_000 }).trim()).toBe(
      'length',
    );
  });
});

describe('without an engine', () => {
  it('inspectModel tells what loading would take', async () => {
    const plan = await inspectModel(model, { nCtx: 100, kvCache: { v: 'f16' } });
    expect(plan).toMatchObject({ nCtx: 100, kvBytesPerToken: 6 * 2 * (24 * 4 + 32 * 2) });
    const engine = await Engine.load(model, { nCtx: 100, kvCache: { v: 'f16' }, threads: 1 });
    const { weightsBytes, kvCacheBytes, workspaceBytes } = engine.info.memory;
    expect(plan).toMatchObject({ weightsBytes, kvCacheBytes, workspaceBytes });
    await engine.dispose();
  });

  it('inspectModel tells the same of a split model, by its first file’s name', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'headlight-split-'));
    const bytes = readFileSync(model);
    const shards = splitGguf(bytes, 3);
    const names = shards.map((_, i) => path.join(folder, `x-0000${i + 1}-of-00003.gguf`));
    shards.forEach((shard, i) => {
      writeFileSync(names[i] ?? '', shard);
    });
    try {
      const { fileBytes, ...plan } = await inspectModel(names[0] ?? '', { nCtx: 100 });
      const { fileBytes: ofWhole, ...whole } = await inspectModel(bytes, { nCtx: 100 });
      expect(plan).toEqual(whole);
      expect(ofWhole).toBe(bytes.length);
      const lengths = shards.map(({ length }) => length);
      expect(fileBytes).toBe(lengths.reduce((a, b) => a + b));

      const engine = await Engine.load(names[0] ?? '', { nCtx: 100, threads: 1 });
      const { weightsBytes, kvCacheBytes, workspaceBytes } = engine.info.memory;
      expect(plan).toMatchObject({ weightsBytes, kvCacheBytes, workspaceBytes });
      expect((await engine.chat(QUESTION, GREEDY).result()).text).toMatch(ANSWER);
      await engine.dispose();
      await expect(inspectModel(names[1] ?? '')).rejects.toMatchObject({ code: 'BadModel' });
      await expect(inspectModel(shards[0] as Uint8Array)).rejects.toThrow(/split in 3 files/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('a file whose header lists more than it holds is refused before memory is taken', async () => {
    const bytes = readFileSync(model);
    const cut = bytes.subarray(0, bytes.length - 1);
    const details = { fileBytes: cut.length, neededBytes: bytes.length };
    for (const attempt of [() => Engine.load(cut, { threads: 1 }), () => inspectModel(cut)]) {
      await expect(attempt()).rejects.toMatchObject({ code: 'BadModel', details });
    }
  });

  it('a model without a tokenizer computes with token ids', async () => {
    const bytes = readFileSync(model);
    const bare = hideKey(bytes, 'tokenizer.ggml.model');
    const [full, ids] = await Promise.all([
      Engine.load(bytes, { threads: 1 }),
      Engine.load(bare, { threads: 1 }),
    ]);
    const tokens = await full.tokenize('Once upon a time', { addSpecial: true });
    const expected = await full.complete(tokens, GREEDY).result();
    const got = await ids.complete(tokens, GREEDY).result();
    expect(got).toMatchObject({ tokens: expected.tokens, text: '' });
    expect((await ids.forward(tokens)).logits).toEqual((await full.forward(tokens)).logits);
    await expect(ids.tokenize('x')).rejects.toMatchObject({ code: 'Unsupported' });
    await Promise.all([full.dispose(), ids.dispose()]);
  });

  it('attend: a single key gives its value, whatever the query', async () => {
    const rows = (n: number) => Float32Array.from({ length: n }, (_, i) => Math.sin(i));
    const options = {
      nQHeads: 4,
      nKvHeads: 2,
      dQk: 3,
      dV: 5,
      q: rows(12),
      k: rows(6),
      v: rows(10),
    };
    const { out, kernel } = await attend(options);
    const value = (head: number) => [...options.v.subarray(head * 5, head * 5 + 5)];
    expect([...out]).toEqual([...value(0), ...value(0), ...value(1), ...value(1)]);
    expect(kernel).toBe('decode');
  });
});
