// The files of a split model come in parallel where there is a store for those whose turn has not come, with one progress.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ModelStore } from '../../../web/runtime/src/store/model_store.js';
import type { LoadOptions, LoadProgress } from '../../../web/runtime/src/types.js';
import { type Fault, FaultServer } from '../store/fault_server.js';
import { modelBytes, sha256Of } from '../store/loading.js';
import { type DiskLimits, MemoryDisk } from '../store/memory_disk.js';
import { fakePlatform, loadFake } from './fake_platform.js';

const server = new FaultServer();
beforeAll(() => server.start());
afterAll(() => server.stop());
beforeEach(() => {
  server.peak = 0;
});

const N_FILES = 5;
const FILE_BYTES = 60_000;
const ALL_BYTES = N_FILES * FILE_BYTES;
const FILES = Array.from({ length: N_FILES }, (_, i) => modelBytes(FILE_BYTES, i + 1));
const HASHES = FILES.map(sha256Of);
let nModels = 0;

/** The address of the first file of a new model. `faults`: of each file. */
function newModel(faults: Fault[][] = []) {
  const id = nModels++;
  const name = (i: number) => `/split-${id}-0000${i + 1}-of-0000${N_FILES}.gguf`;
  const paths = FILES.map((_, i) => name(i));
  FILES.forEach((bytes, i) => {
    server.serve(name(i), { bytes, pieceBytes: 10_000, pauseMs: 5 }, ...(faults[i] ?? []));
  });
  const sentBytes = () => paths.reduce((sum, path) => sum + server.sentBytes(path), 0);
  return { url: server.url + name(0), paths, sentBytes };
}

function newBrowser(limits: DiskLimits = {}) {
  const disk = new MemoryDisk(limits);
  const place = disk.place();
  const load = (source: string, options: LoadOptions = {}, changes = {}) => {
    const platform = fakePlatform(
      { fileBytes: FILE_BYTES, nShards: N_FILES, ...changes },
      { place },
    );
    return loadFake(platform, { store: true, ...options }, source);
  };
  const store = new ModelStore(
    async () => place,
    async () => false,
  );
  return { disk, load, store };
}

describe('a split model with a store', () => {
  it('comes by three connections, each byte once, and is kept', async () => {
    const { url, sentBytes } = newModel();
    const { load, disk } = newBrowser();
    const { info } = await load(url);
    expect(info.download).toEqual({
      fromNetworkBytes: ALL_BYTES,
      fromStoreBytes: 0,
      kept: true,
      sha256: HASHES,
      notices: [],
    });
    expect(sentBytes()).toBe(ALL_BYTES);
    expect(server.peak).toBe(3);
    expect(disk.openHandles).toBe(0);
    const again = await load(url);
    expect(again.info.download).toMatchObject({ fromNetworkBytes: 0, fromStoreBytes: ALL_BYTES });
    expect(sentBytes()).toBe(ALL_BYTES);
  });

  it('has one progress that never goes back and does not speak of other tabs', async () => {
    const seen: LoadProgress[] = [];
    await newBrowser().load(newModel().url, { onProgress: (progress) => seen.push(progress) });
    const loaded = seen.map(({ loadedBytes }) => loadedBytes);
    expect(loaded).toEqual([...loaded].sort((a, b) => a - b));
    expect(seen.at(-1)).toEqual({ phase: 'ready', loadedBytes: ALL_BYTES, totalBytes: ALL_BYTES });
    for (const { totalBytes } of seen) expect([undefined, ALL_BYTES]).toContain(totalBytes);
    expect(seen.map(({ phase }) => phase)).not.toContain('waiting');
  });

  it('goes on where each of its files was', async () => {
    const cut: Fault = { kind: 'cut', afterBytes: 20_000 };
    const { url, sentBytes } = newModel(FILES.map(() => [cut]));
    const { load } = newBrowser();
    await expect(load(url, { retries: 0 })).rejects.toMatchObject({ code: 'Network' });
    const { info } = await load(url);
    expect(info.download).toMatchObject({ kept: true, sha256: HASHES });
    expect(info.download?.fromStoreBytes).toBeGreaterThanOrEqual(20_000);
    expect(sentBytes()).toBe(ALL_BYTES);
  });

  it('a file that cannot be had fails the load when its turn comes, and the others stay', async () => {
    const gone: Fault[] = Array.from({ length: 2 }, () => ({ kind: 'status', status: 404 }));
    const { url } = newModel([[], [], gone]);
    const { load, store, disk } = newBrowser();
    await expect(load(url)).rejects.toMatchObject({ code: 'Network', details: { status: 404 } });
    expect((await store.list()).filter(({ isWhole }) => isWhole).length).toBeGreaterThanOrEqual(2);
    expect(disk.openHandles).toBe(0);
    expect((await load(url)).info.download).toMatchObject({ kept: true, sha256: HASHES });
  });

  it('a model that does not fit is refused before its further files are asked for', async () => {
    const { url, paths } = newModel();
    const errors = { reserve: { code: 'OutOfMemory', message: 'no', details: {} } };
    const loading = newBrowser().load(url, { threads: 1 }, { errors });
    await expect(loading).rejects.toMatchObject({ code: 'OutOfMemory' });
    expect(paths.flatMap((path) => server.seen(path))).toHaveLength(1);
  });

  it('short of space, comes one file after the other into memory, with a notice', async () => {
    const { url } = newModel();
    const { info } = await newBrowser({ freeBytes: 1000 }).load(url);
    expect(info.download).toMatchObject({ kept: false, fromNetworkBytes: ALL_BYTES });
    expect(info.download?.notices).toHaveLength(N_FILES);
  });
});

it('without a store a split model comes by one connection', async () => {
  const { url, sentBytes } = newModel();
  const { info } = await newBrowser().load(url, { store: false });
  expect(info.download).toMatchObject({ kept: false, fromNetworkBytes: ALL_BYTES });
  expect(sentBytes()).toBe(ALL_BYTES);
  expect(server.peak).toBe(1);
});
