// A callback of the user's that throws ends its own call, typed, and nothing else: no uncaught error, which ends Node.
import { describe, expect, it } from 'vitest';
import { AbortedError } from '../../../web/runtime/src/errors.js';
import type { LoadProgress } from '../../../web/runtime/src/types.js';
import { fakePlatform, loadFake } from './fake_platform.js';

const mine = new Error('mine');
function throwMine(): never {
  throw mine;
}
const named = (option: string) => ({ code: 'BadOption', cause: mine, details: { option } });

describe('a callback that throws', () => {
  it.each<LoadProgress['phase']>(['module', 'weights', 'ready'])(
    'onProgress in phase %s: the load is rejected and its worker ended',
    async (at) => {
      const platform = fakePlatform();
      const onProgress = ({ phase }: LoadProgress) => phase === at && throwMine();
      await expect(loadFake(platform, { onProgress })).rejects.toMatchObject(named('onProgress'));
      expect(platform.workers.every(({ terminated }) => terminated)).toBe(true);
    },
  );

  it('onPrefill: the run is rejected, and the next one works', async () => {
    const engine = await loadFake(fakePlatform());
    const run = engine.complete([5, 6]).onPrefill(throwMine);
    await expect(run.result()).rejects.toMatchObject(named('onPrefill'));
    await expect(run[Symbol.asyncIterator]().next()).rejects.toMatchObject(named('onPrefill'));
    expect((await engine.complete([5]).result()).text).toBe('Hello');
  });

  it('an AbortError stays one', async () => {
    const onProgress = () => {
      throw new AbortedError();
    };
    await expect(loadFake(fakePlatform(), { onProgress })).rejects.toMatchObject({
      code: 'Aborted',
    });
  });

  it('onPrefill takes functions only', async () => {
    const engine = await loadFake(fakePlatform());
    const run = engine.complete([5]);
    expect(() => run.onPrefill(undefined as never)).toThrow(/onPrefill: listener is undefined/);
    expect((await run.result()).text).toBe('Hello');
  });
});
