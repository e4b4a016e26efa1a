// Stopping and failing of calls, over a fake module: nothing waits for ever, nothing goes on unseen.
import { describe, expect, it, vi } from 'vitest';
import { RunningHeadLab, startOn } from '../../../web/runtime/src/lab/head_lab.js';
import { textTokens } from './fake_module.js';
import { fakePlatform, loadFake } from './fake_platform.js';
import { chunksOf, settle } from './runs.js';

const USER = [{ role: 'user', content: 'Hi' }];

describe('stopping', () => {
  const endless = () => fakePlatform({ tokens: textTokens('x'.repeat(5000)) });

  it('abort() ends the run with the text so far, and the next call works', async () => {
    const engine = await loadFake(endless());
    const run = engine.complete([5]);
    let n = 0;
    for await (const _ of run) if (++n === 3) run.abort();
    const result = await run.result();
    expect(result.finishReason).toBe('aborted');
    expect(result.text.length).toBeGreaterThanOrEqual(3);
    expect(result.text.length).toBeLessThan(5000);
    expect((await engine.complete([5], { maxTokens: 2 }).result()).text).toBe('xx');
  });

  it('an AbortSignal does the same', async () => {
    const engine = await loadFake(endless());
    const abort = new AbortController();
    const run = engine.complete([5], { signal: abort.signal });
    setImmediate(() => abort.abort());
    expect((await run.result()).finishReason).toBe('aborted');
  });

  it('a signal that has fired before gives an empty result', async () => {
    const platform = endless();
    const engine = await loadFake(platform);
    const result = await engine.complete([5], { signal: AbortSignal.abort(), seed: 9 }).result();
    expect(result).toMatchObject({ text: '', tokens: [], finishReason: 'aborted', seed: 9 });
  });

  it('leaving the loop frees the place in the queue', async () => {
    const engine = await loadFake(endless());
    const run = engine.complete([5]);
    for await (const _ of run) break;
    const next = await engine.complete([6], { maxTokens: 1 }).result();
    expect(next.text).toBe('x');
    expect((await run.result()).finishReason).toBe('aborted');
  });

  it('a run that is stopped while it waits ends at once and is never begun', async () => {
    const platform = endless();
    const engine = await loadFake(platform);
    const first = engine.complete([5]);
    const second = engine.complete([6]);
    second.abort();
    expect(await second.result()).toMatchObject({ finishReason: 'aborted', text: '' });
    first.abort();
    await first.result();
    expect(platform.module().log.begun).toEqual([[5]]);
  });

  it('an aborted forward rejects with AbortError while it waits', async () => {
    const engine = await loadFake(endless());
    const run = engine.complete([5]);
    const abort = new AbortController();
    const trace = engine.forward([5], { signal: abort.signal });
    abort.abort();
    await expect(trace).rejects.toMatchObject({ code: 'Aborted', name: 'AbortError' });
    run.abort();
  });

  it('closing a session ends its runs and frees its memory', async () => {
    const platform = endless();
    const engine = await loadFake(platform);
    const session = engine.session();
    const runs = [session.complete([5]), session.complete([6])];
    await settle();
    await session.close();
    expect(await Promise.all(runs.map(async (run) => (await run.result()).finishReason))).toEqual([
      'aborted',
      'aborted',
    ]);
    expect(platform.module().log.deleted.filter((what) => what === 'session')).toHaveLength(1);
    expect(() => session.complete([5])).toThrow(/closed/);
  });
});

describe('failing', () => {
  const BEGIN_ERROR = {
    code: 'BadOption',
    message: 'topK is no good',
    details: { option: 'topK' },
  };

  it('an error reaches the iterator and the result with class, code and details', async () => {
    const engine = await loadFake(fakePlatform({ errors: { begin: BEGIN_ERROR } }));
    const run = engine.complete([5]);
    await expect(chunksOf(run)).rejects.toMatchObject({
      name: 'BadOptionError',
      code: 'BadOption',
      details: { option: 'topK' },
    });
    await expect(run.result()).rejects.toMatchObject({ code: 'BadOption' });
  });

  it('an error is not reported as unhandled when only one of the two is used', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    const engine = await loadFake(fakePlatform({ errors: { begin: BEGIN_ERROR } }));
    await expect(chunksOf(engine.complete([5]))).rejects.toThrow();
    await expect(engine.complete([5]).result()).rejects.toThrow();
    engine.complete([5]);
    await settle();
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it('a failed run leaves the queue usable', async () => {
    const errors: Record<
      string,
      { code: string; message: string; details: Record<string, string> }
    > = { begin: BEGIN_ERROR };
    const engine = await loadFake(fakePlatform({ errors }));
    await expect(engine.complete([5]).result()).rejects.toThrow();
    delete errors.begin;
    expect((await engine.complete([5]).result()).text).toBe('Hello');
  });

  it('a crash of the worker rejects everything under way with WorkerLostError, and later calls throw it', async () => {
    const platform = fakePlatform({ tokens: textTokens('x'.repeat(5000)) });
    const engine = await loadFake(platform);
    const run = engine.complete([5]);
    const waiting = [
      chunksOf(run),
      run.result(),
      engine.complete([6]).result(),
      engine.tokenize('a'),
    ];
    const settled = Promise.allSettled(waiting);
    platform.workers[0]?.crash('out of memory');
    for (const outcome of await settled) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'WorkerLost' } });
    }
    expect(() => engine.complete([5])).toThrow(
      'The worker was lost: out of memory. engine.restart() loads the model again.',
    );
    await expect(engine.tokenize('a')).rejects.toMatchObject({ code: 'WorkerLost' });
  });

  it('a lab whose worker is lost says how to get another', async () => {
    const platform = fakePlatform();
    const lab = await startOn(platform, {}, (...parts) => new RunningHeadLab(...parts));
    const slopes = lab.alibiSlopes(2);
    platform.workers[0]?.crash('out of memory');
    await expect(slopes).rejects.toThrow(
      'The worker was lost: out of memory. HeadLab.start() starts another.',
    );
  });

  it('a trap in the module rejects everything with WorkerLostError', async () => {
    const onAdvance = () => {
      throw new WebAssembly.RuntimeError('unreachable');
    };
    const engine = await loadFake(fakePlatform({ onAdvance }));
    const runs = [engine.complete([5]), engine.complete([6])];
    for (const run of runs)
      await expect(run.result()).rejects.toMatchObject({ code: 'WorkerLost' });
    expect(() => engine.complete([5])).toThrow(/unreachable/);
  });

  it('dispose() ends the worker, rejects what is under way with AbortedError, and later calls throw', async () => {
    const platform = fakePlatform({ tokens: textTokens('x'.repeat(5000)) });
    const engine = await loadFake(platform);
    const session = engine.session();
    const pending = Promise.allSettled([engine.complete([5]).result(), engine.tokenize('a')]);
    await engine.dispose();
    for (const outcome of await pending)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'Aborted' } });
    expect(platform.workers[0]?.terminated).toBe(true);
    expect(() => engine.complete([5])).toThrow(/disposed/);
    expect(() => engine.session()).toThrow(/disposed/);
    expect(() => session.complete([5])).toThrow(/disposed/);
    await expect(engine.tokenize('a')).rejects.toThrow(/disposed/);
    await engine.dispose();
  });

  it('an argument that cannot be sent is a BadOptionError', async () => {
    const engine = await loadFake(fakePlatform());
    const run = engine.chat(USER, { tools: [() => 1] });
    await expect(run.result()).rejects.toMatchObject({ code: 'BadOption' });
    expect((await engine.complete([5]).result()).text).toBe('Hello');
  });
});

it('a load that is aborted between two modules starts no further worker', async () => {
  const controller = new AbortController();
  const platform = fakePlatform(
    {},
    {
      features: { sharedMemory: true, crossOriginIsolated: true },
      factories: { 'simd-threads': async () => Promise.reject(new Error('no threads')) },
    },
  );
  const { startWorker } = platform;
  platform.startWorker = () => {
    const endpoint = startWorker();
    const terminate = async () => {
      controller.abort();
      await endpoint.terminate();
    };
    return { ...endpoint, terminate };
  };
  const loading = loadFake(platform, { signal: controller.signal });
  await expect(loading).rejects.toMatchObject({ code: 'Aborted' });
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(platform.workers.map(({ terminated }) => terminated)).toEqual([true]);
});
