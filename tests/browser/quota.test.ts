// A browser that gives an origin too little storage for a model (Chromium, whose developer tools set the quota): the load goes
// on in memory and says so, or is a Quota error with the numbers where storage was required; nothing stays behind.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { CDPSession } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FaultServer } from '../web/store/fault_server.js';
import { sha256Of } from '../web/store/loading.js';
import { isInstalled } from './support/browsers.js';
import { patienceMs } from './support/chat.js';
import { devtools } from './support/puppeteer_tab.js';
import { type FaultySite, faultyFixture, openFixture } from './support/site.js';
import { list, load, type StorePage } from './support/store_page.js';
import type { Tab } from './support/tab.js';

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const MODEL = new Uint8Array(readFileSync(file('examples/models/default-q8_0.gguf')));
const HASH = sha256Of(MODEL);

/** In the page. */
declare const storePage: StorePage;

describe('a quota that is short, in Chromium', () => {
  const skip = !isInstalled('chromium');
  const why = skip ? ' (needs chromium: npm run setup)' : '';
  let site: FaultySite;
  let server: FaultServer;
  let tab: Tab;
  let tools: CDPSession;
  let expected: number[] | undefined;
  let nPaths = 0;

  beforeAll(async () => {
    if (skip) return;
    site = await faultyFixture('chromium', 'store');
    ({ server, tab } = site);
    tools = await devtools(tab);
    await openPage();
    expected = (await load(tab, server.serve(newPath(), { bytes: MODEL }))).tokens;
  });
  beforeEach(async () => {
    if (skip) return;
    await openPage();
    await tab.run(() => storePage.store.clear());
  });
  afterEach(() => (skip ? undefined : setQuota(undefined)));
  afterAll(() => site?.close());

  const openPage = () => openFixture(tab, site.url);
  const newPath = () => `/model-${nPaths++}.gguf`;

  /** undefined: what the browser gives by itself. */
  async function setQuota(quotaSize: number | undefined): Promise<void> {
    const quota = quotaSize === undefined ? {} : { quotaSize };
    await tools.send('Storage.overrideQuotaForOrigin', { origin: server.url, ...quota });
  }

  /** No record, no data, no file of which neither is known. */
  async function expectNothingKept(): Promise<void> {
    expect(await list(tab)).toEqual([]);
    expect(await tab.run(() => storePage.store.use())).toMatchObject({ modelsBytes: 0 });
    expect(await tab.run(() => storePage.store.clear())).toBe(0);
  }

  /** Begins a load, and takes the quota away when a part is kept. */
  async function loadWhileQuotaShrinks(tellsLength: boolean, options: object) {
    const slow = { bytes: MODEL, pieceBytes: 65_536, pauseMs: 60, tellsLength };
    const loading = load(tab, server.serve(newPath(), slow), options);
    await expect
      .poll(async () => (await list(tab))[0]?.bytes ?? 0, { timeout: patienceMs, interval: 50 })
      .toBeGreaterThan(0);
    await setQuota(1000);
    return loading;
  }

  it.skipIf(skip)(`below the model: it comes into memory, with a notice${why}`, async () => {
    await setQuota(MODEL.length - 1);
    const path = newPath();
    const { download, tokens } = await load(tab, server.serve(path, { bytes: MODEL }));
    expect(tokens).toEqual(expected);
    expect(download).toMatchObject({ kept: false, fromNetworkBytes: MODEL.length });
    expect(download?.notices).toHaveLength(1);
    expect(download?.notices[0]).toMatch(/it needs \d+ bytes: .*space/);
    expect(server.sentBytes(path)).toBe(MODEL.length);
    await expectNothingKept();
  });

  it.skipIf(skip)(`below the model, storage required: a Quota error, early${why}`, async () => {
    await setQuota(MODEL.length - 1);
    const path = newPath();
    const slow = { bytes: MODEL, pieceBytes: 65_536, pauseMs: 10 };
    const { error } = await load(tab, server.serve(path, slow), { store: 'require' });
    expect(error).toMatchObject({ code: 'Quota' });
    const { neededBytes } = error?.details ?? {};
    expect(neededBytes).toBeGreaterThanOrEqual(MODEL.length);
    expect(error?.message).toContain(`needs ${neededBytes} bytes`);
    expect(server.sentBytes(path)).toBeLessThan(MODEL.length / 2);
    await expectNothingKept();
  });

  it.skipIf(skip)(
    `used up on the way: the space was reserved, the model is kept${why}`,
    async () => {
      const { download, tokens } = await loadWhileQuotaShrinks(true, { store: 'require' });
      expect(tokens).toEqual(expected);
      expect(download).toMatchObject({ kept: true, sha256: [HASH], notices: [] });
    },
  );

  it.skipIf(skip)(
    `used up on the way of an unknown length: the rest comes into memory${why}`,
    async () => {
      const { download, tokens } = await loadWhileQuotaShrinks(false, {});
      expect(tokens).toEqual(expected);
      expect(download).toMatchObject({
        kept: false,
        sha256: [HASH],
        fromNetworkBytes: MODEL.length,
      });
      expect(download?.notices.join()).toMatch(/space.*, at byte \d+$/);
      await expectNothingKept();
    },
  );

  it.skipIf(skip)(
    `used up on the way of an unknown length, storage required: a Quota error${why}`,
    async () => {
      const { error } = await loadWhileQuotaShrinks(false, { store: 'require' });
      expect(error).toMatchObject({ code: 'Quota', details: { storedBytes: expect.any(Number) } });
      expect(error?.details.storedBytes).toBeLessThan(MODEL.length);
      await expectNothingKept();
    },
  );

  it.skipIf(skip)(
    `of a stored part whose rest does not fit: the rest comes into memory${why}`,
    async () => {
      const slow = { bytes: MODEL, pieceBytes: 65_536, pauseMs: 20 };
      const path = newPath();
      const url = server.serve(path, slow, { kind: 'stall', afterBytes: 2_000_000 });
      await tab.run((at) => storePage.begin(at), url);
      await expect
        .poll(async () => (await list(tab))[0]?.bytes ?? 0, { timeout: patienceMs, interval: 50 })
        .toBeGreaterThan(0);
      await openPage();
      const [part] = await list(tab);
      await setQuota(1000);
      const { download, tokens, error } = await load(tab, url);
      expect(error).toBeUndefined();
      expect(tokens).toEqual(expected);
      expect(download).toMatchObject({ kept: false, fromStoreBytes: part?.bytes });
      expect(server.seen(path)[1]?.range).toBe(`bytes=${part?.bytes}-`);
      await expectNothingKept();
    },
  );

  it.skipIf(skip)(`that is enough again: the model is kept${why}`, async () => {
    const url = server.serve(newPath(), { bytes: MODEL });
    await setQuota(1000);
    expect((await load(tab, url)).download).toMatchObject({ kept: false });
    await setQuota(undefined);
    expect((await load(tab, url)).download).toMatchObject({
      kept: true,
      sha256: [HASH],
      notices: [],
    });
  });
});
