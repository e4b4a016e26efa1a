// The same greedy tokens in every browser and every module: the default model against known ids, stories260K (of
// ../shared, where it is there) against what the plain module gives in Node.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Engine } from 'headlight-wasm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled, settings } from './support/browsers.js';
import { fixture, openFixture, type Site } from './support/site.js';
import type { Tab } from './support/tab.js';

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const golden = JSON.parse(readFileSync(file('tests/golden/default_model.json'), 'utf8')) as {
  prompts: { ids: number[]; greedy_ids: number[] }[];
};
const sharedModels = file('../shared/models');
const storiesPath = `${sharedModels}/stories260K.gguf`;
const storiesPrompt = { tokens: [1, 403, 407, 261, 378], maxTokens: 96 };

interface Greedy {
  ids: number[][];
  runtime: { module: string; threads: number; dotForm: string; reasons: string[] };
}

const modules = [
  { module: 'simd', threads: 1 },
  { module: 'relaxed', threads: 1 },
  { module: 'simd', threads: 2 },
  { module: 'relaxed', threads: 2 },
] as const;

function greedy(tab: Tab, model: string, options: object, prompts: object[]): Promise<Greedy> {
  return tab.run(
    (url, loadOptions, all) =>
      (globalThis as unknown as { greedy: (...args: unknown[]) => Promise<Greedy> }).greedy(
        url,
        loadOptions,
        all,
      ),
    model,
    options,
    prompts,
  );
}

describe.each(settings)('engine, $title', ({ engine, isolation }) => {
  const skip = !isInstalled(engine);
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let tab: Tab;
  let site: Site;
  // WebKitGTK has no relaxed SIMD; without isolation there are no threads.
  const here = modules.filter(
    ({ module, threads }) =>
      (isolation || threads === 1) && (engine !== 'webkit' || module === 'simd'),
  );

  beforeAll(async () => {
    if (skip) return;
    const shared = existsSync(sharedModels) ? { '/shared/': sharedModels } : {};
    const more = { '/models/': file('examples/models'), ...shared };
    site = await fixture(engine, 'engine', { isolation, more });
    tab = site.tab;
    await openFixture(tab, site.url);
  });

  afterAll(() => site?.close());

  it.skipIf(skip).each(here)(
    `default model, $module, $threads thread(s): the known greedy ids${why}`,
    async (options) => {
      const prompts = golden.prompts.map(({ ids, greedy_ids }) => ({
        tokens: ids,
        maxTokens: greedy_ids.length,
      }));
      const { ids, runtime } = await greedy(tab, '/models/default-q8_0.gguf', options, prompts);
      expect(ids).toEqual(golden.prompts.map((prompt) => prompt.greedy_ids));
      expect(runtime.module).toBe(
        options.threads > 1 ? `${options.module}-threads` : options.module,
      );
      expect(runtime.threads).toBe(options.threads);
    },
  );

  const noStories = !existsSync(storiesPath);
  it.skipIf(skip || noStories).each(here)(
    `stories260K (../shared), $module, $threads thread(s): the ids of Node's plain module${why}`,
    async (options) => {
      const inNode = await Engine.load(storiesPath, { module: 'simd', threads: 1 });
      const expected = await inNode
        .complete(storiesPrompt.tokens, {
          temperature: 0,
          maxTokens: storiesPrompt.maxTokens,
          ignoreEndOfGeneration: true,
        })
        .result();
      await inNode.dispose();
      const { ids } = await greedy(tab, '/shared/stories260K.gguf', options, [storiesPrompt]);
      expect(ids).toEqual([expected.tokens]);
    },
  );

  if (isolation) return; // the next one is about pages without it
  it.skipIf(skip)(
    `threads that cannot be honoured are refused, with the reason${why}`,
    async () => {
      const error = await tab.run(async () => {
        const { Engine: Loaded } = (
          globalThis as unknown as { headlight: { Engine: typeof Engine } }
        ).headlight;
        try {
          await Loaded.load(new URL('/models/default-q8_0.gguf', location.href), { threads: 2 });
          return null;
        } catch (caught) {
          const { code, message } = caught as { code: string; message: string };
          return { code, message };
        }
      });
      expect(error?.code).toBe('BadOption');
      expect(error?.message).toMatch(/isolat/i);
    },
  );
});
