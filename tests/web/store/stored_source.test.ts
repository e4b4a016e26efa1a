// The store over a disk in memory and a server that goes wrong in every way: whatever happens, the next load gives the
// right bytes, and nothing wrong is ever kept.
import { describe, expect, it } from 'vitest';
import { keyOf } from '../../../web/runtime/src/store/stored_copy.js';
import { wholeFile } from '../../../web/runtime/src/store/stored_file.js';
import { report as printFigures, SEED } from '../../soak/plan.js';
import { randomSource } from '../text/vocabularies.js';
import { expectBytes, modelBytes, sha256Of, take } from './loading.js';
import { MemoryDisk } from './memory_disk.js';
import { newPath, server } from './started_server.js';

const FILE = modelBytes(100_000);
const OTHER = modelBytes(100_000, 2);

async function kept(disk: MemoryDisk, url: string) {
  const whole = await wholeFile(disk.place(), await keyOf(url));
  return (
    whole && { sha256: whole.record.sha256, bytes: new Uint8Array(await whole.data.arrayBuffer()) }
  );
}

describe('a file that comes without faults', () => {
  it('is kept, with its hash, and the next load asks the server for nothing', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE });
    const disk = new MemoryDisk();
    const first = await take(url, { place: disk.place() });
    expectBytes(first.bytes, FILE);
    expect(first.report).toEqual({
      fromStoreBytes: 0,
      fromNetworkBytes: FILE.length,
      kept: true,
      sha256: sha256Of(FILE),
      notices: [],
    });
    server.files.delete(path);
    const second = await take(`${url}#part`, { place: disk.place() });
    expectBytes(second.bytes, FILE);
    expect(second.report).toMatchObject({
      fromStoreBytes: FILE.length,
      fromNetworkBytes: 0,
      kept: true,
      sha256: sha256Of(FILE),
    });
    expect(server.seen(path)).toHaveLength(1);
    expect(disk.openHandles).toBe(0);
  });

  it('whose length nobody tells is kept too', async () => {
    const url = server.serve(newPath(), { bytes: FILE, tellsLength: false });
    const disk = new MemoryDisk();
    expectBytes((await take(url, { place: disk.place() })).bytes, FILE);
    expectBytes((await kept(disk, url))?.bytes, FILE);
  });

  it('is not kept when its address is that of bytes in memory', async () => {
    const url = URL.createObjectURL(new Blob([FILE as Uint8Array<ArrayBuffer>]));
    const disk = new MemoryDisk();
    const { bytes, report } = await take(url, { place: disk.place() });
    expectBytes(bytes, FILE);
    expect(report).toMatchObject({ kept: false, notices: [] });
    expect(disk.files.size).toBe(0);
  });

  it('is not kept with mode off', async () => {
    const url = server.serve(newPath(), { bytes: FILE });
    const disk = new MemoryDisk();
    const { bytes, report } = await take(url, { place: disk.place(), mode: 'off' });
    expectBytes(bytes, FILE);
    expect(report).toMatchObject({ kept: false, notices: [] });
    expect(disk.files.size).toBe(0);
  });
});

describe('a download that was cut', () => {
  it('is continued at the byte where it ended, with If-Range, and only the rest is sent', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE }, { kind: 'cut', afterBytes: 40_000 });
    const disk = new MemoryDisk();
    await expect(
      take(url, { place: disk.place(), transfer: { retries: 0 } }),
    ).rejects.toMatchObject({
      code: 'Network',
      message: expect.stringMatching(/broke off after 40000 bytes/),
      details: { url, receivedBytes: 40_000 },
    });
    expect(await kept(disk, url)).toBeUndefined();
    const { bytes, report } = await take(`${url}#part`, { place: disk.place() });
    expectBytes(bytes, FILE);
    expect(report).toMatchObject({ fromStoreBytes: 40_000, fromNetworkBytes: 60_000, kept: true });
    expect(server.seen(path)[1]).toMatchObject({ range: 'bytes=40000-', sentBytes: 60_000 });
    expect(server.seen(path)[1]?.ifRange).toMatch(/^"/);
    expect(server.sentBytes(path)).toBe(FILE.length);
  });

  it('is continued by itself after a pause, as often as it makes progress', async () => {
    const path = newPath();
    const cuts = Array.from({ length: 20 }, () => ({ kind: 'cut', afterBytes: 4000 }) as const);
    const url = server.serve(path, { bytes: FILE }, ...cuts);
    const { bytes, report } = await take(url, { place: new MemoryDisk().place() });
    expectBytes(bytes, FILE);
    expect(report.kept).toBe(true);
    expect(server.seen(path)).toHaveLength(21);
    expect(server.sentBytes(path)).toBe(FILE.length);
  });

  it('1000 random cuts, each with two ends of the page: the same hash, and no byte sent twice', async () => {
    const pick = randomSource(SEED);
    const hash = sha256Of(FILE);
    let nCuts = 0;
    for (let i = 0; i < 500; i++) {
      const path = newPath();
      const first = pick(FILE.length);
      const second = pick(FILE.length - first);
      const faults = [first, second].map((afterBytes) => ({ kind: 'cut', afterBytes }) as const);
      const url = server.serve(path, { bytes: FILE }, ...faults);
      const disk = new MemoryDisk();
      for (const _ of faults) {
        await take(url, { place: disk.place(), transfer: { retries: 0 } }).catch((error) => {
          expect(error).toMatchObject({ code: 'Network' });
          nCuts += 1;
        });
      }
      const { report } = await take(url, { place: disk.place() });
      expect(report.sha256, `cuts at ${first} and ${first + second}`).toBe(hash);
      expect(sha256Of((await kept(disk, url))?.bytes ?? new Uint8Array())).toBe(hash);
      expect(server.sentBytes(path)).toBe(FILE.length);
      expect(disk.openHandles).toBe(0);
    }
    expect(nCuts).toBe(1000);
    printFigures('cuts, Node', { runs: 500, faults: nCuts, lost: 0, bytesSentTwice: 0 });
  });

  it('of which all bytes had come but not the last record is completed without the server', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE });
    const disk = new MemoryDisk();
    // Leaves with the last chunk in hand.
    await take(url, { place: disk.place(), until: FILE.length });
    expect(await kept(disk, url)).toBeUndefined();
    server.files.delete(path);
    const { bytes } = await take(url, { place: disk.place() });
    expectBytes(bytes, FILE);
    expect((await kept(disk, url))?.sha256).toBe(sha256Of(FILE));
    expect(server.seen(path)).toHaveLength(1);
  });

  it('stalls: the request is given up and continued', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE }, { kind: 'stall', afterBytes: 30_000 });
    const { bytes } = await take(url, {
      place: new MemoryDisk().place(),
      transfer: { stallMs: 100 },
    });
    expectBytes(bytes, FILE);
    expect(server.seen(path)[1]?.range).toBe('bytes=30000-');
  });

  it('stalls: what had come is recorded, also when the worker is killed then', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE }, { kind: 'stall', afterBytes: 30_000 });
    const disk = new MemoryDisk();
    const abort = new AbortController();
    const loading = take(url, {
      place: disk.place(),
      signal: abort.signal,
      checkpoints: { bytes: 1 << 20, ms: 50 },
    });
    const left = expect(loading).rejects.toMatchObject({ code: 'Aborted' });
    await new Promise((resolve) => setTimeout(resolve, 400));
    // As it is now, before anything is closed.
    const survivor = disk.afterKill(() => 0);
    abort.abort();
    await left;
    expect((await take(url, { place: survivor.place() })).report.fromStoreBytes).toBe(30_000);
  });

  it('never answers: a NetworkError after few tries that says so', async () => {
    const path = newPath();
    const silence = Array.from({ length: 9 }, () => ({ kind: 'silence' }) as const);
    const url = server.serve(path, { bytes: FILE }, ...silence);
    await expect(take(url, { transfer: { stallMs: 50 } })).rejects.toMatchObject({
      code: 'Network',
      message: expect.stringMatching(/could not be fetched \(no byte came for 0\.05 s\)/),
    });
    expect(server.seen(path)).toHaveLength(3);
  });

  it('an abort ends it at once, also in a pause, and keeps the part', async () => {
    const path = newPath();
    const cut = { kind: 'cut', afterBytes: 20_000 } as const;
    const url = server.serve(path, { bytes: FILE }, cut);
    const disk = new MemoryDisk();
    const abort = new AbortController();
    const startMs = performance.now();
    const loading = take(url, {
      place: disk.place(),
      signal: abort.signal,
      transfer: { backoffMs: 60_000, maxBackoffMs: 60_000 },
    });
    setTimeout(() => abort.abort(), 100);
    await expect(loading).rejects.toMatchObject({ code: 'Aborted' });
    expect(performance.now() - startMs).toBeLessThan(1000);
    expect((await take(url, { place: disk.place() })).report.fromStoreBytes).toBe(20_000);
  });
});

describe('a file that is another one when its download goes on', () => {
  const cut = { kind: 'cut', afterBytes: 30_000 } as const;
  const partOf = async (url: string, disk: MemoryDisk) => {
    await take(url, { place: disk.place(), transfer: { retries: 0 } }).catch(() => {});
  };

  it.each([
    ['by its ETag', { bytes: OTHER }],
    ['shorter than the part', { bytes: OTHER.subarray(0, 20_000) }],
    ['of a server that gives no parts any more', { bytes: OTHER, ranges: false }],
  ])('%s: is taken from its first byte', async (_, to) => {
    const url = server.serve(newPath(), { bytes: FILE }, cut, { kind: 'change', to });
    const disk = new MemoryDisk();
    await partOf(url, disk);
    const { bytes, report } = await take(url, { place: disk.place() });
    expectBytes(bytes, to.bytes);
    expect(report.fromStoreBytes).toBe(0);
    expect((await kept(disk, url))?.sha256).toBe(sha256Of(to.bytes));
  });

  it('within one load: everything is begun anew', async () => {
    const url = server.serve(newPath(), { bytes: FILE }, cut, {
      kind: 'change',
      to: { bytes: OTHER },
    });
    const disk = new MemoryDisk();
    const { bytes, restarts } = await take(url, { place: disk.place() });
    expectBytes(bytes, OTHER);
    expect(restarts).toBe(1);
    expectBytes((await kept(disk, url))?.bytes, OTHER);
  });

  it.each([
    ['no validator', { etag: null }],
    ['a weak ETag', { etag: 'W/"1"' }],
    ['a date of this very moment', { etag: null, lastModified: new Date().toUTCString() }],
  ])('%s: without a hash nothing is continued', async (_, about) => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE, ...about }, cut, {
      kind: 'change',
      to: { bytes: OTHER, ...about },
    });
    const disk = new MemoryDisk();
    await partOf(url, disk);
    expectBytes((await take(url, { place: disk.place() })).bytes, OTHER);
    expect(server.seen(path).every(({ range }) => range === undefined)).toBe(true);
  });

  it('an old date is a strong validator', async () => {
    const about = { etag: null, lastModified: 'Tue, 01 Oct 2024 10:00:00 GMT' };
    const path = newPath();
    const url = server.serve(path, { bytes: FILE, ...about }, cut);
    const disk = new MemoryDisk();
    await partOf(url, disk);
    expectBytes((await take(url, { place: disk.place() })).bytes, FILE);
    expect(server.seen(path)[1]).toMatchObject({
      range: 'bytes=30000-',
      ifRange: about.lastModified,
    });
  });

  it('no validator, but the hash is known: the part is continued', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE, etag: null }, cut);
    const disk = new MemoryDisk();
    await partOf(url, disk);
    const { bytes } = await take(url, { place: disk.place(), expectedSha256: sha256Of(FILE) });
    expectBytes(bytes, FILE);
    expect(server.seen(path)[1]).toMatchObject({ range: 'bytes=30000-', ifRange: undefined });
  });

  it('no validator, a known hash, and the wrong part: heals by fetching anew', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: OTHER, etag: null }, cut, {
      kind: 'change',
      to: { bytes: FILE, etag: null },
    });
    const disk = new MemoryDisk();
    await partOf(url, disk);
    const expectedSha256 = sha256Of(FILE);
    const { bytes, restarts } = await take(url, { place: disk.place(), expectedSha256 });
    expectBytes(bytes, FILE);
    expect(restarts).toBe(1);
    expect((await kept(disk, url))?.sha256).toBe(expectedSha256);
  });

  it('another part than the one asked for is not taken', async () => {
    const wrong = { kind: 'wrong-part', start: 29_999 } as const;
    const url = server.serve(newPath(), { bytes: FILE }, cut, wrong);
    const disk = new MemoryDisk();
    const { bytes } = await take(url, { place: disk.place() });
    expectBytes(bytes, FILE);
    expectBytes((await kept(disk, url))?.bytes, FILE);
  });
});

describe('an expected hash', () => {
  it.each([
    ['with the store', true],
    ['without it', false],
  ])(
    '%s: other bytes are an IntegrityError with both hashes, and nothing is kept',
    async (_, withStore) => {
      const url = server.serve(newPath(), { bytes: OTHER });
      const disk = new MemoryDisk();
      const expectedSha256 = sha256Of(FILE);
      const loading = take(url, {
        place: disk.place(),
        mode: withStore ? 'try' : 'off',
        expectedSha256,
      });
      await expect(loading).rejects.toMatchObject({
        code: 'Integrity',
        details: { url, sha256: sha256Of(OTHER), expectedSha256 },
      });
      expect(disk.files.size).toBe(0);
      expect(disk.openHandles).toBe(0);
    },
  );

  it('a stored file with another hash is replaced', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: OTHER });
    const disk = new MemoryDisk();
    await take(url, { place: disk.place() });
    server.serve(path, { bytes: FILE });
    const expectedSha256 = sha256Of(FILE);
    expectBytes((await take(url, { place: disk.place(), expectedSha256 })).bytes, FILE);
    expectBytes((await kept(disk, url))?.bytes, FILE);
  });
});
