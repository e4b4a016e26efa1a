// A device that fails, in Node with the real modules: every pending call ends with a typed error, and restart() works.
import { rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import type * as Headlight from '../../../web/runtime/src/index.js';
import type { LoadOptions } from '../../../web/runtime/src/types.js';
import { type BrokenPackage, breakPackage, FAULTS } from './broken_package.js';
import { randomModel, SMALL } from './random_model.js';
import { chunksOf } from './runs.js';

const model = fileURLToPath(new URL('../../../examples/models/default-q8_0.gguf', import.meta.url));
const GREEDY = { temperature: 0, maxTokens: 12, ignoreEndOfGeneration: true };
const PROMPT = [1, 5, 9, 13];

let broken: BrokenPackage | undefined;
afterEach(() => {
  broken?.remove();
  broken = undefined;
});

async function load(fault: keyof typeof FAULTS, options: LoadOptions, file = model) {
  broken = breakPackage(FAULTS[fault]);
  const entry = pathToFileURL(path.join(broken.folder, 'node.js')).href;
  const { Engine } = (await import(entry)) as typeof Headlight;
  return Engine.load(file, options);
}

const outcomes = (calls: Promise<unknown>[]) =>
  Promise.all(
    calls.map((call) =>
      call.then(
        () => 'done',
        (error) => error.code as string,
      ),
    ),
  );

describe('faults in Node', () => {
  it('a trap in a thread of the pool rejects every pending call, and restart() gives the same tokens', async () => {
    const engine = await load('threadTraps', { threads: 2, module: 'simd' });
    // On a busy machine the thread may get no task in a few tokens.
    const long = { ...GREEDY, maxTokens: 10_000 };
    const run = engine.complete(PROMPT, long);
    const session = engine.session();
    const calls = [
      run.result(),
      chunksOf(run),
      engine.complete(PROMPT, GREEDY).result(),
      session.complete(PROMPT, long).result(),
      engine.forward(PROMPT),
      engine.stats(),
    ];
    expect(new Set(await outcomes(calls.slice(0, 5)))).toEqual(new Set(['WorkerLost']));
    await calls[5]?.catch(() => {});
    expect(() => engine.complete(PROMPT)).toThrow(
      /(thread of its pool has failed|worker was lost: .*injected)\. engine\.restart\(\)/,
    );

    broken?.mend();
    await engine.restart();
    expect(engine.info.runtime).toMatchObject({ module: 'simd-threads', threads: 2 });
    const again = await engine.complete(PROMPT, GREEDY).result();
    expect(await session.complete(PROMPT, GREEDY).result()).toMatchObject({ tokens: again.tokens });
    await engine.restart({ threads: 1 });
    expect(engine.info.runtime.threads).toBe(1);
    expect(await engine.complete(PROMPT, GREEDY).result()).toMatchObject({ tokens: again.tokens });
    await engine.dispose();
    await expect(engine.restart()).rejects.toMatchObject({ code: 'WorkerLost' });
  });

  it('a worker that dies rejects every pending call, and restart() works again and again', async () => {
    const engine = await load('workerDies', { threads: 1, module: 'simd' });
    for (let i = 0; i < 2; i++) {
      const endless = async () => {
        for (;;) await engine.complete(PROMPT, { ignoreEndOfGeneration: true }).result();
      };
      await expect(endless()).rejects.toMatchObject({
        code: 'WorkerLost',
        message: expect.stringMatching(/injected.*\. engine\.restart\(\)/s),
      });
      await expect(engine.tokenize('a')).rejects.toMatchObject({ code: 'WorkerLost' });
      if (i === 1) broken?.mend();
      await engine.restart();
    }
    expect((await engine.complete(PROMPT, GREEDY).result()).tokens).toHaveLength(12);
    await engine.dispose();
  });

  it('threads that do not start are an error where they were asked for', async () => {
    const error = await load('threadsDoNotStart', { threads: 2, module: 'simd' }).catch((e) => e);
    expect(error).toMatchObject({ code: 'WorkerLost' });
  });

  it('a browser that hangs in making threads gets another try, and the reasons say so', async () => {
    const loading = load('makingThreadsHangs', { threads: 2, module: 'simd' });
    const mended = setTimeout(() => broken?.mend(), 2000);
    const engine = await loading;
    clearTimeout(mended);
    expect(engine.info.runtime).toMatchObject({ module: 'simd-threads', threads: 2 });
    expect(engine.info.runtime.reasons).toContain(
      'not simd-threads with 2 thread(s): the browser hung in making the 1 worker(s) of the thread pool',
    );
    expect((await engine.complete(PROMPT, GREEDY).result()).tokens).toHaveLength(12);
    await engine.dispose();
  });

  it('one that always hangs there is an error where threads were asked for', async () => {
    await expect(load('makingThreadsHangs', { threads: 2, module: 'simd' })).rejects.toMatchObject({
      code: 'WorkerLost',
      message: expect.stringMatching(/(the browser hung in making .*){3}/),
    });
  });

  it('memory that does not grow is an OutOfMemoryError with what is needed and what is there', async () => {
    const large = await randomModel('large-cache', SMALL);
    const options = { module: 'simd', nCtx: SMALL.ctx } as const;
    for (const threads of [1, 2]) {
      const error = await load('memoryDoesNotGrow', { ...options, threads }, large).catch((e) => e);
      expect(error).toMatchObject({ code: 'OutOfMemory' });
      expect(error.details.neededBytes).toBeGreaterThan(16 << 20);
      expect(error.details.hadBytes).toBe(16 << 20);
      broken?.remove();
    }
    broken = undefined;
    rmSync(large);
  });

  it('a session without memory is an OutOfMemoryError, and those that are there go on', async () => {
    const large = await randomModel('large-cache', SMALL);
    const options = { threads: 1, module: 'simd', nCtx: SMALL.ctx } as const;
    const engine = await load('memoryGrowsOnce', options, large);
    rmSync(large);
    const first = engine.session();
    await expect(first.complete(PROMPT, GREEDY).result()).rejects.toMatchObject({
      code: 'OutOfMemory',
      details: {
        neededBytes: engine.info.memory.kvCacheBytes + engine.info.memory.workspaceBytes,
        hadBytes: engine.info.memory.wasmBytes,
      },
    });
    expect((await engine.complete(PROMPT, GREEDY).result()).tokens).toHaveLength(12);
    await engine.dispose();
  });
});
