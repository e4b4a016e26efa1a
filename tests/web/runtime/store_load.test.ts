// Engine.load with the store: what it tells, what it keeps and what it drops, over a fake loader.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ModelStore } from '../../../web/runtime/src/store/model_store.js';
import { lockName } from '../../../web/runtime/src/store/stored_file.js';
import type { LoadOptions, LoadProgress } from '../../../web/runtime/src/types.js';
import { FaultServer } from '../store/fault_server.js';
import { modelBytes, sha256Of } from '../store/loading.js';
import { MemoryDisk } from '../store/memory_disk.js';
import { fakePlatform, loadFake } from './fake_platform.js';

const server = new FaultServer();
beforeAll(() => server.start());
afterAll(() => server.stop());

const FILE = modelBytes(100_000);
let nPaths = 0;
const newPath = () => `/load-${nPaths++}.gguf`;

function newBrowser(nShards = 1) {
  const disk = new MemoryDisk();
  const place = disk.place();
  const platform = (changes = {}) =>
    fakePlatform({ fileBytes: FILE.length, nShards, ...changes }, { place });
  const load = (source: string | string[], options: LoadOptions = {}, changes = {}) =>
    loadFake(platform(changes), { store: true, ...options }, source);
  const store = new ModelStore(
    async () => place,
    async () => false,
  );
  return { disk, place, load, store, platform };
}

describe('store: true', () => {
  it('keeps the model, and the next load needs no server', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE });
    const { load } = newBrowser();
    const first = await load(url);
    expect(first.info.download).toEqual({
      fromNetworkBytes: FILE.length,
      fromStoreBytes: 0,
      kept: true,
      sha256: [sha256Of(FILE)],
      notices: [],
    });
    server.files.delete(path);
    const seen: LoadProgress[] = [];
    const second = await load(url, { onProgress: (progress) => seen.push(progress) });
    expect(second.info.download).toMatchObject({ fromNetworkBytes: 0, kept: true });
    const total = { loadedBytes: FILE.length, totalBytes: FILE.length };
    expect(seen.at(-1)).toEqual({ phase: 'ready', ...total });
  });

  it('keeps every shard', async () => {
    const urls = [1, 2].map((seed) =>
      server.serve(newPath(), { bytes: modelBytes(100_000, seed) }),
    );
    const { load, store } = newBrowser(2);
    const { info } = await load(urls);
    expect(info.download?.sha256).toEqual(
      [1, 2].map((seed) => sha256Of(modelBytes(100_000, seed))),
    );
    expect((await store.list()).map(({ url }) => url).sort()).toEqual([...urls].sort());
  });

  it('keeps also what follows the last tensor', async () => {
    const bytes = modelBytes(150_000);
    const url = server.serve(newPath(), { bytes });
    const { load, store } = newBrowser();
    expect((await load(url)).info.download?.sha256).toEqual([sha256Of(bytes)]);
    expect((await store.file(url))?.size).toBe(150_000);
  });

  it('begins anew when the file changes within its download, and says so', async () => {
    const other = modelBytes(100_000, 2);
    const cut = { kind: 'cut', afterBytes: 30_000 } as const;
    const url = server.serve(newPath(), { bytes: FILE }, cut, {
      kind: 'change',
      to: { bytes: other },
    });
    const { info } = await newBrowser().load(url);
    expect(info.download?.sha256).toEqual([sha256Of(other)]);
    expect(info.download?.notices).toEqual([
      expect.stringMatching(/begun anew: .* changed at byte 30000/),
    ]);
  });

  it('of two loads at once the second tells that it waits', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE, pieceBytes: 20_000, pauseMs: 100 });
    const { load } = newBrowser();
    const phases: string[] = [];
    const onProgress = ({ phase }: LoadProgress) => phases.push(phase);
    const [first, second] = await Promise.all([load(url), load(url, { onProgress })]);
    expect(phases).toContain('waiting');
    expect(first.info.download?.fromNetworkBytes).toBe(FILE.length);
    expect(second.info.download?.fromStoreBytes).toBe(FILE.length);
    expect(server.sentBytes(path)).toBe(FILE.length);
  });

  it('where there is no storage, says why; or throws QuotaError when it was required', async () => {
    const url = server.serve(newPath(), { bytes: FILE });
    const platform = () => fakePlatform({ fileBytes: FILE.length });
    const { info } = await loadFake(platform(), { store: true }, url);
    expect(info.download).toMatchObject({
      kept: false,
      notices: [expect.stringMatching(/there is none/)],
    });
    const required = loadFake(platform(), { store: 'require' }, url);
    await expect(required).rejects.toMatchObject({ code: 'Quota' });
  });

  it('without it nothing is kept, and a source without URL tells of no download', async () => {
    const url = server.serve(newPath(), { bytes: FILE });
    const { load, disk } = newBrowser();
    expect((await load(url, { store: false })).info.download).toMatchObject({
      kept: false,
      notices: [],
    });
    expect(disk.files.size).toBe(0);
    expect((await loadFake(fakePlatform())).info).not.toHaveProperty('download');
  });
});

describe('what is no good does not stay', () => {
  const badModel = { append: { code: 'BadModel', message: 'key x', details: {} } };

  it.each([
    ['a damaged model', { errors: badModel }, 'BadModel'],
    [
      'a model that is not supported',
      { errors: { append: { ...badModel.append, code: 'Unsupported' } } },
      'Unsupported',
    ],
    ['a file shorter than its header says', { fileBytes: 200_000 }, 'BadModel'],
  ])('%s', async (_, changes, code) => {
    const url = server.serve(newPath(), { bytes: FILE });
    const { load, disk } = newBrowser();
    await expect(load(url, {}, changes)).rejects.toMatchObject({ code });
    expect(disk.files.size).toBe(0);
    expect(disk.openHandles).toBe(0);
  });

  it('a web page', async () => {
    const url = server.serve(newPath(), { bytes: FILE }, { kind: 'html' });
    const { load, disk } = newBrowser();
    await expect(load(url)).rejects.toMatchObject({
      code: 'Network',
      message: expect.stringMatching(/is a web page/),
    });
    expect(disk.files.size).toBe(0);
  });

  it('a stored file that cannot be loaded: fetched anew, once', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE });
    const { load, disk } = newBrowser();
    await load(url);
    let nTimes = 1;
    const errors = {
      get append() {
        return nTimes-- > 0 ? badModel.append : undefined;
      },
    };
    const { info } = await load(url, {}, { errors });
    expect(info.download).toMatchObject({
      fromNetworkBytes: FILE.length,
      kept: true,
      sha256: [sha256Of(FILE)],
      notices: ['begun anew: key x'],
    });
    nTimes = 2;
    await expect(load(url, {}, { errors })).rejects.toMatchObject({ code: 'BadModel' });
    expect(disk.files.size).toBe(0);
    expect(server.seen(path)).toHaveLength(3);
  });

  it('a stored file that has rotted: seen by who gives its hash, and fetched anew', async () => {
    const url = server.serve(newPath(), { bytes: FILE });
    const { load, disk } = newBrowser();
    await load(url);
    for (const [name, file] of disk.files) {
      if (name.endsWith('.gguf')) file.safe = file.safe.with(50_000, (FILE[50_000] ?? 0) ^ 1);
    }
    const { info } = await load(url, { sha256: sha256Of(FILE) });
    expect(info.download).toMatchObject({
      fromNetworkBytes: FILE.length,
      kept: true,
      notices: [expect.stringMatching(/begun anew: The stored copy of .* is damaged: its SHA-256/)],
    });
  });

  it('a model that does not fit into memory is kept in part: a smaller context may do', async () => {
    const url = server.serve(newPath(), { bytes: FILE, pieceBytes: 20_000 });
    const { load, store } = newBrowser();
    const errors = { reserve: { code: 'OutOfMemory', message: 'no', details: {} } };
    await expect(load(url, { threads: 1 }, { errors })).rejects.toMatchObject({
      code: 'OutOfMemory',
    });
    expect(await store.list()).toMatchObject([{ url, isWhole: false }]);
  });
});

describe('an expected hash', () => {
  const expected = sha256Of(FILE);
  const platform = () => fakePlatform({ fileBytes: FILE.length });

  it.each([
    ['a URL', () => server.serve(newPath(), { bytes: FILE })],
    ['bytes', () => FILE],
    ['a Blob', () => new Blob([FILE as Uint8Array<ArrayBuffer>])],
  ])('of %s: the right one loads, another is an IntegrityError', async (_, source) => {
    await loadFake(platform(), { sha256: expected.toUpperCase() }, source());
    const other = loadFake(platform(), { sha256: 'f'.repeat(64) }, source());
    await expect(other).rejects.toMatchObject({
      code: 'Integrity',
      details: { sha256: expected, expectedSha256: 'f'.repeat(64) },
    });
  });

  it.each([
    ['sha256', 'abc'],
    ['sha256', [expected, expected]],
    ['sha256', 5],
    ['store', 'yes'],
    ['retries', -1],
  ])('%s: %j is refused', async (option, value) => {
    await expect(loadFake(platform(), { [option]: value }, FILE)).rejects.toMatchObject({
      code: 'BadOption',
      details: { option },
    });
  });
});

describe('modelStore', () => {
  it('lists whole files and parts, tells what they take, gives and deletes them', async () => {
    const cut = { kind: 'cut', afterBytes: 30_000 } as const;
    const whole = server.serve(newPath(), { bytes: FILE });
    const part = server.serve(newPath(), { bytes: FILE }, cut);
    const { load, store, disk } = newBrowser();
    await load(whole);
    await load(part, { retries: 0 }).catch(() => {});
    const savedAt = expect.any(Number);
    const total = { totalBytes: FILE.length, savedAt };
    expect(await store.list()).toEqual([
      { url: part, isWhole: false, bytes: 30_000, ...total },
      { url: whole, isWhole: true, bytes: FILE.length, sha256: sha256Of(FILE), ...total },
    ]);
    expect((await store.use()).modelsBytes).toBe(130_000);
    expect(await store.file(part)).toBeUndefined();
    expect(await store.file('http://elsewhere/')).toBeUndefined();
    const blob = await store.file(new URL(`${whole}#x`));
    expect(sha256Of(new Uint8Array((await blob?.arrayBuffer()) ?? []))).toBe(sha256Of(FILE));
    expect(await store.delete(whole)).toBe(true);
    expect(await store.delete(whole)).toBe(false);
    expect(await store.list()).toHaveLength(1);
    expect(await store.clear()).toBe(1);
    expect(disk.files.size).toBe(0);
  });

  it('removes data that no record tells of any more, but not under a load', async () => {
    const urls = [0, 1, 2].map(() => server.serve(newPath(), { bytes: FILE }));
    const { load, store, disk, place } = newBrowser();
    for (const url of urls) await load(url);
    const [damaged, deleted, whole] = [...disk.files.keys()].filter((name) =>
      name.endsWith('.rec'),
    );
    const record = await place.open(damaged as string);
    record.truncate(10);
    record.close();
    await place.remove(deleted as string);
    const wait = { signal: new AbortController().signal, onWait() {} };
    const key = (damaged as string).replace('.rec', '');
    const release = await place.lock(lockName(key), 'shared', wait);
    expect(await store.list()).toHaveLength(1);
    expect((await store.use()).modelsBytes).toBe(2 * FILE.length);
    release();
    expect(await store.list()).toHaveLength(1);
    expect([...disk.files.keys()].sort()).toEqual([
      (whole as string).replace('.rec', '.gguf'),
      whole,
    ]);
  });

  it('does not delete what is being downloaded', async () => {
    const url = server.serve(newPath(), { bytes: FILE }, { kind: 'stall', afterBytes: 40_000 });
    const { load, store } = newBrowser();
    const abort = new AbortController();
    const loading = load(url, { signal: abort.signal }).catch(() => {});
    await expect.poll(() => store.list()).toHaveLength(1);
    await expect(store.delete(url)).rejects.toMatchObject({ code: 'BadOption' });
    expect(await store.clear()).toBe(0);
    abort.abort();
    await loading;
  });

  it('is empty where there is no storage', async () => {
    const none = new ModelStore(
      async () => undefined,
      async () => false,
    );
    expect(await none.list()).toEqual([]);
    expect(await none.use()).toEqual({ modelsBytes: 0, isPersistent: false });
    expect(await none.file('http://x/')).toBeUndefined();
    expect(await none.delete('http://x/')).toBe(false);
    expect(await none.clear()).toBe(0);
  });
});
