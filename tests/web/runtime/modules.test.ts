// Which modules are tried, in which order, and what becomes of those that fail.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { chooseModules, type Features } from '../../../web/runtime/src/modules.js';
import type { FakeModule } from './fake_module.js';
import { FAKE_FILE, fakePlatform, loadFake } from './fake_platform.js';

const ALL: Features = {
  simd: true,
  relaxedSimd: true,
  sharedMemory: true,
  noSharedMemoryReason: '',
  crossOriginIsolated: true,
  cores: 8,
};
const ALONE = {
  sharedMemory: false,
  noSharedMemoryReason: 'not isolated',
  crossOriginIsolated: false,
};
const AUTO = { module: 'auto', threads: undefined } as const;

describe('chooseModules', () => {
  it.each([
    ['everything', {}, AUTO, 'relaxed-threads:4 simd-threads:4 relaxed:1 simd:1'],
    ['no relaxed SIMD', { relaxedSimd: false }, AUTO, 'simd-threads:4 simd:1'],
    ['not isolated', ALONE, AUTO, 'relaxed:1 simd:1'],
    ['two cores', { cores: 2 }, AUTO, 'relaxed:1 simd:1'],
    ['many cores', { cores: 64 }, AUTO, 'relaxed-threads:8 simd-threads:8 relaxed:1 simd:1'],
    ['threads: 2', {}, { module: 'auto', threads: 2 }, 'relaxed-threads:2 simd-threads:2'],
    ['threads: 1', {}, { module: 'auto', threads: 1 }, 'relaxed:1 simd:1'],
    ['threads: 1, not isolated', ALONE, { module: 'auto', threads: 1 }, 'relaxed:1 simd:1'],
    ['module: simd', {}, { module: 'simd', threads: undefined }, 'simd-threads:4 simd:1'],
    ['module: relaxed', {}, { module: 'relaxed', threads: 1 }, 'relaxed:1'],
  ] as const)('%s', (_, changes, wishes, expected) => {
    const { candidates, reasons } = chooseModules({ ...ALL, ...changes }, wishes);
    expect(candidates.map(({ name, threads }) => `${name}:${threads}`).join(' ')).toBe(expected);
    expect(reasons.join('; ')).toMatch(/threads.*module|module.*threads/);
  });

  it('throws without SIMD, and for threads or a module that cannot be had', () => {
    expect(() => chooseModules({ ...ALL, simd: false }, AUTO)).toThrow(/SIMD/);
    expect(() => chooseModules({ ...ALL, ...ALONE }, { ...AUTO, threads: 2 })).toThrow(
      /not isolated/,
    );
    expect(() =>
      chooseModules({ ...ALL, relaxedSimd: false }, { ...AUTO, module: 'relaxed' }),
    ).toThrow(/relaxed/);
  });
});

describe('falling back', () => {
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });
  const fails = async (): Promise<FakeModule> => {
    throw new Error('CompileError: no');
  };
  const features = ALL;

  it('a module that does not start is followed by the next, in a new worker', async () => {
    const platform = fakePlatform({}, { features, factories: { 'relaxed-threads': fails } });
    const { info } = await loadFake(platform);
    expect(info.runtime).toMatchObject({ module: 'simd-threads', threads: 4 });
    expect(info.runtime.reasons.join()).toMatch(/not relaxed-threads.*CompileError: no/);
    expect(platform.workers.map(({ terminated }) => terminated)).toEqual([true, false]);
  });

  it('a relaxed dot product that follows no rule rules out every relaxed module', async () => {
    const factories = { 'simd-threads': fails };
    const platform = fakePlatform({ relaxedOk: false }, { features, factories });
    const { info } = await loadFake(platform);
    expect(info.runtime.module).toBe('simd');
    expect(info.runtime.reasons.join()).toMatch(/follows no known rule/);
    expect(platform.workers).toHaveLength(3);
  });

  it('a thread pool that never gets ready is given up after its time, and one thread serves', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const hangs = (_: FakeModule, args?: { preRun?: () => void }) => {
      args?.preRun?.();
      return new Promise<FakeModule>(() => {});
    };
    const factories = { 'relaxed-threads': hangs, 'simd-threads': hangs };
    const platform = fakePlatform({}, { features, factories });
    const loading = loadFake(platform);
    for (let i = 0; i < 2; i++) {
      await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
      await vi.advanceTimersByTimeAsync(10_000);
    }
    const { info } = await loading;
    expect(info.runtime).toMatchObject({ module: 'relaxed', threads: 1 });
    expect(info.runtime.reasons.join()).toMatch(/pool were not ready within 10 s/);
    expect(platform.workers.map(({ terminated }) => terminated)).toEqual([true, true, false]);
  });

  it('where nothing starts, the error tells what was tried', async () => {
    const factories = { relaxed: fails, simd: fails };
    const loading = loadFake(fakePlatform({}, { features, factories }), { threads: 1 });
    await expect(loading).rejects.toMatchObject({
      code: 'WorkerLost',
      message: expect.stringMatching(/not relaxed .*not simd /),
    });
  });

  it('where nothing starts with the threads that were asked for, the error names the remedy', async () => {
    const factories = { 'relaxed-threads': fails, 'simd-threads': fails };
    const loading = loadFake(fakePlatform({}, { features, factories }), { threads: 64 });
    await expect(loading).rejects.toThrow(/fewer threads/);
  });

  it('where no module gets its memory, that is the error', async () => {
    vi.spyOn(WebAssembly, 'Memory').mockImplementation(() => {
      throw new RangeError('could not allocate memory');
    });
    const aborts = async (): Promise<FakeModule> => {
      throw new WebAssembly.RuntimeError('Aborted(RangeError: its words differ)');
    };
    const factories = { relaxed: aborts, simd: aborts };
    const platform = fakePlatform({}, { features, factories });
    for (const threads of [1, 2]) {
      await expect(loadFake(platform, { threads })).rejects.toMatchObject({
        code: 'OutOfMemory',
        message: expect.stringMatching(/16 MiB or more could be reserved.*dispose\(\) engines/),
      });
    }
    expect(platform.workers.every(({ terminated }) => terminated)).toBe(true);
  });

  it('a module asked for by name is not replaced by another', async () => {
    const loading = loadFake(fakePlatform({ relaxedOk: false }, { features }), {
      module: 'relaxed',
      threads: 1,
    });
    await expect(loading).rejects.toThrow(/follows no known rule/);
  });

  it('an abort while the module starts ends the worker', async () => {
    const factories = { simd: () => new Promise<FakeModule>(() => {}) };
    const platform = fakePlatform({}, { factories });
    const abort = new AbortController();
    const loading = loadFake(platform, { signal: abort.signal }, FAKE_FILE);
    setTimeout(() => abort.abort(), 5);
    await expect(loading).rejects.toMatchObject({ code: 'Aborted' });
    expect(platform.workers[0]?.terminated).toBe(true);
  });
});
