// The store in real browsers: the origin private file system, Web Locks and the network stack of each, with pages and
// workers that are ended in the middle. The server counts what it sends.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { splitGguf } from '../web/gguf_edit.js';
import { FaultServer, type Served } from '../web/store/fault_server.js';
import { sha256Of } from '../web/store/loading.js';
import { randomSource } from '../web/text/vocabularies.js';
import { isInstalled } from './support/browsers.js';
import { patienceMs } from './support/chat.js';
import { type FaultySite, faultyFixture, openFixture } from './support/site.js';
import { begin, list, load, look, type StorePage } from './support/store_page.js';
import type { Tab } from './support/tab.js';

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const MODEL = new Uint8Array(readFileSync(file('examples/models/default-q8_0.gguf')));
const HASH = sha256Of(MODEL);
/** What a look at a header asks for at first. */
const HEADER_BYTES = 1 << 20;
const FIRST_PIECE = `bytes=0-${HEADER_BYTES - 1}`;

/** In the page. */
declare const storePage: StorePage;

describe.each(['chromium', 'firefox'] as const)('the store in %s', (engine) => {
  const skip = !isInstalled(engine);
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let site: FaultySite;
  let server: FaultServer;
  let elsewhere: FaultServer;
  let tab: Tab;
  let nPaths = 0;

  beforeAll(async () => {
    if (skip) return;
    site = await faultyFixture(engine, 'store');
    ({ server, tab } = site);
    elsewhere = new FaultServer();
    await elsewhere.start();
  });
  beforeEach(async () => {
    if (skip) return;
    await openPage();
    await tab.run(() => storePage.store.clear());
  });
  afterAll(async () => {
    await site?.close();
    await elsewhere?.stop();
  });

  const openPage = () => openFixture(tab, site.url);
  const newPath = () => `/model-${nPaths++}.gguf`;
  /** Slow enough that records are written on the way, and that a cut does not overtake the bytes before it. */
  const SLOW: Served = { bytes: MODEL, pieceBytes: 65_536, pauseMs: 20 };
  const STEADY: Served = { bytes: MODEL, pieceBytes: 262_144, pauseMs: 10 };

  it.skipIf(skip)(`keeps a model; the next visit needs no server${why}`, async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: MODEL });
    const first = await load(tab, url);
    expect(first.download).toEqual({
      fromNetworkBytes: MODEL.length,
      fromStoreBytes: 0,
      kept: true,
      sha256: [HASH],
      notices: [],
    });
    server.files.delete(path);
    await openPage();
    const second = await load(tab, url, { sha256: HASH });
    expect(second.download).toMatchObject({ fromNetworkBytes: 0, fromStoreBytes: MODEL.length });
    expect(second.tokens).toEqual(first.tokens);
    expect(server.seen(path)).toHaveLength(1);
  });

  it.skipIf(skip)(`tells of a stored model without a server what it takes${why}`, async () => {
    const path = newPath();
    const url = server.serve(path, { bytes: MODEL });
    await load(tab, url);
    server.files.delete(path);
    await openPage();
    expect(await look(tab, url)).toEqual([MODEL.length, MODEL.length]);
    expect(server.seen(path)).toHaveLength(1);
    expect(await list(tab)).toHaveLength(1);
  });

  it.skipIf(skip)(`lists, measures, gives and deletes${why}`, async () => {
    const url = server.serve(newPath(), { bytes: MODEL });
    await load(tab, url);
    const about = { isWhole: true, bytes: MODEL.length, totalBytes: MODEL.length, sha256: HASH };
    expect(await list(tab)).toMatchObject([{ url, ...about }]);
    expect(await tab.run(() => storePage.store.use())).toMatchObject({
      modelsBytes: MODEL.length,
      freeBytes: expect.any(Number),
    });
    const { pathname } = new URL(url);
    for (const address of [url, pathname, pathname.slice(1)])
      expect(await tab.run((at) => storePage.store.size(at), address)).toBe(MODEL.length);
    expect(await tab.run((at) => storePage.store.delete(at), pathname)).toBe(true);
    expect(await list(tab)).toEqual([]);
  });

  it.skipIf(skip)(`names the policy where it forbids an address${why}`, async () => {
    const address = `data:application/octet-stream,${'x'.repeat(1000)}`;
    const { error } = await load(tab, address);
    expect(error).toMatchObject({
      code: 'Network',
      message: expect.stringMatching(/^.{200} could not be fetched .*connect-src/),
    });
  });

  it.skipIf(skip)(
    `a download that a reload ended goes on where its last record is${why}`,
    async () => {
      const path = newPath();
      const stall = { kind: 'stall', afterBytes: 2_500_000 } as const;
      const url = server.serve(path, SLOW, stall);
      await begin(tab, url);
      await expect
        .poll(async () => (await list(tab))[0]?.bytes ?? 0, { timeout: patienceMs, interval: 100 })
        .toBeGreaterThan(0);
      await openPage();
      const [part] = await list(tab);
      expect(part).toMatchObject({ url, isWhole: false });
      const { download } = await load(tab, url);
      expect(download).toMatchObject({ fromStoreBytes: part?.bytes, kept: true, sha256: [HASH] });
      const [, resumed] = server.seen(path);
      expect(resumed).toMatchObject({
        range: `bytes=${part?.bytes}-`,
        sentBytes: MODEL.length - (part?.bytes ?? 0),
      });
      expect(resumed?.ifRange).toMatch(/^"/);
    },
  );

  it.skipIf(skip)(`reloads at random moments lose nothing${why}`, async () => {
    const pick = randomSource(engine === 'chromium' ? 1 : 2);
    const url = server.serve(newPath(), SLOW);
    let kills = 0;
    for (; kills < 6; kills++) {
      await begin(tab, url);
      await new Promise((resolve) => setTimeout(resolve, 100 + pick(900)));
      await openPage();
    }
    const { download, error } = await load(tab, url);
    expect(error).toBeUndefined();
    expect(download).toMatchObject({ kept: true, sha256: [HASH], notices: [] });
  });

  it.skipIf(skip)(`cuts at random bytes: the same hash, no byte sent twice${why}`, async () => {
    const pick = randomSource(7);
    for (let i = 0; i < 5; i++) {
      const path = newPath();
      const first = pick(MODEL.length);
      const cuts = [first, pick(MODEL.length - first)].map(
        (afterBytes) => ({ kind: 'cut', afterBytes }) as const,
      );
      const url = server.serve(path, STEADY, ...cuts);
      const { download, error } = await load(tab, url);
      expect(error, `cuts at ${JSON.stringify(cuts)}`).toBeUndefined();
      expect(download).toMatchObject({ kept: true, sha256: [HASH] });
      expect(server.sentBytes(path)).toBe(MODEL.length);
    }
  });

  it.skipIf(skip)(`an aborted download frees its lock and file at once${why}`, async () => {
    const path = newPath();
    const url = server.serve(path, SLOW, { kind: 'stall', afterBytes: 1_000_000 });
    await begin(tab, url);
    // Else the next load would meet the stalled answer.
    await expect.poll(() => server.sentBytes(path), { timeout: patienceMs }).toBe(1_000_000);
    await tab.run(() => storePage.abort.abort());
    expect((await load(tab, url)).download).toMatchObject({ kept: true, sha256: [HASH] });
  });

  it.skipIf(skip)(`two workers that want one model download it once${why}`, async () => {
    const path = newPath();
    const url = server.serve(path, SLOW);
    const both = await tab.run((at) => Promise.all([storePage.load(at), storePage.load(at)]), url);
    expect(both.map(({ download }) => download?.sha256)).toEqual([[HASH], [HASH]]);
    // On a machine that does other things the first may also have waited for the other's look into the store.
    expect(both.some(({ phases }) => phases?.includes('waiting'))).toBe(true);
    expect(server.sentBytes(path)).toBe(MODEL.length);
  });

  it.skipIf(skip)(`the files of a split model come in parallel and are kept${why}`, async () => {
    const id = nPaths++;
    const shards = splitGguf(MODEL, 4);
    const urls = shards.map((bytes, i) =>
      server.serve(`/split-${id}-0000${i + 1}-of-00004.gguf`, { ...SLOW, bytes, pauseMs: 60 }),
    );
    server.peak = 0;
    const { download, tokens } = await load(tab, urls[0] ?? '');
    const nBytes = shards.reduce((sum, { length }) => sum + length, 0);
    const sha256 = shards.map(sha256Of);
    expect(download).toMatchObject({ fromNetworkBytes: nBytes, kept: true, sha256, notices: [] });
    expect(server.peak).toBe(3);
    const again = await load(tab, urls[0] ?? '');
    expect(again.download).toMatchObject({ fromNetworkBytes: 0, fromStoreBytes: nBytes });
    expect(again.tokens).toEqual(tokens);
  });

  it.skipIf(skip)(`a file that changed is taken from its first byte${why}`, async () => {
    const other = MODEL.slice();
    other[other.length - 1] = (other.at(-1) ?? 0) ^ 1;
    const cut = { kind: 'cut', afterBytes: 1_000_000 } as const;
    const url = server.serve(newPath(), STEADY, cut, {
      kind: 'change',
      to: { bytes: other },
    });
    const { download } = await load(tab, url);
    expect(download).toMatchObject({ kept: true, sha256: [sha256Of(other)] });
    expect(download?.notices).toHaveLength(1);
  });

  it.skipIf(skip)(
    `another origin: no preflight; with the hash a part goes on, without it not${why}`,
    async () => {
      const cut = { kind: 'cut', afterBytes: 1_000_000 } as const;
      const headers = { 'access-control-allow-origin': '*' };
      for (const options of [{ sha256: HASH }, {}]) {
        const path = newPath();
        const url = elsewhere.serve(path, { ...STEADY, headers }, cut);
        const { download, error } = await load(tab, url, options);
        expect(error).toBeUndefined();
        expect(download).toMatchObject({ kept: true, sha256: [HASH] });
        const seen = elsewhere.seen(path);
        expect(seen.map(({ method }) => method)).toEqual(['GET', 'GET']);
        expect(seen[1]?.range).toBe('sha256' in options ? 'bytes=1000000-' : undefined);
      }
    },
  );

  it.skipIf(skip)(
    `another origin that names its version: a part goes on, without preflight${why}`,
    async () => {
      const headers = {
        'access-control-allow-origin': '*',
        'access-control-expose-headers': 'ETag, Content-Range',
      };
      const path = newPath();
      const cut = { kind: 'cut', afterBytes: 1_000_000 } as const;
      const url = elsewhere.serve(path, { ...STEADY, headers }, cut);
      expect((await load(tab, url)).download).toMatchObject({ kept: true, sha256: [HASH] });
      expect(elsewhere.sentBytes(path)).toBe(MODEL.length);
      expect(elsewhere.seen(path).map(({ method }) => method)).toEqual(['GET', 'GET']);
    },
  );

  it.skipIf(skip).each<[string, Partial<Served>, boolean]>([
    ['hides what part it gives and of which version', {}, true],
    ['gives no parts', { ranges: false }, false],
    ['hides that, and tells no length', { tellsLength: false }, true],
  ])(
    `another origin that refuses preflights and %s: a model is looked at before it is loaded${why}`,
    async (_, served, givesParts) => {
      const headers = { 'access-control-allow-origin': '*' };
      const path = newPath();
      const url = elsewhere.serve(path, { ...STEADY, ...served, headers });
      expect(await look(tab, url)).toEqual([MODEL.length, MODEL.length]);
      const seen = elsewhere.seen(path);
      expect(seen[0]).toMatchObject({ method: 'GET', range: FIRST_PIECE });
      // Chromium's cache asks by itself whether what it has of the piece is still right, then for the rest.
      const asked = engine === 'chromium' ? /^bytes=\d+-(\d+)$/ : /^bytes=0-(\d+)$/;
      for (const { method, range } of seen) {
        expect(method).toBe('GET');
        expect(range).toMatch(asked);
        expect(Number(asked.exec(range ?? '')?.[1])).toBeLessThan(HEADER_BYTES);
      }
      // A server that gives no parts goes on until it notices that nobody listens.
      if (givesParts) expect(elsewhere.sentBytes(path)).toBeLessThanOrEqual(2 * HEADER_BYTES);
      expect(await list(tab)).toEqual([]);
      expect((await load(tab, url)).download).toMatchObject({ kept: true, sha256: [HASH] });
    },
  );

  it.skipIf(skip)(
    `another origin from which the browser lets no range be asked: a model is looked at all the same${why}`,
    async () => {
      const path = newPath();
      // As where the browser asks first and the server refuses.
      const url = elsewhere.serve(path, {
        bytes: MODEL,
        headers: { 'access-control-allow-origin': '*' },
      });
      elsewhere.refusesRanges = true;
      try {
        expect(await look(tab, url)).toEqual([MODEL.length, MODEL.length]);
      } finally {
        elsewhere.refusesRanges = false;
      }
      const ranges = elsewhere.seen(path).map(({ range }) => range);
      expect([...new Set(ranges)]).toEqual([FIRST_PIECE, undefined]);
    },
  );

  it.skipIf(skip)(
    `an address here that leads elsewhere: a part goes on all the same${why}`,
    async () => {
      const headers = {
        'access-control-allow-origin': '*',
        'access-control-expose-headers': 'ETag, Content-Range',
      };
      const path = newPath();
      const cut = { kind: 'cut', afterBytes: 1_000_000 } as const;
      const to = elsewhere.serve(path, { ...STEADY, headers }, cut);
      const redirects = Array.from({ length: 5 }, () => ({ kind: 'redirect', to }) as const);
      const url = server.serve(path, { bytes: MODEL }, ...redirects);
      expect((await load(tab, url)).download).toMatchObject({ kept: true, sha256: [HASH] });
      expect(elsewhere.sentBytes(path)).toBe(MODEL.length);
    },
  );

  it.skipIf(skip)(
    `faults are typed errors, and nothing is kept of a wrong file${why}`,
    async () => {
      const refused = server.serve(newPath(), { bytes: MODEL }, { kind: 'status', status: 403 });
      const page = server.serve(newPath(), { bytes: MODEL }, { kind: 'html' });
      const wrong = server.serve(newPath(), { bytes: MODEL });
      expect((await load(tab, refused)).error).toMatchObject({
        code: 'Network',
        details: { status: 403 },
      });
      expect((await load(tab, page)).error).toMatchObject({ code: 'Network' });
      expect((await load(tab, wrong, { sha256: 'f'.repeat(64) })).error).toMatchObject({
        code: 'Integrity',
        details: { sha256: HASH },
      });
      expect(await list(tab)).toEqual([]);
    },
  );
});
