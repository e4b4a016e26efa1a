// Forks, saved sessions and restarts over a fake module: which session holds what, in which order, and what stays when a
// step fails.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import type { LoadOptions } from '../../../web/runtime/src/types.js';
import { textTokens } from './fake_module.js';
import { FAKE_FILE, fakePlatform, loadFake } from './fake_platform.js';

const AB = textTokens('ab');

describe('sessions', () => {
  it('fork() waits for the runs before it, and the fork holds what they left', async () => {
    const engine = await loadFake(fakePlatform({ tokens: AB }));
    const session = engine.session();
    const run = session.complete([5, 6]);
    const fork = await session.fork();
    expect((await run.result()).tokens).toEqual(AB);
    expect((await fork.stats()).contextTokens).toBe(4);
    await fork.truncate(1);
    expect((await session.stats()).contextTokens).toBe(4);
  });

  it('a fork that fails leaves no session behind', async () => {
    const copyFrom = { code: 'OutOfMemory', message: 'no', details: {} };
    const platform = fakePlatform({ errors: { copyFrom } });
    const engine = await loadFake(platform);
    await expect(engine.session().fork()).rejects.toMatchObject({ code: 'OutOfMemory' });
    expect(platform.module().log.deleted.filter((what) => what === 'session')).toHaveLength(1);
  });

  it('a session without memory is told with what it needs and what there is', async () => {
    const errors: Record<
      string,
      { code: string; message: string; details: Record<string, string> }
    > = {};
    const engine = await loadFake(fakePlatform({ errors }));
    errors.createSession = { code: 'OutOfMemory', message: 'no', details: {} };
    await expect(engine.session().complete([5]).result()).rejects.toMatchObject({
      code: 'OutOfMemory',
      details: { neededBytes: 500, hadBytes: 1024 },
    });
    delete errors.createSession;
    expect((await engine.session().complete([5]).result()).text).toBe('Hello');
  });

  it('what was saved is restored into a session of its own', async () => {
    const engine = await loadFake(fakePlatform({ tokens: AB }));
    const session = engine.session();
    await session.complete([5, 6]).result();
    const saved = await session.save();
    expect([...saved]).toHaveLength(4);
    const restored = await engine.restore(saved);
    expect((await restored.stats()).contextTokens).toBe(4);
    // Asking did not take the caller's bytes away.
    expect(saved).toHaveLength(4);
    await session.close();
    expect((await restored.stats()).contextTokens).toBe(4);
  });

  it('bytes that are refused leave no session behind; what is no bytes is a BadOptionError', async () => {
    const restore = { code: 'BadOption', message: 'other', details: { differs: 'model' } };
    const platform = fakePlatform({ errors: { restore } });
    const engine = await loadFake(platform);
    await expect(engine.restore(new Uint8Array(3))).rejects.toMatchObject({
      details: { differs: 'model' },
    });
    expect(platform.module().log.deleted.filter((what) => what === 'session')).toHaveLength(1);
    await expect(engine.restore('x' as never)).rejects.toMatchObject({ code: 'BadOption' });
  });
});

describe('restart', () => {
  it('after a crash: another worker, the same options, and sessions that begin empty', async () => {
    const platform = fakePlatform({ tokens: AB });
    const engine = await loadFake(platform, { nCtx: 32 });
    const session = engine.session();
    await session.complete([5]).result();
    platform.workers[0]?.crash('injected');
    await expect(engine.tokenize('a')).rejects.toMatchObject({ code: 'WorkerLost' });
    await engine.restart();
    expect(platform.workers).toHaveLength(2);
    expect(engine.info.nCtx).toBe(32);
    expect((await session.stats()).contextTokens).toBe(0);
    expect((await session.complete([5]).result()).tokens).toEqual(AB);
    await engine.restart({ nCtx: 16 });
    expect(engine.info.nCtx).toBe(16);
    expect(platform.workers.map(({ terminated }) => terminated)).toEqual([true, true, false]);
  });

  it('ends a worker that still runs, and two at once are one', async () => {
    const platform = fakePlatform({ tokens: textTokens('x'.repeat(5000)) });
    const engine = await loadFake(platform);
    const pending = engine.complete([5]).result();
    pending.catch(() => {});
    const restarts = [engine.restart({ nCtx: 100 }), engine.restart()];
    const refused = expect(engine.restart({ threads: 1 })).rejects.toMatchObject({
      code: 'BadOption',
      details: { option: 'threads' },
    });
    await Promise.all([...restarts, refused]);
    await expect(pending).rejects.toMatchObject({ code: 'Aborted' });
    expect(platform.workers).toHaveLength(2);
  });

  it('that fails leaves the engine without a worker, and can be tried again', async () => {
    const platform = fakePlatform();
    const engine = await loadFake(platform);
    const stop = new AbortController();
    const changes = { signal: stop.signal, onProgress: () => stop.abort() };
    await expect(engine.restart(changes)).rejects.toMatchObject({ code: 'Aborted' });
    await expect(engine.tokenize('a')).rejects.toMatchObject({ code: 'WorkerLost' });
    await engine.restart();
    expect((await engine.complete([5]).result()).text).toBe('Hello');
    await engine.dispose();
    await expect(engine.restart()).rejects.toThrow(/disposed/);
  });

  it('options that cannot be had, or a signal that has fired, cost nothing', async () => {
    const platform = fakePlatform({ tokens: AB });
    const engine = await loadFake(platform);
    await engine.complete([5, 6]).result();
    const impossible: LoadOptions[] = [
      { nCtx: 0 },
      { threads: 2 },
      { module: 'relaxed' },
      { sha256: ['0'.repeat(64), '1'.repeat(64)] },
    ];
    for (const changes of impossible)
      await expect(engine.restart(changes)).rejects.toMatchObject({ code: 'BadOption' });
    await expect(engine.restart({ signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'Aborted',
    });
    expect((await engine.stats()).contextTokens).toBe(4);
    expect(platform.workers).toHaveLength(1);
  });

  it.each([
    ['bytes', (bytes: Uint8Array) => bytes],
    ['shards', (bytes: Uint8Array) => [bytes]],
  ])('of %s that nobody holds any more is refused, and costs nothing', async (_, sourceOf) => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const platform = fakePlatform({ tokens: AB });
    const load = async () => {
      const bytes = FAKE_FILE.slice();
      return { engine: await loadFake(platform, {}, sourceOf(bytes)), held: new WeakRef(bytes) };
    };
    const { engine, held } = await load();
    const isHeld = () => held.deref() !== undefined;
    await engine.complete([5, 6]).result();
    while (isHeld()) {
      await new Promise((resolve) => setImmediate(resolve));
      collect();
    }
    await expect(engine.restart()).rejects.toThrow(/no longer in memory/);
    expect((await engine.stats()).contextTokens).toBe(4);
  });

  it('is ended by dispose(), which then says so', async () => {
    const platform = fakePlatform();
    const engine = await loadFake(platform);
    const phases: string[] = [];
    const restarting = engine.restart({ onProgress: ({ phase }) => phases.push(phase) });
    const told = expect(restarting).rejects.toMatchObject({
      code: 'Aborted',
      message: expect.stringMatching(/disposed/),
    });
    while (!phases.includes('module')) await new Promise((resolve) => setImmediate(resolve));
    await engine.dispose();
    expect(phases).not.toContain('ready');
    expect(platform.workers).toHaveLength(2);
    expect(platform.workers.map(({ terminated }) => terminated)).toEqual([true, true]);
    await told;
    await expect(engine.restart()).rejects.toThrow(/disposed/);
  });

  it('dispose() after a crash: later calls say that it was disposed', async () => {
    const platform = fakePlatform();
    const engine = await loadFake(platform);
    platform.workers[0]?.crash('injected');
    await engine.dispose();
    await expect(engine.tokenize('a')).rejects.toThrow(/disposed/);
    await expect(engine.restart()).rejects.toThrow(/disposed/);
  });

  it('a session can be closed whatever became of the worker', async () => {
    const platform = fakePlatform();
    const engine = await loadFake(platform);
    const [first, second, third] = [engine.session(), engine.session(), engine.session()];
    for (const session of [first, second, third]) await session.complete([5]).result();
    const closing = first.close();
    platform.workers[0]?.crash('injected');
    await closing;
    await second.close();
    await engine.restart();
    await expect(second.stats()).rejects.toThrow(/closed/);
    await engine.dispose();
    await third.close();
  });

  it('takes the same bytes again while somebody holds them', async () => {
    const platform = fakePlatform();
    const engine = await loadFake(platform, {}, [FAKE_FILE]);
    await engine.restart();
    expect(platform.workers).toHaveLength(2);
  });
});
