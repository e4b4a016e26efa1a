// What the model dialog makes of the files in the store.
import type { StoredModel } from 'headlight-wasm';
import { describe, expect, test } from 'vitest';
import {
  choiceFromStored,
  describeStored,
  groupStored,
} from '../../../web/pages/chat/stored_groups.js';

const stored = (url: string, changes: Partial<StoredModel> = {}): StoredModel => ({
  url,
  isWhole: true,
  bytes: 1_000_000,
  totalBytes: 1_000_000,
  savedAt: 1,
  ...changes,
});
const shard = (i: number, n: number) => `https://a.example/m/big-0000${i}-of-0000${n}.gguf?x=1`;

describe('stored models', () => {
  test('a file is a model with the name of its address', () => {
    const [one] = groupStored([stored('https://a.example/m/Tiny%20model.gguf')]);
    expect(one).toMatchObject({ name: 'Tiny model', host: 'a.example', isWhole: true });
    expect(one && describeStored(one)).toBe('1.0 MB');
    expect(one && choiceFromStored(one)).toMatchObject({
      kind: 'url',
      name: 'Tiny model',
      source: new URL('https://a.example/m/Tiny%20model.gguf'),
    });
  });

  test('an interrupted download says how far it came', () => {
    const [known] = groupStored([stored('https://a/x.gguf', { isWhole: false, bytes: 400_000 })]);
    expect(known && describeStored(known)).toBe('400 kB of 1.0 MB, download not finished');
    const { totalBytes: _, ...unknown } = stored('https://a/x.gguf', { isWhole: false });
    const [one] = groupStored([unknown]);
    expect(one && describeStored(one)).toBe('1.0 MB, download not finished');
  });

  test('the files of a split model are one, loaded by its first address', () => {
    const all = groupStored([3, 1, 2].map((i) => stored(shard(i, 3))));
    expect(all).toHaveLength(1);
    expect(all[0]).toMatchObject({ name: 'big', bytes: 3_000_000, isWhole: true });
    expect(all[0]?.urls).toEqual([1, 2, 3].map((i) => shard(i, 3)));
    const some = groupStored([stored(shard(2, 3))]);
    expect(some[0]).toMatchObject({ isWhole: false, totalBytes: undefined });
    expect(some[0] && choiceFromStored(some[0]).source).toEqual(new URL(shard(1, 3)));
  });

  test('files of one name on two servers stay two', () => {
    const urls = ['https://a.example/x.gguf', 'https://b.example/x.gguf'];
    expect(groupStored(urls.map((url) => stored(url))).map(({ host }) => host)).toEqual([
      'a.example',
      'b.example',
    ]);
  });
});
