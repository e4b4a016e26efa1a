// Pages and workers killed at random moments of a download, of its end, of a prompt and of saving a session, in real
// browsers: afterwards everything that was there is there, and what was begun can be done.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { DownloadInfo, StoredModel } from 'headlight-wasm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled } from '../../browser/support/browsers.js';
import { type FaultySite, faultyFixture, openFixture } from '../../browser/support/site.js';
import type { Tab } from '../../browser/support/tab.js';
import type { FaultServer, Served } from '../../web/store/fault_server.js';
import { sha256Of } from '../../web/store/loading.js';
import { randomSource } from '../../web/text/vocabularies.js';
import { isLong, repeat, report, SEED, timeFor } from '../plan.js';

const file = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const MODEL = new Uint8Array(readFileSync(file('examples/models/default-q8_0.gguf')));
const HASH = sha256Of(MODEL);
/** About 700 ms. */
const SLOW: Served = { bytes: MODEL, pieceBytes: 65_536, pauseMs: 12 };
const SHARE = 0.09;
const LEAST = isLong ? 40 : 8;

interface SoakPage {
  load(url: string): Promise<{ download?: DownloadInfo; code?: string; message?: string }>;
  stored(): Promise<StoredModel[]>;
  clear(): Promise<number>;
  killWorker(): void;
  prefill(seed: number): Promise<number[] | string>;
  restart(): Promise<void>;
  saveForever(): Promise<void>;
  checkSaved(): Promise<string>;
  deleteSaved(): Promise<boolean>;
}
/** In the page; fixtures/soak/main.js puts it there. */
declare const soak: SoakPage;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(['chromium', 'firefox'] as const)('kills in %s', (engine) => {
  const skip = !isInstalled(engine);
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let site: FaultySite;
  let server: FaultServer;
  let tab: Tab;

  beforeAll(async () => {
    if (skip) return;
    site = await faultyFixture(engine, 'soak');
    ({ server, tab } = site);
    await openPage();
  });
  afterAll(() => site?.close());

  const openPage = () => openFixture(tab, site.url);

  /** Kills what does the work; afterwards there is a page with the package again. */
  async function kill(victim: 'page' | 'worker'): Promise<void> {
    if (victim === 'worker') await tab.run(() => soak.killWorker());
    else await openPage();
  }

  const load = (url: string) => tab.run((at) => soak.load(at), url);

  /** What is wrong; '' for nothing. */
  async function download(url: string, victim: 'page' | 'worker', ms: number): Promise<string> {
    await tab.run((at) => {
      void soak.load(at);
    }, url);
    await pause(ms);
    await kill(victim);
    for (const { isWhole, sha256, bytes } of await tab.run(() => soak.stored())) {
      if (isWhole && sha256 !== HASH) return 'a whole file has another hash';
      if (bytes > MODEL.length) return 'a part is longer than the file';
    }
    const { download: info, message } = await load(url);
    if (info?.sha256[0] !== HASH || !info.kept) return `not complete: ${message ?? ''}`;
    return info.notices.length === 0 ? '' : info.notices.join();
  }

  async function prefill(url: string, victim: 'page' | 'worker', ms: number): Promise<string> {
    const expected = await tab.run((seed) => soak.prefill(seed), ms);
    await tab.run((seed) => {
      (globalThis as unknown as { pending: unknown }).pending = soak.prefill(seed + 1000);
    }, ms);
    await pause(ms % 60);
    await kill(victim);
    if (victim === 'worker') {
      const code = await tab.run(() => (globalThis as unknown as { pending: unknown }).pending);
      if (code !== 'WorkerLost' && !Array.isArray(code)) return `the call ended with ${code}`;
      await tab.run(() => soak.restart());
    } else {
      const { download: info } = await load(url);
      if (info?.fromNetworkBytes !== 0) return 'the stored model was not used';
    }
    const after = await tab.run((seed) => soak.prefill(seed), ms);
    return JSON.stringify(after) === JSON.stringify(expected) ? '' : 'other tokens than before';
  }

  async function save(url: string, victim: 'page' | 'worker', ms: number): Promise<string> {
    const hadOne = (await tab.run(() => soak.checkSaved())) !== '';
    await tab.run(() => {
      soak.saveForever().catch(() => {});
    });
    await pause(ms);
    await kill(victim);
    if (victim === 'worker') await tab.run(() => soak.restart());
    else await load(url);
    const found = await tab.run(() => soak.checkSaved());
    if (found === '') return hadOne ? 'the saved session is gone' : '';
    return found === 'right' ? '' : found;
  }

  it.skipIf(skip)(
    `at random moments lose nothing${why}`,
    { timeout: timeFor(SHARE).timeout },
    async () => {
      const pick = randomSource(SEED + (engine === 'chromium' ? 0 : 1000));
      const url = server.serve('/soak.gguf', SLOW);
      const started = performance.now();
      await tab.run(() => soak.clear());
      await load(url);
      const wholeMs = performance.now() - started;
      const lost: string[] = [];
      const faults = { download: 0, commit: 0, prefill: 0, save: 0 };
      const runs = await repeat(SHARE, LEAST, async (i) => {
        const kind = (['download', 'commit', 'prefill', 'save'] as const)[i % 4] ?? 'save';
        const victim = pick(2) === 0 ? 'page' : 'worker';
        faults[kind] += 1;
        let wrong: string;
        if (kind === 'prefill') wrong = await prefill(url, victim, pick(1000));
        else if (kind === 'save') wrong = await save(url, victim, 20 + pick(400));
        else {
          await openPage();
          await tab.run(() => soak.clear());
          const late = Math.max(0, wholeMs - 60) + pick(120);
          wrong = await download(url, victim, kind === 'commit' ? late : pick(Math.ceil(wholeMs)));
        }
        if (wrong !== '') lost.push(`${i}: ${kind}, ${victim}: ${wrong}`);
      });
      report(`kills, ${engine}`, { runs, faults: runs, lost: lost.length, ...prefixed(faults) });
      expect(lost).toEqual([]);
    },
  );
});

function prefixed(faults: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(faults).map(([kind, n]) => [`during_${kind}`, n]));
}
