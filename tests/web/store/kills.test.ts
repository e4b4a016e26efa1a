// The process is killed between any two operations on the disk, with what a disk may then have kept of the unflushed
// writes. Afterwards there is nothing, a part that can be continued, or the whole file; and the next load completes it.
import { describe, expect, it } from 'vitest';
import { keyOf } from '../../../web/runtime/src/store/stored_copy.js';
import { recordOf, wholeFile } from '../../../web/runtime/src/store/stored_file.js';
import { randomSource } from '../text/vocabularies.js';
import { modelBytes, sha256Of, take } from './loading.js';
import { MemoryDisk } from './memory_disk.js';
import { server } from './started_server.js';

const FILE = modelBytes(60_000, 11);
const OTHER = modelBytes(70_000, 12);
const HASH = sha256Of(FILE);
/** As many operations as can be. */
const EVERY_CHUNK = { bytes: 1, ms: 0 };
const AT_THE_END = { bytes: 1e9, ms: 1e9 };

/** What the disk says after a kill is true. Returns the bytes that it vouches for. */
async function checkDisk(disk: MemoryDisk, key: string, versions: Uint8Array[]): Promise<number> {
  const place = disk.place();
  const whole = await wholeFile(place, key);
  if (whole !== undefined) {
    const bytes = new Uint8Array(await whole.data.arrayBuffer());
    expect(versions.map(sha256Of)).toContain(sha256Of(bytes));
    expect(whole.record.sha256).toBe(sha256Of(bytes));
  }
  const record = await recordOf(place, key);
  if (record === undefined) return 0;
  const data = disk.bytesOf(`${key}.gguf`) ?? new Uint8Array();
  expect(data.length).toBeGreaterThanOrEqual(record.bytes);
  const begins = (version: Uint8Array) =>
    Buffer.from(version.subarray(0, record.bytes)).equals(data.subarray(0, record.bytes));
  expect(versions.some(begins), `the first ${record.bytes} bytes are of one version`).toBe(true);
  return record.bytes;
}

describe('a kill', () => {
  it.each([
    ['a record a chunk', EVERY_CHUNK, 5],
    ['a record at the end', AT_THE_END, 0],
  ])(
    'at any operation of a download leaves nothing, a part or the whole: %s',
    async (_, checkpoints, least) => {
      const pick = randomSource(3);
      const url = server.serve('/kill', { bytes: FILE, pieceBytes: 8192 });
      const key = await keyOf(url);
      const whole = new MemoryDisk();
      await take(url, { place: whole.place(), checkpoints });
      expect(whole.operations).toBeGreaterThan(10);
      let nParts = 0;
      for (let killAfter = 0; killAfter <= whole.operations; killAfter++) {
        const disk = new MemoryDisk({ killAfter });
        await take(url, { place: disk.place(), checkpoints });
        const after = disk.afterKill(pick);
        const safeBytes = await checkDisk(after, key, [FILE]);
        if (safeBytes > 0 && safeBytes < FILE.length) nParts += 1;
        const before = server.sentBytes('/kill');
        const { bytes, report } = await take(url, { place: after.place(), checkpoints });
        expect(sha256Of(bytes), `killed after ${killAfter} operations`).toBe(HASH);
        expect(report).toMatchObject({ kept: true, sha256: HASH, notices: [] });
        expect(server.sentBytes('/kill') - before).toBe(FILE.length - safeBytes);
        expect((await wholeFile(after.place(), key))?.record.sha256).toBe(HASH);
      }
      expect(nParts).toBeGreaterThanOrEqual(least);
      console.info(
        `store: killed at each of ${whole.operations} operations, ${nParts} times in a part, 0 files lost`,
      );
    },
  );

  it('at any operation of a continued download, the file having changed or not', async () => {
    const checkpoints = EVERY_CHUNK;
    const pick = randomSource(4);
    for (const to of [FILE, OTHER]) {
      const begun = async () => {
        const url = server.serve(
          '/kill2',
          { bytes: FILE, pieceBytes: 8192 },
          { kind: 'cut', afterBytes: 30_000 },
        );
        const disk = new MemoryDisk();
        await take(url, { place: disk.place(), transfer: { retries: 0 } }).catch(() => {});
        server.files.set('/kill2', { bytes: to, pieceBytes: 8192 });
        return { url, disk, key: await keyOf(url) };
      };
      const { url, disk: counted, key } = await begun();
      const start = counted.operations;
      await take(url, { place: counted.place(), checkpoints });
      const nOperations = counted.operations - start;
      expect(nOperations).toBeGreaterThan(10);
      for (let killAfter = 0; killAfter <= nOperations; killAfter++) {
        const { disk } = await begun();
        disk.limits = { killAfter: disk.operations + killAfter };
        await take(url, { place: disk.place(), checkpoints });
        const after = disk.afterKill(pick);
        await checkDisk(after, key, [FILE, to]);
        const { bytes } = await take(url, { place: after.place(), checkpoints });
        expect(sha256Of(bytes), `killed after ${killAfter} operations`).toBe(sha256Of(to));
        expect((await wholeFile(after.place(), key))?.record.sha256).toBe(sha256Of(to));
      }
    }
  });

  it('again and again at random: the download ends all the same', async () => {
    const checkpoints = EVERY_CHUNK;
    const pick = randomSource(8);
    for (let run = 0; run < 10; run++) {
      const path = `/again-${run}`;
      const url = server.serve(path, { bytes: FILE, pieceBytes: 8192 });
      const key = await keyOf(url);
      let disk = new MemoryDisk();
      let nKills = 0;
      for (; nKills < 200; nKills++) {
        disk.limits = { killAfter: 6 + pick(12) };
        const { report } = await take(url, { place: disk.place(), checkpoints });
        if (!disk.isDead && report.kept) break;
        disk = disk.afterKill(pick);
        await checkDisk(disk, key, [FILE]);
      }
      expect(nKills).toBeLessThan(200);
      expect((await wholeFile(new MemoryDisk({}, disk.files).place(), key))?.record.sha256).toBe(
        HASH,
      );
    }
  });
});
