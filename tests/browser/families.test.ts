// Every family's tiny model in the relaxed module, beside what llama.cpp says (tests/families); the plain module does
// the same in tests/web/families.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine } from 'headlight-wasm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  agreement,
  type CacheType,
  cacheTypes,
  familyNames,
  fedTokens,
  goldenOf,
  maxLogDifference,
} from '../families/agreement.js';
import { makeFamily } from '../families/make_family.mjs';
import { isInstalled } from './support/browsers.js';
import { fixture, openFixture, type Site } from './support/site.js';
import type { Tab } from './support/tab.js';

/** The logits after each of the token lists, from one engine of the relaxed module. */
function logitsOf(tab: Tab, url: string, cache: CacheType, lists: number[][]): Promise<number[][]> {
  return tab.run(
    async (model, kv, all) => {
      const page = globalThis as unknown as { headlight: { Engine: typeof Engine } };
      const engine = await page.headlight.Engine.load(new URL(model, location.href), {
        module: 'relaxed',
        threads: 1,
        kvCache: { k: kv, v: kv },
      });
      const rows: number[][] = [];
      for (const tokens of all) rows.push(Array.from((await engine.forward(tokens)).logits));
      await engine.dispose();
      return rows;
    },
    url,
    cache,
    lists,
  );
}

const skip = !isInstalled('chromium');
const why = skip ? ' (needs chromium: npm run setup)' : '';
describe.skipIf(skip)(`families in the relaxed module${why}`, () => {
  const models = mkdtempSync(join(tmpdir(), 'headlight-families-'));
  let tab: Tab;
  let site: Site;

  beforeAll(async () => {
    for (const name of familyNames) writeFileSync(join(models, `${name}.gguf`), makeFamily(name));
    const options = { isolation: true, more: { '/models/': models } };
    site = await fixture('chromium', 'engine', options);
    tab = site.tab;
    await openFixture(tab, site.url);
  });

  afterAll(async () => {
    await site?.close();
    rmSync(models, { recursive: true });
  });

  const cases = familyNames.flatMap((name) => cacheTypes.map((cache) => ({ name, cache })));
  it.each(cases)('$name gives llama.cpp’s probabilities, $cache cache', async ({ name, cache }) => {
    const golden = goldenOf(name, cache);
    const lists = golden.flatMap(({ n }) => fedTokens(name, n));
    const rows = golden.flatMap(({ logProbabilities }) => logProbabilities);
    const logits = await logitsOf(tab, `/models/${name}.gguf`, cache, lists);
    expect(logits).toHaveLength(rows.length);
    for (const [i, row] of rows.entries()) {
      const found = agreement(logits[i] ?? [], row);
      expect(found.sameTop).toBe(true);
      expect(found.maxDifference).toBeLessThan(maxLogDifference(name, cache));
    }
  });
});
