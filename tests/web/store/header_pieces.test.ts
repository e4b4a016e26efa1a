// A header is read in pieces: a server that gives ranges sends little more than what is read of the file, and one that does
// not, or that changes its file in between, is read all the same.
import { describe, expect, it } from 'vitest';
import type { Served } from './fault_server.js';
import { expectBytes, modelBytes, take } from './loading.js';
import { newPath, server } from './started_server.js';

const FILE = modelBytes(100_000);
const OTHER = modelBytes(100_000, 2);
const PIECE = 10_000;
const look = (url: string, until?: number) =>
  take(url, {
    mode: 'read',
    transfer: { pieceBytes: PIECE },
    ...(until === undefined ? {} : { until }),
  });
const ranges = (path: string) => server.seen(path).map(({ range }) => range);

describe('a header that is read in pieces', () => {
  it('asks for one piece where that is enough', async () => {
    const path = newPath();
    const { bytes } = await look(server.serve(path, { bytes: FILE }), 5000);
    expectBytes(bytes, FILE.subarray(0, PIECE));
    expect(ranges(path)).toEqual(['bytes=0-9999']);
    expect(server.sentBytes(path)).toBe(PIECE);
  });

  it('asks for further pieces, each twice as long, up to the end of the file', async () => {
    const path = newPath();
    const { bytes } = await look(server.serve(path, { bytes: FILE }));
    expectBytes(bytes, FILE);
    const asked = ['bytes=0-9999', 'bytes=10000-29999', 'bytes=30000-69999', 'bytes=70000-149999'];
    expect(ranges(path)).toEqual(asked);
    expect(server.sentBytes(path)).toBe(FILE.length);
  });

  it.each<[string, Partial<Served>]>([
    ['that gives no ranges', { ranges: false }],
    ['that names no version', { etag: null }],
    ['that tells no length', { tellsLength: false }],
  ])('reads the file of a server %s', async (_, served) => {
    const path = newPath();
    expectBytes((await look(server.serve(path, { bytes: FILE, ...served }))).bytes, FILE);
    expect(server.sentBytes(path)).toBe(FILE.length);
  });

  it('goes on after a cut within a piece', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE }, { kind: 'cut', afterBytes: 4000 });
    expectBytes((await look(url)).bytes, FILE);
    expect(ranges(path)[1]).toBe('bytes=4000-13999');
    expect(server.sentBytes(path)).toBe(FILE.length);
  });

  it('asks without a range where that request fails', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE }, { kind: 'drop' });
    expectBytes((await look(url)).bytes, FILE);
    expect(ranges(path)).toEqual(['bytes=0-9999', undefined]);
  });

  it('asks without a range where the server has none to give', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE }, { kind: 'status', status: 416 });
    expectBytes((await look(url)).bytes, FILE);
    expect(ranges(path)).toEqual(['bytes=0-9999', undefined]);
  });

  it('begins anew when the file changes between two pieces', async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: FILE }, { kind: 'length', announced: PIECE });
    server.faults.get(path)?.push({ kind: 'change', to: { bytes: OTHER } });
    const { bytes, restarts } = await look(url);
    expectBytes(bytes, OTHER);
    expect(restarts).toBe(1);
  });

  it('says what the server answers', async () => {
    const url = server.serve(newPath(), { bytes: FILE }, { kind: 'status', status: 404 });
    await expect(look(url)).rejects.toMatchObject({ code: 'Network', details: { status: 404 } });
  });
});
