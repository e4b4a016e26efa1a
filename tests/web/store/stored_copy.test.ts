// Looking at a model without keeping it: what is stored is read, and nothing is written, waited for or given up.
import { describe, expect, it } from 'vitest';
import { expectBytes, modelBytes, take } from './loading.js';
import { MemoryDisk } from './memory_disk.js';
import { newPath, server } from './started_server.js';

const FILE = modelBytes(300_000);

describe("mode 'read'", () => {
  it('takes a whole stored file, and asks no server', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE });
    const place = new MemoryDisk().place();
    await take(url, { place });
    const { bytes, report } = await take(url, { place, mode: 'read' });
    expectBytes(bytes, FILE);
    expect(report).toMatchObject({ fromStoreBytes: FILE.length, fromNetworkBytes: 0, notices: [] });
    expect(server.seen(path)).toHaveLength(1);
  });

  it('stores nothing of what it reads from the network', async () => {
    const url = server.serve(newPath(), { bytes: FILE });
    const disk = new MemoryDisk();
    const { bytes, report } = await take(url, { place: disk.place(), mode: 'read' });
    expectBytes(bytes, FILE);
    expect(report).toMatchObject({ fromNetworkBytes: FILE.length, kept: false, notices: [] });
    expect(disk.files.size).toBe(0);
  });

  it('leaves a part alone, and one that is being written: the network answers at once', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE, pieceBytes: 20_000, pauseMs: 20 });
    const place = new MemoryDisk().place();
    const download = take(url, { place });
    await expect.poll(() => server.sentBytes(path)).toBeGreaterThan(0);
    const { report, waits } = await take(url, { place, mode: 'read', until: 1 });
    expect(waits).toBe(0);
    expect(report.fromNetworkBytes).toBeGreaterThan(0);
    expect((await download).report).toMatchObject({ kept: true });
    expect((await take(url, { place, mode: 'read' })).report.fromStoreBytes).toBe(FILE.length);
  });

  it('does without a store that is forbidden', async () => {
    const url = server.serve(newPath(), { bytes: FILE });
    const openPlace = async () => {
      throw new DOMException('no', 'SecurityError');
    };
    const { bytes, report } = await take(url, { openPlace, mode: 'read' });
    expectBytes(bytes, FILE);
    expect(report.notices).toEqual([]);
  });
});
