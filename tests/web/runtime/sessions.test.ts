// Forks, saved sessions and restarts over a fake module: which session holds what, in which order, and what stays when a
// step fails.
import { describe, expect, it } from 'vitest';
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
    await Promise.all([engine.restart(), engine.restart()]);
    await expect(pending).rejects.toMatchObject({ code: 'Aborted' });
    expect(platform.workers).toHaveLength(2);
  });

  it('that fails leaves the engine without a worker, and can be tried again', async () => {
    const platform = fakePlatform();
    const engine = await loadFake(platform);
    await expect(engine.restart({ nCtx: 0 })).rejects.toMatchObject({ code: 'BadOption' });
    await expect(engine.tokenize('a')).rejects.toMatchObject({ code: 'WorkerLost' });
    await engine.restart();
    expect((await engine.complete([5]).result()).text).toBe('Hello');
    await engine.dispose();
    await expect(engine.restart()).rejects.toThrow(/disposed/);
  });

  it('takes the same bytes again while somebody holds them', async () => {
    const platform = fakePlatform();
    const engine = await loadFake(platform, {}, [FAKE_FILE]);
    await engine.restart();
    expect(platform.workers).toHaveLength(2);
  });
});
