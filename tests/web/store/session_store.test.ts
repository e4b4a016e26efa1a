// Saved sessions by name, over a place in memory.
import { describe, expect, it } from 'vitest';
import { ModelStore } from '../../../web/runtime/src/store/model_store.js';
import { type SessionPlace, SessionStore } from '../../../web/runtime/src/store/session_store.js';

function memoryPlace(failing = false): SessionPlace & { files: Map<string, Uint8Array> } {
  const files = new Map<string, Uint8Array>();
  let now = 0;
  const times = new Map<string, number>();
  return {
    files,
    names: async () => [...files.keys()],
    read: async (name) => {
      const bytes = files.get(name);
      return bytes && { data: new Blob([bytes.slice()]), savedAt: times.get(name) ?? 0 };
    },
    write: async (name, bytes) => {
      if (failing) throw new DOMException('full', 'QuotaExceededError');
      files.set(name, bytes.slice());
      times.set(name, ++now);
    },
    remove: async (name) => files.delete(name),
  };
}

describe('session store', () => {
  it('keeps, replaces, lists and deletes by any name', async () => {
    const place = memoryPlace();
    place.files.set('something else', new Uint8Array(3));
    place.files.set('100%.session', new Uint8Array(3));
    const store = new SessionStore(async () => place);
    const names = ['a', '../b', 'über/😀', '.', 'x'.repeat(200)];
    for (const [i, name] of names.entries()) await store.put(name, Uint8Array.of(i));
    await store.put('a', Uint8Array.of(7, 8));
    expect(await store.get('a')).toEqual(Uint8Array.of(7, 8));
    expect(await store.get('über/😀')).toEqual(Uint8Array.of(2));
    expect((await store.list()).map(({ name }) => name)).toEqual([
      'a',
      ...names.slice(1).reverse(),
    ]);
    expect([...place.files.keys()].some((name) => name.includes('/'))).toBe(false);
    expect(await store.delete('a')).toBe(true);
    expect(await store.delete('a')).toBe(false);
    expect(await store.get('a')).toBeUndefined();
  });

  it('refuses names that no file can have', async () => {
    const store = new SessionStore(async () => memoryPlace());
    for (const name of ['', 'x'.repeat(250), '\ud800', 5 as never])
      await expect(store.put(name, new Uint8Array())).rejects.toMatchObject({ code: 'BadOption' });
  });

  it('refuses what are no bytes, and does not call it a lack of space', async () => {
    const store = new SessionStore(async () => memoryPlace());
    for (const bytes of [undefined, 'abc', [1, 2]])
      await expect(store.put('a', bytes as never)).rejects.toMatchObject({ code: 'BadOption' });
  });

  it('a forbidden storage is a QuotaError with the reason, and so it is for models', async () => {
    const forbidden = async () => {
      throw new DOMException('no', 'SecurityError');
    };
    const sessions = new SessionStore(forbidden);
    const models = new ModelStore(forbidden, async () => false);
    const calls = [
      () => sessions.put('a', new Uint8Array()),
      () => sessions.get('a'),
      () => sessions.list(),
      () => sessions.delete('a'),
      () => models.list(),
      () => models.use(),
      () => models.file('http://a.test/m'),
      () => models.delete('http://a.test/m'),
      () => models.clear(),
    ];
    for (const call of calls)
      await expect(call()).rejects.toMatchObject({
        code: 'Quota',
        message: expect.stringMatching(/SecurityError: no\. /),
      });
  });

  it('without storage, or with too little, is a QuotaError with the bytes', async () => {
    for (const place of [undefined, memoryPlace(true)]) {
      const store = new SessionStore(async () => place);
      await expect(store.put('a', new Uint8Array(5))).rejects.toMatchObject({
        code: 'Quota',
        details: { neededBytes: 5 },
      });
      expect(await store.list()).toEqual([]);
      expect(await store.get('a')).toBeUndefined();
    }
  });
});
