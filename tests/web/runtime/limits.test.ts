// measureLimits() in Node with the real modules: what it measures is plausible, what it is told is honoured or refused.
import { describe, expect, it } from 'vitest';
import type * as Headlight from '../../../web/runtime/src/index.js';
import { limitsOn } from '../../../web/runtime/src/limits.js';
import { headlight } from '../built_package.js';
import { fakePlatform } from './fake_platform.js';

const { measureLimits } = headlight;

/** Far below any machine that runs this, and above any: a unit that is wrong by a thousand falls out. */
const PLAUSIBLE = {
  readGBs: [0.2, 2000],
  dotGops: [0.5, 20_000],
  fmaGflops: [0.2, 5000],
} as const;

function expectPlausible(limits: Headlight.SpeedLimits): void {
  expect(Object.keys(limits).sort()).toEqual(Object.keys(PLAUSIBLE).sort());
  for (const [name, [low, high]] of Object.entries(PLAUSIBLE)) {
    const value = limits[name as keyof typeof PLAUSIBLE];
    expect(value, name).toBeGreaterThan(low);
    expect(value, name).toBeLessThan(high);
  }
}

describe('measureLimits', () => {
  it.each([
    ['one thread, plain SIMD', { threads: 1, module: 'simd' }],
    ['two threads, plain SIMD', { threads: 2, module: 'simd' }],
  ] as const)(
    '%s: reads, dots and multiply-adds are in the range of machines',
    async (_, options) => {
      expectPlausible(await measureLimits({ ...options, readBytes: 16e6, budgetMs: 90 }));
    },
  );

  it('the budget is kept', async () => {
    await measureLimits({ readBytes: 1e6, budgetMs: 1 });
    const start = performance.now();
    await measureLimits({ readBytes: 1e6, budgetMs: 400 });
    const spent = performance.now() - start;
    expect(spent).toBeGreaterThan(300);
    // The worker's start comes on top, on a busy machine.
    expect(spent).toBeLessThan(5000);
  });

  it.each([
    ['readBytes', -1],
    ['readBytes', 512e6 + 1],
    ['readBytes', Number.NaN],
    ['budgetMs', 0],
    ['budgetMs', 60_001],
    ['module', 'fast'],
    ['threads', 0],
    ['signal', {}],
    ['budget', 3],
  ])('%s: %j is refused by name', async (option, value) => {
    await expect(limitsOn(fakePlatform(), { [option]: value })).rejects.toMatchObject({
      code: 'BadOption',
      details: { option },
    });
  });

  it('a signal ends it at once, and the worker with it', async () => {
    const controller = new AbortController();
    const platform = fakePlatform();
    const measuring = limitsOn(platform, { signal: controller.signal });
    controller.abort();
    await expect(measuring).rejects.toMatchObject({ code: 'Aborted' });
    expect(platform.workers.every(({ terminated }) => terminated)).toBe(true);
    const start = performance.now();
    const real = new AbortController();
    const under = measureLimits({ budgetMs: 20_000, signal: real.signal });
    setTimeout(() => real.abort(), 300);
    await expect(under).rejects.toMatchObject({ code: 'Aborted' });
    expect(performance.now() - start).toBeLessThan(5000);
  });
});
