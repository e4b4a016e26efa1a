// The store and servers that answer with something else than the file: errors, pages, broken connections, wrong lengths.
import { describe, expect, it } from 'vitest';
import { keyOf } from '../../../web/runtime/src/store/stored_copy.js';
import { wholeFile } from '../../../web/runtime/src/store/stored_file.js';
import { expectBytes, modelBytes, take } from './loading.js';
import { MemoryDisk } from './memory_disk.js';
import { newPath, server } from './started_server.js';

const FILE = modelBytes(100_000);

describe('answers that are no file', () => {
  it.each([
    [403, /answered 403.*refuses access/],
    [404, /answered 404.*check the address/],
    [410, /answered 410/],
  ])('%i: a NetworkError at once', async (status, message) => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE }, { kind: 'status', status });
    const disk = new MemoryDisk();
    await expect(take(url, { place: disk.place() })).rejects.toMatchObject({
      code: 'Network',
      message: expect.stringMatching(message),
      details: { url, status },
    });
    expect(server.seen(path)).toHaveLength(1);
    expect(disk.openHandles).toBe(0);
  });

  it.each([500, 503, 429])('%i: asked again until it passes', async (status) => {
    const faults = Array.from({ length: 4 }, () => ({ kind: 'status', status }) as const);
    const url = server.serve(newPath(), { bytes: FILE }, ...faults);
    expectBytes((await take(url, { place: new MemoryDisk().place() })).bytes, FILE);
  });

  it('500 for ever: a NetworkError with the status after the last try', async () => {
    const path = newPath();
    const faults = Array.from({ length: 9 }, () => ({ kind: 'status', status: 500 }) as const);
    const url = server.serve(path, { bytes: FILE }, ...faults);
    await expect(take(url)).rejects.toMatchObject({ code: 'Network', details: { status: 500 } });
    expect(server.seen(path)).toHaveLength(6);
  });

  it('dropped connections: asked again', async () => {
    const url = server.serve(newPath(), { bytes: FILE }, { kind: 'drop' }, { kind: 'drop' });
    expectBytes((await take(url)).bytes, FILE);
  });

  it('a web page is passed on to be named, and not kept', async () => {
    const url = server.serve(newPath(), { bytes: FILE }, { kind: 'html' });
    const disk = new MemoryDisk();
    const { bytes, report } = await take(url, { place: disk.place() });
    expect(new TextDecoder().decode(bytes)).toMatch(/^<!doctype/);
    expect(report.kept).toBe(false);
    expect(disk.files.size).toBe(0);
    // The next try gets the file.
    expectBytes((await take(url, { place: disk.place() })).bytes, FILE);
  });

  it('a length that is too large: never taken for whole', async () => {
    const faults = Array.from(
      { length: 30 },
      () => ({ kind: 'length', announced: 150_000 }) as const,
    );
    const url = server.serve(newPath(), { bytes: FILE }, ...faults);
    const disk = new MemoryDisk();
    await expect(take(url, { place: disk.place() })).rejects.toMatchObject({ code: 'Network' });
    expect(await wholeFile(disk.place(), await keyOf(url))).toBeUndefined();
  });
});
