// Records of the store: whatever byte a kill comes at, the last whole one is read.
import { describe, expect, it } from 'vitest';
import { RecordFile, readRecord, type StoreRecord } from '../../../web/runtime/src/store/record.js';
import { MemoryDisk } from './memory_disk.js';

const record = (bytes: number): StoreRecord => ({ url: 'http://x/', bytes, savedAt: 1 });

async function written(...records: StoreRecord[]): Promise<Uint8Array> {
  const disk = new MemoryDisk();
  const file = new RecordFile(await disk.place().open('r'));
  for (const one of records) expect(file.write(one)).toBe(true);
  file.close();
  return disk.bytesOf('r') ?? new Uint8Array();
}

describe('a file of records', () => {
  it('gives the newest, also to a writer that goes on', async () => {
    for (let n = 1; n <= 5; n++) {
      const all = Array.from({ length: n }, (_, i) => record(i));
      expect(readRecord(await written(...all))).toEqual(record(n - 1));
    }
    const disk = new MemoryDisk();
    for (let i = 0; i < 5; i++) {
      const file = new RecordFile(await disk.place().open('r'));
      expect(file.latest).toEqual(i === 0 ? undefined : record(i - 1));
      file.write(record(i));
      file.close();
    }
    expect(readRecord(disk.bytesOf('r') ?? new Uint8Array())).toEqual(record(4));
  });

  it.each([2, 3, 4])(
    'torn at any byte while record %i is written gives that or the one before',
    async (n) => {
      const before = await written(...Array.from({ length: n - 1 }, (_, i) => record(i)));
      const after = await written(...Array.from({ length: n }, (_, i) => record(i)));
      for (let cut = 0; cut <= after.length; cut++) {
        const torn = after.slice();
        torn.set(before.subarray(cut), cut);
        // Where the file grew, only its beginning may be there.
        const file = torn.subarray(0, Math.max(before.length, cut));
        expect([record(n - 2), record(n - 1)], `cut at ${cut}`).toContainEqual(readRecord(file));
        if (cut === after.length) expect(readRecord(file)).toEqual(record(n - 1));
      }
    },
  );

  it('is nothing when it is empty, short, of zeros or of anything else', () => {
    for (const length of [0, 1, 15, 16, 17, 16384, 40000]) {
      expect(readRecord(new Uint8Array(length))).toBeUndefined();
      expect(readRecord(new Uint8Array(length).fill(0x48))).toBeUndefined();
    }
  });

  it('any changed byte of the only record makes it nothing', async () => {
    const bytes = await written(record(7));
    for (let i = 0; i < bytes.length; i++) {
      const damaged = bytes.slice();
      damaged[i] = (damaged[i] ?? 0) ^ 1;
      expect(readRecord(damaged), `byte ${i}`).toBeUndefined();
    }
  });

  it('refuses a record that does not fit, and keeps the one before', async () => {
    const disk = new MemoryDisk();
    const file = new RecordFile(await disk.place().open('r'));
    file.write(record(1));
    expect(file.write({ ...record(2), url: 'x'.repeat(20_000) })).toBe(false);
    expect(readRecord(disk.bytesOf('r') ?? new Uint8Array())).toEqual(record(1));
  });
});
