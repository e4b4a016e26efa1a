// A stored file is compared with its server's version where that is wished: another one is downloaded, and without an answer
// the stored one is used.
import { describe, expect, it } from 'vitest';
import { expectBytes, modelBytes, sha256Of, take } from './loading.js';
import { MemoryDisk } from './memory_disk.js';
import { server } from './started_server.js';

const FILE = modelBytes(50_000, 31);
const OTHER = modelBytes(50_000, 32);

async function stored(path: string) {
  const disk = new MemoryDisk();
  const url = server.serve(path, { bytes: FILE });
  await take(url, { place: disk.place() });
  return { url, place: disk.place() };
}

describe('revalidate', () => {
  it('the same version: one question, no download', async () => {
    const { url, place } = await stored('/same');
    const { bytes, report } = await take(url, { place, revalidate: true });
    expectBytes(bytes, FILE);
    expect(report).toMatchObject({ fromNetworkBytes: 0, kept: true, notices: [] });
    expect(server.seen('/same').map(({ method }) => method)).toEqual(['GET', 'HEAD']);
  });

  it('another version replaces the stored one', async () => {
    const { url, place } = await stored('/other');
    server.files.set('/other', { bytes: OTHER });
    expectBytes((await take(url, { place })).bytes, FILE);
    const { bytes, report } = await take(url, { place, revalidate: true });
    expectBytes(bytes, OTHER);
    expect(report).toMatchObject({ kept: true, sha256: sha256Of(OTHER) });
    expect(report.notices.join()).toMatch(/outdated/);
    expectBytes((await take(url, { place, revalidate: true })).bytes, OTHER);
  });

  it.each([
    ['an error', { kind: 'status', status: 503 }, /answered 503/],
    ['a broken connection', { kind: 'drop' }, /cannot be reached/],
  ] as const)('%s: the stored one is used, and said so', async (name, fault, notice) => {
    const { url, place } = await stored(`/${name.length}`);
    server.faults.set(`/${name.length}`, [fault, fault, fault]);
    const { bytes, report } = await take(url, { place, revalidate: true });
    expectBytes(bytes, FILE);
    expect(report.notices.join()).toMatch(notice);
  });

  it('who knows the hash need not ask', async () => {
    const { url, place } = await stored('/hash');
    await take(url, { place, revalidate: true, expectedSha256: sha256Of(FILE) });
    expect(server.seen('/hash')).toHaveLength(1);
  });
});
