// The command line as people and programs call it: a process of its own, over the built package.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { splitGguf } from '../gguf_edit.js';

const inProject = (name: string) => fileURLToPath(new URL(`../../../${name}`, import.meta.url));
const program = inProject('build/cli/main.js');
const model = inProject('examples/models/default-q8_0.gguf');
const stories = inProject('../shared/models/stories260K.gguf');
const folder = mkdtempSync(path.join(tmpdir(), 'headlight-cli-'));
afterAll(() => rmSync(folder, { recursive: true }));

if (!existsSync(program)) throw new Error('the command line is not built: run `npm run build`');

interface Output {
  stdout: string;
  stderr: string;
  status: number | null;
}

function headlight(...args: string[]): Output {
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, ...args], {
    encoding: 'utf8',
  });
  return { stdout, stderr, status };
}

function json(...args: string[]) {
  const { stdout, stderr, status } = headlight(...args, '--json');
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  return JSON.parse(stdout);
}

function file(name: string, text: string): string {
  const full = path.join(folder, name);
  writeFileSync(full, text);
  return full;
}

const QUESTION = file('question.json', '[{"role": "user", "content": "Who are you?"}]');
const GREEDY = ['--temperature', '0', '--max-tokens', '12'];

describe('layout', () => {
  const sizes = (preset: string, digits: number) =>
    json('layout', '--preset', preset)
      .rows.map(({ fileBytes }: { fileBytes: number }) => (fileBytes / 1e6).toFixed(digits))
      .join(' ');

  it('gives both tables of the head-bytes article to the printed digit', () => {
    expect(sizes('seedA1', 1)).toBe('71.0 65.5 60.0 54.5 65.5 60.0 65.3 59.5 53.8');
    expect(sizes('seedA2', 0)).toBe('185 227 270');
  });

  it('rows have label, layout, parameters, file and cache bytes; flags change every row', () => {
    const { rows } = json('layout', '--preset', 'llama70b', '--layers', '40', '--n-ctx', '8192');
    expect(rows).toHaveLength(3);
    expect(rows[1]).toMatchObject({
      label: 'GQA (as it is)',
      layout: { nLayers: 40, nQHeads: 64, nKvHeads: 8, dQk: 128, dV: 128 },
      kvBytesPerToken: 163_840,
      kvBytes: 163_840 * 8192,
    });
    const { rows: int8 } = json('layout', '--preset', 'llama70b', '--cache', 'int8');
    expect(int8[1].kvBytesPerToken).toBe(80 * 8 * 2 * (128 + 2));
  });

  it('counts a model from its header', () => {
    const { rows, runs } = json('layout', model, '--weights', 'q8_0', '--run');
    expect(runs).toHaveLength(1);
    expect(runs[0].decode.map(({ nKv }: { nKv: number }) => nKv)).toEqual([32, 128, 512, 1024]);
    for (const { ms } of runs[0].decode) expect(ms.low).toBeGreaterThan(0);
    expect(runs[0].kvBytesPerToken).toBe(rows[0].kvBytesPerToken * 2);
    expect(rows[0]).toMatchObject({ parameters: 2_810_304, layout: { dQk: 24, dV: 32 } });
  });

  it.each([
    [['--preset', 'nope'], /no preset 'nope'.*seedA1/],
    [[], /MODEL and --preset NAME/],
    [['--preset', 'seedA1', '--kv-heads', '3'], /nKvHeads is 3.*divisor of nQHeads = 8/],
    [['--preset', 'seedA1', '--weights', 'q9'], /weights.*q4_0/],
  ])('%j is refused with a remedy', (args, message) => {
    const { stdout, status } = headlight('layout', ...args, '--json');
    expect(status).toBe(1);
    expect(JSON.parse(stdout).error).toMatchObject({
      code: 'BadOption',
      message: expect.stringMatching(message),
    });
  });
});

describe('generate', () => {
  it('prints one JSON value with text, tokens, timings, runtime and memory', () => {
    const result = json('generate', model, '--chat', QUESTION, ...GREEDY, '--threads', '1');
    expect(result).toMatchObject({
      text: expect.stringMatching(/^I am a tiny language model/),
      finishReason: 'length',
      promptTokens: 16,
      runtime: { module: 'simd', threads: 1 },
    });
    expect(result.tokens).toHaveLength(12);
    for (const name of [
      'loadMs',
      'prefillMs',
      'prefillTokensPerSecond',
      'decodeMs',
      'decodeTokensPerSecond',
    ]) {
      expect(result.timings[name], name).toBeGreaterThan(0);
    }
    for (const name of ['weightsBytes', 'kvCacheBytes', 'workspaceBytes', 'wasmBytes']) {
      expect(result.memory[name], name).toBeGreaterThan(0);
    }
  });

  it('for people it streams the text to stdout and a summary to stderr', () => {
    const { stdout, stderr, status } = headlight('generate', model, '--chat', QUESTION, ...GREEDY);
    expect(stdout).toMatch(/^I am a tiny language model/);
    expect(stderr).toMatch(/\[length: 12 tokens, .* tokens\/s/);
    expect(status).toBe(0);
  });

  it('--tokens and --prompt with the same tokens give the same text', () => {
    const { tokens } = json('tokenize', model, '--text', 'Once upon a', '--add-special');
    const byTokens = json('generate', model, '--tokens', tokens.join(','), ...GREEDY);
    const byPrompt = json('generate', model, '--prompt', 'Once upon a', ...GREEDY);
    expect(byTokens.text).toBe(byPrompt.text);
    expect(byTokens.promptTokens).toBe(tokens.length);
  });

  it('--kv-cache int8 is planned, used and reported', () => {
    const cache = ['--n-ctx', '64', '--kv-cache', 'int8'];
    const bytes = 6 * 2 * (32 + 2 + 32 + 2);
    expect(json('info', model, ...cache)).toMatchObject({
      kvBytesPerToken: bytes,
      kvCacheBytes: 64 * bytes,
    });
    const result = json('generate', model, '--prompt', 'Once', '--max-tokens', '3', ...cache);
    expect(result).toMatchObject({ memory: { kvCacheBytes: 64 * bytes } });
  });

  it('--evict keeps the first keys and the last ones: the text becomes another, the cache smaller', () => {
    const content = 'My name is Nora. I keep a green kite in the attic. What colour is my kite?';
    const story = ['--chat', file('kite.json', JSON.stringify([{ role: 'user', content }]))];
    const go = (...flags: string[]) =>
      json('generate', model, ...story, '--temperature', '0', '--max-tokens', '24', ...flags);
    const whole = go();
    const few = go('--evict', 'sinks=0,window=8');
    expect(few.memory.kvCacheBytes).toBeLessThan(whole.memory.kvCacheBytes);
    expect(few.text).not.toBe(whole.text);
    const sinks = go('--evict', 'sinks=4,window=8');
    expect(sinks.text).not.toBe(few.text);
    expect(go('--evict', 'sinks=4,window=300').text).toBe(whole.text);
    expect(go('--evict', 'snapkv=4').text).not.toBe(whole.text);
  });

  it('every option reaches the engine', () => {
    const options = [
      '--n-ctx',
      '64',
      '--kv-cache',
      'f16',
      '--activations',
      'f32',
      '--threads',
      '2',
      '--seed',
      '7',
    ];
    const sampling = [
      '--temperature',
      '1.5',
      '--top-k',
      '5',
      '--top-p',
      '0.9',
      '--min-p',
      '0.1',
      '--max-tokens',
      '5',
    ];
    const result = json('generate', model, '--prompt', 'Once', ...options, ...sampling);
    expect(result).toMatchObject({
      seed: 7,
      runtime: { module: 'simd-threads', threads: 2 },
      memory: { kvCacheBytes: 64 * 1344 },
    });
    expect(json('generate', model, '--prompt', 'Once', ...options, ...sampling).text).toBe(
      result.text,
    );
  });

  it('--module relaxed gives the greedy text of the plain module', () => {
    const relaxed = json('generate', model, '--chat', QUESTION, ...GREEDY, '--module', 'relaxed');
    expect(relaxed.runtime.module).toMatch(/^relaxed/);
    expect(relaxed.text).toBe(
      json('generate', model, '--chat', QUESTION, ...GREEDY, '--module', 'simd').text,
    );
  });

  it.skipIf(!existsSync(stories))(
    'stories260K (needs ../shared): greedy text equals llama.cpp’s, 96 tokens',
    () => {
      // The program that wrote the file ended it with two line ends of its own.
      const wanted = readFileSync(
        inProject('../shared/models/greedy-stories260K.txt'),
        'utf8',
      ).replace(/\n+$/, '');
      const prompt = 'Once upon a time';
      const { text, tokens } = json(
        'generate',
        stories,
        '--prompt',
        prompt,
        '--temperature',
        '0',
        '--max-tokens',
        '96',
      );
      expect(` ${prompt}${text}`).toBe(wanted);
      expect(tokens).toHaveLength(96);
    },
  );

  it('Ctrl-C ends it with the text so far and code 130', async () => {
    const args = [
      'generate',
      model,
      '--prompt',
      'Once',
      '--temperature',
      '5',
      '--top-k',
      '0',
      '--n-ctx',
      '512',
    ];
    const child = spawn(process.execPath, [program, ...args]);
    let text = '';
    child.stdout.on('data', (chunk) => {
      text += chunk;
    });
    child.stdout.once('data', () => child.kill('SIGINT'));
    const code = await new Promise((resolve) => child.on('close', resolve));
    expect(text.length).toBeGreaterThan(0);
    expect(code).toBe(130);
  });
});

describe('logits, tokenize, info', () => {
  it('logits: one array, or one row a position with --all', () => {
    const last = json('logits', model, '--tokens', '1,5,9');
    const all = json('logits', model, '--tokens', '1,5,9', '--all');
    expect([last.vocabSize, last.logits.length]).toEqual([2048, 2048]);
    expect(all.logits.map((row: number[]) => row.length)).toEqual([2048, 2048, 2048]);
    const largest = (row: number[]) => row.indexOf(Math.max(...row));
    expect(largest(all.logits[2])).toBe(largest(last.logits));
  });

  it('tokenize: ids and their texts', () => {
    const { tokens, pieces } = json('tokenize', model, '--text', 'Hello there');
    expect(pieces.join('')).toBe('Hello there');
    expect(tokens).toHaveLength(pieces.length);
    expect(json('tokenize', model, '--text', 'Hello there', '--add-special')).toMatchObject({
      tokens: [1, ...tokens],
    });
  });

  it('info: architecture, heads of each layer, bytes', () => {
    const plan = json('info', model, '--n-ctx', '100');
    expect(plan).toMatchObject({ nCtx: 100, kvBytesPerToken: 2688, kvCacheBytes: 268_800 });
    expect(plan.model).toMatchObject({
      architecture: 'llama',
      layers: Array(6).fill({ nQHeads: 8, nKvHeads: 2, dQk: 24, dV: 32 }),
    });
  });

  it('info of a split model, by its first file, is that of the whole', () => {
    const names = splitGguf(readFileSync(model), 2).map((shard, i) => {
      const full = path.join(folder, `split-0000${i + 1}-of-00002.gguf`);
      writeFileSync(full, shard);
      return full;
    });
    const { fileBytes, ...plan } = json('info', names[0] ?? '', '--n-ctx', '100');
    const { fileBytes: ofWhole, ...whole } = json('info', model, '--n-ctx', '100');
    expect(plan).toEqual(whole);
    expect(fileBytes).toBeGreaterThan(ofWhole);
    expect(headlight('info', names[1] ?? '').stdout).toMatch(/file 2 of 2/);
  });

  it('programs that read from a pipe get JSON without asking', () => {
    for (const args of [
      ['info', model],
      ['tokenize', model, '--text', 'a'],
      ['logits', model, '--tokens', '1'],
    ]) {
      expect(() => JSON.parse(headlight(...args).stdout)).not.toThrow();
    }
  });
});

describe('mistakes', () => {
  const badJson = file('bad.json', '[{"role": ');
  const noMessages = file('object.json', '{}');
  it.each([
    ['an unknown flag', ['generate', model, '--promt', 'a'], /no --promt\. Known: --prompt/],
    ['an unknown command', ['run', model], /no command 'run'/],
    ['no model', ['generate', '--prompt', 'a'], /MODEL is missing/],
    ['two models', ['info', model, model], /too much/],
    ['nothing to continue', ['generate', model], /--prompt TEXT/],
    ['two prompts', ['generate', model, '--prompt', 'a', '--tokens', '1'], /exclude each other/],
    ['tokens that are none', ['logits', model, '--tokens', '1,x'], /separated by commas/],
    [
      'a number that is none',
      ['generate', model, '--prompt', 'a', '--seed', 'x'],
      /--seed x: a number/,
    ],
    ['messages that are not JSON', ['generate', model, '--chat', badJson], /bad\.json is not JSON/],
    [
      'messages that are not there',
      ['generate', model, '--chat', '/nowhere.json'],
      /nowhere\.json/,
    ],
    ['messages that are none', ['generate', model, '--chat', noMessages], /messages/],
    [
      'an option out of range',
      ['generate', model, '--prompt', 'a', '--top-p', '2'],
      /topP is 2; it must be/,
    ],
    ['a model that is not there', ['info', '/nowhere.gguf'], /nowhere\.gguf could not be opened/],
    ['a model that is none', ['info', badJson], /not a GGUF file/],
    ['a token that is none', ['logits', model, '--tokens', '5000'], /2048/],
    ['more context than there is', ['generate', model, '--prompt', 'a', '--n-ctx', '1000'], /512/],
  ])(
    '%s: with --json an error object and code 1, for people a message and not 0',
    (_, args, message) => {
      const asJson = headlight(...args, '--json');
      expect(asJson.status).toBe(1);
      const { error } = JSON.parse(asJson.stdout);
      expect(error).toMatchObject({
        code: expect.any(String),
        message: expect.stringMatching(message),
        details: expect.any(Object),
      });
      if (args[0] !== 'generate') return;
      const { stdout, stderr, status } = headlight(...args);
      expect([stdout, status]).toEqual(['', expect.toSatisfy((code) => code === 1 || code === 2)]);
      expect(stderr).toMatch(message);
    },
  );

  it('a call without a command names the commands', () => {
    const { stderr, status } = headlight();
    expect(stderr).toMatch(/command is missing: generate, logits/);
    expect(status).toBe(2);
  });

  it('help lists every command', () => {
    const { stdout, status } = headlight('help');
    for (const name of ['generate', 'logits', 'tokenize', 'info', '--kv-cache'])
      expect(stdout).toContain(name);
    expect(status).toBe(0);
  });

  it('help of one command has its flags, apart from what they are for', () => {
    const { stdout, status } = headlight('lab', '--help');
    expect(status).toBe(0);
    expect(stdout).toContain('--prune');
    expect(stdout).not.toContain('tokenize:');
    const flags = stdout.split('\n').filter((line) => line.startsWith('  --'));
    expect(flags.length).toBeGreaterThan(15);
    for (const line of flags) expect(line).toMatch(/^ {2}--\S+( \S+)? {2,}\S/);
  });
});
