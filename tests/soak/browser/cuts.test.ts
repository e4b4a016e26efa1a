// Downloads cut at random bytes, again and again, in real browsers: each goes on where it was cut, the file has the same hash in
// the end and the server sends no byte twice. (A thousand more, and kills at each step of the store, are in tests/web/store.)
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { DownloadInfo, StoredModel } from 'headlight-wasm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled } from '../../browser/support/browsers.js';
import { type FaultySite, faultyFixture, openFixture } from '../../browser/support/site.js';
import type { Tab } from '../../browser/support/tab.js';
import { type BrokenPackage, breakPackage } from '../../web/runtime/broken_package.js';
import type { FaultServer } from '../../web/store/fault_server.js';
import { sha256Of } from '../../web/store/loading.js';
import { randomSource } from '../../web/text/vocabularies.js';
import { isLong, repeat, report, SEED, timeFor } from '../plan.js';

const file = (at: string) => fileURLToPath(new URL(`../../../${at}`, import.meta.url));
const MODEL = new Uint8Array(readFileSync(file('examples/models/default-q8_0.gguf')));
const HASH = sha256Of(MODEL);
const CUTS = 10;
/** Of each browser: together a thousand cuts in the long run. */
const LEAST = isLong ? 50 : 2;
const SHARE = 0.02;

/** In the page; fixtures/soak/main.js puts it there. */
declare const soak: {
  load(url: string): Promise<{ download?: DownloadInfo; code?: string; message?: string }>;
  stored(): Promise<StoredModel[]>;
  clear(): Promise<number>;
  killWorker(): void;
};

describe.each(['chromium', 'firefox'] as const)('cuts in %s', (engine) => {
  const skip = !isInstalled(engine);
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let site: FaultySite;
  let server: FaultServer;
  let broken: BrokenPackage;
  let tab: Tab;

  beforeAll(async () => {
    if (skip) return;
    broken = breakPackage((glue) => glue);
    // Short pauses before it asks again.
    broken.changeWorker('backoffMs: 500', 'backoffMs: 5');
    site = await faultyFixture(engine, 'soak', { runtime: broken.folder });
    ({ server, tab } = site);
    await openFixture(tab, site.url);
  });
  afterAll(async () => {
    await site?.close();
    broken?.remove();
  });

  /** What is wrong with a download; '' for nothing. */
  async function cutDownload(at: string, pick: (n: number) => number): Promise<string> {
    const cuts: number[] = [];
    // Each counts from where its request begins.
    for (let left = MODEL.length - 1; cuts.length < CUTS; left -= cuts.at(-1) ?? 0)
      cuts.push(1 + pick(Math.max(1, Math.floor((2 * left) / (CUTS - cuts.length + 1)) - 1)));
    const served = { bytes: MODEL, pieceBytes: 262_144, pauseMs: 5 };
    const faults = cuts.map((afterBytes) => ({ kind: 'cut', afterBytes }) as const);
    const url = server.serve(at, served, ...faults);
    const { download, message } = await tab.run((from) => soak.load(from), url);
    const stored = await tab.run(() => soak.stored());
    const sent = server.sentBytes(at);
    const hasAll = download?.kept === true && download.sha256[0] === HASH;
    await tab.run(() => {
      soak.killWorker();
      return soak.clear();
    });
    if (!hasAll || download.notices.length > 0 || !stored[0]?.isWhole)
      return `cuts ${cuts.join()}: ${message ?? JSON.stringify(download)}`;
    const nRequests = server.seen(at).length;
    if (nRequests !== CUTS + 1) return `cuts ${cuts.join()}: ${nRequests} requests`;
    return sent === MODEL.length ? '' : `cuts ${cuts.join()}: ${sent} bytes were sent`;
  }

  it.skipIf(skip)(
    `at random bytes: the same hash, no byte sent twice${why}`,
    { timeout: timeFor(SHARE).timeout },
    async () => {
      const pick = randomSource(SEED * 31 + engine.length);
      const wrong: string[] = [];
      const runs = await repeat(SHARE, LEAST, async (i) => {
        const found = await cutDownload(`/cut-${i}.gguf`, pick);
        if (found !== '') wrong.push(found);
      });
      report(`cuts, ${engine}`, { runs, faults: runs * CUTS, lost: wrong.length });
      expect(wrong).toEqual([]);
    },
  );
});
