// What the store does where it cannot do its work: no storage, no space, files in use; and several tabs at once.
import { describe, expect, it } from 'vitest';
import type { StorePlace } from '../../../web/runtime/src/store/place.js';
import { keyOf } from '../../../web/runtime/src/store/stored_copy.js';
import { wholeFile } from '../../../web/runtime/src/store/stored_file.js';
import { expectBytes, modelBytes, sha256Of, take } from './loading.js';
import { MemoryDisk } from './memory_disk.js';
import { newPath, server } from './started_server.js';

const FILE = modelBytes(100_000);
const noStore = { place: undefined };
const forbidden = {
  openPlace: async (): Promise<StorePlace> => {
    throw new DOMException('not in private windows', 'SecurityError');
  },
};

describe('where the file cannot be kept', () => {
  const disk = (limits: ConstructorParameters<typeof MemoryDisk>[0]) => ({
    place: new MemoryDisk(limits).place(),
  });
  it.each([
    ['no storage', () => noStore, /there is none/],
    ['storage that is forbidden', () => forbidden, /private windows/],
    [
      'too little space by the estimate',
      () => disk({ freeBytes: 50_000 }),
      /needs 4294304 bytes .*gives 50000/,
    ],
    ['a disk that is full on the way', () => disk({ quotaBytes: 60_000 }), /disk is full/],
    ['a disk that is full at once', () => disk({ quotaBytes: 0 }), /disk is full/],
  ])(
    '%s: the file comes all the same, with a notice; or it is a QuotaError',
    async (_, how, why) => {
      const url = server.serve(newPath(), { bytes: FILE });
      const { bytes, report } = await take(url, how());
      expectBytes(bytes, FILE);
      expect(report).toMatchObject({ kept: false, notices: [expect.stringMatching(why)] });
      await expect(take(url, { ...how(), mode: 'require' })).rejects.toMatchObject({
        code: 'Quota',
        message: expect.stringMatching(why),
      });
    },
  );

  it('a disk that is full on the way, required: the error says at which byte of how many', async () => {
    const url = server.serve(newPath(), { bytes: FILE });
    const error = await take(url, { ...disk({ quotaBytes: 60_000 }), mode: 'require' }).catch(
      (thrown) => thrown,
    );
    const { storedBytes, totalBytes } = error.details;
    expect(totalBytes).toBe(FILE.length);
    expect(storedBytes).toBeLessThan(60_000);
    expect(error.message).toContain(`at byte ${storedBytes} of ${FILE.length}`);
  });

  it('nothing of it stays behind, and no handle or lock', async () => {
    const url = server.serve(newPath(), { bytes: FILE });
    const full = new MemoryDisk({ quotaBytes: 60_000 });
    const place = full.place();
    for (let i = 0; i < 2; i++) {
      expectBytes((await take(url, { place })).bytes, FILE);
      await expect(take(url, { place, mode: 'require' })).rejects.toMatchObject({ code: 'Quota' });
      expect(full.files.size).toBe(0);
      expect(full.openHandles).toBe(0);
    }
    full.limits = {};
    expect((await take(url, { place })).report.kept).toBe(true);
  });

  it('an address too long for a record is not kept', async () => {
    const path = `${newPath()}?${'x'.repeat(20_000)}`;
    const url = server.serve(path, { bytes: FILE });
    const { bytes, report } = await take(url, disk({}));
    expectBytes(bytes, FILE);
    expect(report.notices.join()).toMatch(/too long/);
  });
});

describe('a stored part', () => {
  const partOf = async () => {
    const cut = { kind: 'cut', afterBytes: 40_000 } as const;
    const url = server.serve(newPath(), { bytes: FILE }, cut);
    const disk = new MemoryDisk();
    await take(url, { place: disk.place(), transfer: { retries: 0 } }).catch(() => {});
    expect(disk.bytesOf(`${await keyOf(url)}.gguf`)).toHaveLength(40_000);
    return { url, disk };
  };

  it('for whose rest there is no space: the whole file comes, into memory', async () => {
    const { url, disk } = await partOf();
    disk.limits = { freeBytes: 1000 };
    const { bytes, report, restarts } = await take(url, { place: disk.place() });
    expectBytes(bytes, FILE);
    expect(report).toMatchObject({ kept: false, fromStoreBytes: 0 });
    expect(restarts).toBe(1);
    expect(disk.openHandles).toBe(0);
  });

  it('for whose rest there is no space, required: a QuotaError, and the part is gone', async () => {
    const { url, disk } = await partOf();
    disk.limits = { freeBytes: 1000 };
    const loading = take(url, { place: disk.place(), mode: 'require' });
    await expect(loading).rejects.toMatchObject({ code: 'Quota' });
    expect(disk.files.size).toBe(0);
    expect(disk.openHandles).toBe(0);
  });

  it('that cannot be read is given up and the whole file comes', async () => {
    const { url, disk } = await partOf();
    const place = disk.place();
    const { open } = place;
    let isBroken = true;
    place.open = async (name) => {
      const file = await open(name);
      if (!name.endsWith('.gguf') || !isBroken) return file;
      isBroken = false;
      return { ...file, read: () => 0 };
    };
    const { bytes, report, restarts } = await take(url, { place });
    expectBytes(bytes, FILE);
    expect(report).toMatchObject({ kept: true, fromNetworkBytes: FILE.length });
    expect(restarts).toBe(1);
    expect(disk.openHandles).toBe(0);
  });
});

describe('a stored file that is damaged', () => {
  it.each([
    ['shorter', (bytes: Uint8Array) => bytes.subarray(0, 99_000)],
    ['longer', (bytes: Uint8Array) => new Uint8Array([...bytes, 1])],
    ['gone', () => undefined],
  ])('%s: is fetched anew', async (_, damage) => {
    const url = server.serve(newPath(), { bytes: FILE });
    const disk = new MemoryDisk();
    await take(url, { place: disk.place() });
    const name = `${await keyOf(url)}.gguf`;
    const damaged = damage(FILE);
    if (damaged === undefined) disk.files.delete(name);
    else disk.files.set(name, { safe: damaged, changes: [], isOpen: false });
    const { bytes, report } = await take(url, { place: disk.place() });
    expectBytes(bytes, FILE);
    expect(report).toMatchObject({ fromNetworkBytes: FILE.length, kept: true });
    expect((await wholeFile(disk.place(), await keyOf(url)))?.record.sha256).toBe(sha256Of(FILE));
  });

  it('unreadable in the middle: is fetched anew', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE });
    const disk = new MemoryDisk();
    await take(url, { place: disk.place() });
    const place = disk.place();
    const { read } = place;
    let isBroken = true;
    place.read = async (name) => {
      const blob = await read(name);
      if (!name.endsWith('.gguf') || !isBroken || blob === undefined) return blob;
      isBroken = false;
      const slice = () => {
        throw new DOMException('the disk has failed', 'NotReadableError');
      };
      return Object.assign(blob, { slice });
    };
    const { bytes, restarts } = await take(url, { place });
    expectBytes(bytes, FILE);
    expect(restarts).toBe(1);
  });
});

describe('two tabs', () => {
  it('that want the same file download it once; the second says that it waits', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE });
    const place = new MemoryDisk().place();
    const [first, second] = await Promise.all([take(url, { place }), take(url, { place })]);
    expectBytes(first.bytes, FILE);
    expectBytes(second.bytes, FILE);
    expect([first.waits, second.waits]).toEqual([0, expect.any(Number)]);
    expect(second.waits).toBeGreaterThan(0);
    expect(second.report.fromStoreBytes).toBe(FILE.length);
    expect(server.sentBytes(path)).toBe(FILE.length);
  });

  it('the first of which gives up: the second goes on where it was', async () => {
    const path = newPath();
    const stall = { kind: 'stall', afterBytes: 40_000 } as const;
    const url = server.serve(path, { bytes: FILE }, stall);
    const place = new MemoryDisk().place();
    const abort = new AbortController();
    const first = take(url, { place, signal: abort.signal }).catch((error: unknown) => error);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const second = take(url, { place });
    await new Promise((resolve) => setTimeout(resolve, 50));
    abort.abort();
    expect(await first).toMatchObject({ code: 'Aborted' });
    expectBytes((await second).bytes, FILE);
    expect(server.sentBytes(path)).toBe(FILE.length);
  });

  it('one that waits can be aborted', async () => {
    const url = server.serve(newPath(), { bytes: FILE }, { kind: 'stall', afterBytes: 10 });
    const place = new MemoryDisk().place();
    const [first, second] = [new AbortController(), new AbortController()];
    const loading = take(url, { place, signal: first.signal }).catch((error: unknown) => error);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const waiting = take(url, { place, signal: second.signal });
    setTimeout(() => second.abort(), 20);
    await expect(waiting).rejects.toMatchObject({ code: 'Aborted' });
    first.abort();
    await loading;
  });

  it('read a whole file at the same time', async () => {
    const url = server.serve(newPath(), { bytes: FILE });
    const place = new MemoryDisk().place();
    await take(url, { place });
    const both = await Promise.all([take(url, { place }), take(url, { place })]);
    expect(both.map(({ waits }) => waits)).toEqual([0, 0]);
  });
});
