// Several tabs of one browser over one store, and a browser without a store: one download for all, a tab that is closed in the
// middle of it is taken over from, and the browser is asked to keep what is stored.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FaultServer, Served } from '../web/store/fault_server.js';
import { sha256Of } from '../web/store/loading.js';
import { isInstalled } from './support/browsers.js';
import { patienceMs } from './support/chat.js';
import { besides } from './support/puppeteer_tab.js';
import { type FaultySite, faultyFixture, openFixture } from './support/site.js';
import { begin, list, load, type StorePage } from './support/store_page.js';
import type { EngineName, Tab } from './support/tab.js';

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const MODEL = new Uint8Array(readFileSync(file('examples/models/default-q8_0.gguf')));
const HASH = sha256Of(MODEL);
const SLOW: Served = { bytes: MODEL, pieceBytes: 65_536, pauseMs: 60 };

/** In the page. */
declare const storePage: StorePage;

describe.each<EngineName>(['chromium', 'firefox', 'webkit'])('tabs of %s', (engine) => {
  const skip = !isInstalled(engine);
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let site: FaultySite;
  let server: FaultServer;
  let tab: Tab;
  let nPaths = 0;

  beforeAll(async () => {
    if (skip) return;
    site = await faultyFixture(engine, 'store');
    ({ server, tab } = site);
  });
  beforeEach(async () => {
    if (skip) return;
    await openFixture(tab, site.url);
    await tab.run(() => storePage.store.clear());
  });
  afterAll(() => site?.close());

  const newPath = () => `/model-${nPaths++}.gguf`;

  if (engine === 'webkit') {
    it.skipIf(skip)(
      `no store: the model loads and says so; required, it is a Quota error${why}`,
      async () => {
        expect(await tab.run(() => 'getDirectory' in (navigator.storage ?? {}))).toBe(false);
        const url = server.serve(newPath(), { bytes: MODEL });
        const { download, tokens } = await load(tab, url);
        expect(tokens).toHaveLength(4);
        expect(download).toMatchObject({
          kept: false,
          fromNetworkBytes: MODEL.length,
          notices: ["not kept in the browser's storage: there is none for files here"],
        });
        // As text: its driver takes a result with the key `error` for a failure of its own.
        const required = await tab.run(
          async (at) => JSON.stringify(await storePage.load(at, { store: 'require' })),
          url,
        );
        expect(JSON.parse(required)).toMatchObject({ error: { code: 'Quota' } });
        expect(await list(tab)).toEqual([]);
      },
    );
    return; // the others are about a store
  }

  it.skipIf(skip)(`what is stored is asked to be kept, once for a page${why}`, async () => {
    await tab.run(() => {
      const page = globalThis as unknown as { nAsked: number };
      page.nAsked = 0;
      navigator.storage.persist = async () => {
        page.nAsked += 1;
        return false;
      };
    });
    const nAsked = () => tab.run(() => (globalThis as unknown as { nAsked: number }).nAsked);
    await load(tab, server.serve(newPath(), { bytes: MODEL }), { store: false });
    expect(await nAsked()).toBe(0);
    await load(tab, server.serve(newPath(), { bytes: MODEL }));
    await load(tab, server.serve(newPath(), { bytes: MODEL }));
    expect(await nAsked()).toBe(1);
  });

  it.skipIf(skip)(`two that want one model download it once${why}`, async () => {
    const path = newPath();
    const url = server.serve(path, SLOW);
    const other = await besides(tab);
    await openFixture(other.tab, site.url);
    const both = await Promise.all([load(tab, url), load(other.tab, url)]);
    await other.end();
    for (const { download, error } of both) {
      expect(error).toBeUndefined();
      expect(download).toMatchObject({ kept: true, sha256: [HASH], notices: [] });
    }
    expect(both.some(({ phases }) => phases?.includes('waiting'))).toBe(true);
    expect(server.sentBytes(path)).toBe(MODEL.length);
  });

  it.skipIf(skip)(
    `one that is closed while it downloads: the other goes on where it was${why}`,
    async () => {
      const path = newPath();
      const url = server.serve(path, SLOW);
      const other = await besides(tab);
      await openFixture(other.tab, site.url);
      await begin(other.tab, url);
      await expect
        .poll(async () => (await list(tab))[0]?.bytes ?? 0, { timeout: patienceMs, interval: 50 })
        .toBeGreaterThan(0);
      const waiting = load(tab, url);
      await new Promise((resolve) => setTimeout(resolve, 500));
      await other.end();
      const { download, error, phases } = await waiting;
      expect(error).toBeUndefined();
      expect(phases).toContain('waiting');
      expect(download).toMatchObject({ kept: true, sha256: [HASH], notices: [] });
      const [, rest] = server.seen(path);
      expect(rest?.range).toBe(`bytes=${download?.fromStoreBytes}-`);
      expect(download?.fromStoreBytes).toBeGreaterThan(0);
    },
  );
});
