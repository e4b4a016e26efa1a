// A device that fails, in real browsers: pending calls end with typed errors, restart() works, and a page whose threads do
// not start runs with one and says so.
import { renameSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type * as Headlight from 'headlight-wasm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type BrokenPackage, breakPackage, FAULTS } from '../web/runtime/broken_package.js';
import { isInstalled } from './support/browsers.js';
import { fixture, openFixture, type Site } from './support/site.js';
import type { Tab } from './support/tab.js';

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const MODEL = '/models/default-q8_0.gguf';

/** In the page; fixtures/engine/main.js and the tests below put it there. */
interface Page {
  headlight: typeof Headlight;
  engine: Headlight.Engine;
  Worker: typeof Worker;
}

const load = (tab: Tab, options: object) =>
  tab.run(
    async (url, loadOptions) => {
      const page = globalThis as unknown as Page;
      try {
        page.engine = await page.headlight.Engine.load(new URL(url, location.href), loadOptions);
        return { runtime: page.engine.info.runtime, code: '' };
      } catch (error) {
        return { runtime: undefined, code: (error as Headlight.HeadlightError).code };
      }
    },
    MODEL,
    options,
  );

/** Codes of the errors that many calls at once end with; '' for none. */
const callEverything = (tab: Tab) =>
  tab.run(async () => {
    const { engine } = globalThis as unknown as Page;
    const options = { temperature: 0, maxTokens: 400, ignoreEndOfGeneration: true };
    const session = engine.session();
    const calls: Promise<unknown>[] = [
      engine.complete([1, 5, 9], options).result(),
      engine.complete([1, 5], options).result(),
      session.complete([1, 7], options).result(),
      engine.forward([1, 5]),
    ];
    // Until the fault comes.
    calls.push(
      (async () => {
        for (;;) await session.complete([1, 7, 9], options).result();
      })(),
    );
    return Promise.all(
      calls.map((call) =>
        call.then(
          () => '',
          (error) => String(error.code),
        ),
      ),
    );
  });

const restartAndAnswer = (tab: Tab) =>
  tab.run(async () => {
    const { engine } = globalThis as unknown as Page;
    await engine.restart();
    const messages = [{ role: 'user', content: 'Who are you?' }];
    const { text } = await engine.chat(messages, { temperature: 0 }).result();
    await engine.dispose();
    return text;
  });

describe.each(['chromium', 'firefox'] as const)('faults in %s', (engine) => {
  const skip = !isInstalled(engine);
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let tab: Tab;
  let site: Site;
  let broken: BrokenPackage;

  beforeAll(async () => {
    if (skip) return;
    broken = breakPackage((glue) => glue);
    const more = { '/models/': file('examples/models') };
    site = await fixture(engine, 'engine', { isolation: true, runtime: broken.folder, more });
    tab = site.tab;
  });
  beforeEach(async () => {
    if (skip) return;
    await openFixture(tab, site.url);
  });
  afterAll(async () => {
    await site?.close();
    broken?.remove();
  });

  it.skipIf(skip)(`a trap in a thread of the pool: WorkerLost, then restart()${why}`, async () => {
    broken.break(FAULTS.threadTraps);
    expect(await load(tab, { threads: 2, module: 'simd' })).toMatchObject({ code: '' });
    expect(await callEverything(tab)).toEqual(new Array(5).fill('WorkerLost'));
    broken.mend();
    expect(await restartAndAnswer(tab)).toMatch(/^I am/);
  });

  it.skipIf(skip)(`a worker that dies: WorkerLost, then restart()${why}`, async () => {
    broken.break(FAULTS.workerDies);
    expect(await load(tab, { threads: 1, module: 'simd' })).toMatchObject({ code: '' });
    expect((await callEverything(tab)).at(-1)).toBe('WorkerLost');
    broken.mend();
    expect(await restartAndAnswer(tab)).toMatch(/^I am/);
  });

  it.skipIf(skip)(
    `a module that the server has not: Network, and restart() later${why}`,
    async () => {
      broken.mend();
      expect(await load(tab, { threads: 1, module: 'simd' })).toMatchObject({ code: '' });
      for (const name of ['headlight-simd.wasm', 'headlight-simd.mjs']) {
        const [there, away] = [name, `${name}.away`].map((at) =>
          path.join(broken.folder, 'wasm', at),
        );
        renameSync(there as string, away as string);
        const missing = await tab.run(() =>
          (globalThis as unknown as Page).engine.restart().then(
            () => undefined,
            ({ code, details }) => ({ code, ...details }),
          ),
        );
        expect(missing).toMatchObject({
          code: 'Network',
          status: 404,
          url: `${site.url}runtime/wasm/${name}`,
        });
        renameSync(away as string, there as string);
      }
      expect(await restartAndAnswer(tab)).toMatch(/^I am/);
    },
  );

  it.skipIf(skip)(`threads that do not start: one thread, and the reason${why}`, async () => {
    broken.break(FAULTS.threadsDoNotStart);
    await tab.run(() => {
      Object.defineProperty(navigator, 'hardwareConcurrency', { value: 4 });
    });
    const { runtime } = await load(tab, { module: 'simd' });
    expect(runtime).toMatchObject({ module: 'simd', threads: 1 });
    expect(runtime?.reasons.join('; ')).toMatch(/not simd-threads with 2 thread\(s\)/);
    expect((await load(tab, { module: 'simd', threads: 2 })).code).toBe('WorkerLost');
  });

  it.skipIf(skip)(
    `memory that does not grow: OutOfMemory, and what is there goes on${why}`,
    async () => {
      broken.break(FAULTS.memoryDoesNotGrow);
      expect(await load(tab, { threads: 1, module: 'simd', nCtx: 64 })).toMatchObject({ code: '' });
      const found = await tab.run(async () => {
        const { engine } = globalThis as unknown as Page;
        const options = { temperature: 0, maxTokens: 8, ignoreEndOfGeneration: true };
        const next = async () => (await engine.complete([1, 5, 9], options).result()).tokens.join();
        const before = await next();
        let error: Partial<Headlight.HeadlightError> = {};
        // Each session has a cache of its own.
        for (let i = 0; i < 500 && error.code === undefined; i++) {
          const more = engine.session().complete([1, 5], options).result();
          await more.catch((thrown) => {
            error = thrown;
          });
        }
        const { code, details } = error;
        return { code, details, isSame: before === (await next()) };
      });
      expect(found).toEqual({
        code: 'OutOfMemory',
        details: expect.objectContaining({ neededBytes: expect.any(Number), hadBytes: 16 << 20 }),
        isSame: true,
      });
      await tab.run(() => (globalThis as unknown as Page).engine.dispose());
    },
  );

  // A worker of Firefox that makes seven others hangs in one of three or four times; see worker/pool_workers.ts.
  it.skipIf(skip)(`pools of eight threads stand at the first try${why}`, async () => {
    broken.mend();
    for (let i = 0; i < 8; i++) {
      const { runtime } = await load(tab, { threads: 8, module: 'simd' });
      expect(runtime).toMatchObject({ module: 'simd-threads', threads: 8 });
      expect(runtime?.reasons.join()).not.toMatch(/hung/);
      await tab.run(() => (globalThis as unknown as Page).engine.dispose());
    }
  });

  it.skipIf(skip)(`dispose() ends the worker and its threads${why}`, async () => {
    broken.mend();
    // In Firefox the page makes the thread's worker too (worker/pool_workers.ts).
    const [nMade, nEnded] = await tab.run(async (url) => {
      const page = globalThis as unknown as Page;
      let [made, ended] = [0, 0];
      page.Worker = class extends Worker {
        constructor(...of: ConstructorParameters<typeof Worker>) {
          super(...of);
          made += 1;
        }
        override terminate(): void {
          super.terminate();
          ended += 1;
        }
      };
      for (let i = 0; i < 3; i++) {
        const options = { threads: 2, module: 'simd' } as const;
        const loaded = await page.headlight.Engine.load(new URL(url, location.href), options);
        await loaded.complete([1, 5], { maxTokens: 3 }).result();
        await loaded.dispose();
      }
      return [made, ended] as const;
    }, MODEL);
    expect(nMade).toBe(engine === 'firefox' ? 6 : 3);
    expect(nEnded).toBe(nMade);
  });
});
