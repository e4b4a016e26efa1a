// How long a stop takes to be seen in real browsers, in the module with and without threads: in a prompt, in generation, and
// in loads from a file, from a fast server and from one that has stalled; and that everything is afterwards as before.
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { DownloadInfo, EngineInfo } from 'headlight-wasm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled } from '../../browser/support/browsers.js';
import { type FaultySite, faultyFixture, openFixture } from '../../browser/support/site.js';
import type { Tab } from '../../browser/support/tab.js';
import { areLate, coreShare, latenciesOf, MIDDLE, msOf } from '../../web/runtime/abort_latency.js';
import { randomModel } from '../../web/runtime/random_model.js';
import type { FaultServer } from '../../web/store/fault_server.js';
import { randomSource } from '../../web/text/vocabularies.js';
import { isLong, repeat, report, SEED } from '../plan.js';

/** Of each test. */
const SHARES = { run: 0.02, load: 0.007, download: 0.02 };
const LEAST = isLong ? 25 : 4;
const PROMPT_TOKENS = 2000;

interface WholeLoad {
  tokens: string;
  download?: DownloadInfo;
  ms: number;
  workers: number;
}

/** What fixtures/abort/main.js puts there. */
interface AbortPage {
  load(url: string, more: object): Promise<EngineInfo['runtime']>;
  prefill(plan: object): Promise<number[]>;
  decode(plan: object): Promise<number[]>;
  isAsBefore(): Promise<boolean>;
  dispose(): Promise<void>;
  chooseSource(source: { url: string; asFile: boolean }): Promise<void>;
  stopLoad(plan: object): Promise<[number, number, number] | []>;
  wholeLoad(plan: object): Promise<WholeLoad>;
}
/** In the page. */
declare const abortPage: AbortPage;

const MODULES = [
  ['simd', { module: 'simd', threads: 1 }],
  ['simd-threads', { module: 'simd', threads: 2 }],
] as const;

describe.each(['chromium', 'firefox'] as const)('stops in %s', (engine) => {
  const skip = !isInstalled(engine);
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  const pick = randomSource(SEED + (engine === 'chromium' ? 0 : 1000));
  let site: FaultySite;
  let server: FaultServer;
  let tab: Tab;
  let model: string;
  let bytes: Uint8Array;

  beforeAll(async () => {
    if (skip) return;
    model = await randomModel('stops', MIDDLE, 'q4_0');
    bytes = new Uint8Array(readFileSync(model));
    const more = { '/models/': path.dirname(model) };
    site = await faultyFixture(engine, 'abort', { isolation: true, more });
    ({ server, tab } = site);
    await openFixture(tab, site.url);
  });
  afterAll(async () => {
    if (skip) return;
    rmSync(model);
    await site?.close();
  });

  /** Prints what was measured; the answer is whether it was late on a core of its own. */
  function isLate(what: string, found: number[], more = { lost: 0 }): boolean {
    const latencies = latenciesOf(found);
    const { runs } = latencies;
    const share = coreShare();
    const late = areLate(latencies, share);
    report(`abort, ${what}, ${engine}`, {
      ...{ ...more, runs, faults: runs, lost: more.lost + (late ? 1 : 0) },
      ...{ ...msOf(latencies), coreShare: share.toFixed(2) },
    });
    return late;
  }

  const timeout = isLong ? 1_800_000 : 600_000;

  it.skipIf(skip).each(MODULES)(
    `%s: in a prompt and in generation, seen at once${why}`,
    { timeout },
    async (name, more) => {
      const url = `/models/${path.basename(model)}`;
      const runtime = await tab.run((at, o) => abortPage.load(at, o), url, more);
      expect(runtime.module).toBe(name);
      const prefill: number[] = [];
      const decode: number[] = [];
      await repeat(SHARES.run, LEAST, async () => {
        const plan = { seed: pick(1e6), nTokens: PROMPT_TOKENS, share: pick(90) / 100 };
        const stop = { ...plan, waitMs: pick(30) };
        prefill.push(...(await tab.run((how) => abortPage.prefill(how), stop)));
        const token = { seed: pick(250), nTokens: 1 + pick(4) };
        decode.push(...(await tab.run((how) => abortPage.decode(how), token)));
      });
      const late = [isLate(`prefill, ${name}`, prefill), isLate(`decode, ${name}`, decode)];
      expect(late).toEqual([false, false]);
      expect(await tab.run(() => abortPage.isAsBefore())).toBe(true);
      await tab.run(() => abortPage.dispose());
    },
  );

  it.skipIf(skip).each(MODULES)(
    `%s: in a load from a file, from the start of the module to the last weights${why}`,
    { timeout },
    async (name, more) => {
      const url = `/models/${path.basename(model)}`;
      await tab.run((from) => abortPage.chooseSource(from), { url, asFile: true });
      const whole = { store: false, more };
      const before = await tab.run((how) => abortPage.wholeLoad(how), whole);
      const found: number[] = [];
      await repeat(SHARES.load, LEAST, async (i) => {
        // Half of them anywhere, half while weights are packed.
        const isPacking = i % 2 === 0;
        const stop = {
          ...whole,
          share: isPacking ? (1 + pick(95)) / 100 : 0,
          waitMs: isPacking ? 0 : pick(Math.ceil(before.ms)),
        };
        found.push(...(await tab.run((how) => abortPage.stopLoad(how), stop)).slice(0, 1));
      });
      expect(isLate(`load from a file, ${name}`, found)).toBe(false);
      const after = await tab.run((how) => abortPage.wholeLoad(how), whole);
      expect([after.tokens, after.workers]).toEqual([before.tokens, 0]);
    },
  );

  it.skipIf(skip).each([
    ['a fast server', { bytes: [] as never, pieceBytes: 1 << 20, pauseMs: 5 }, undefined],
    ['a server that stalls', { bytes: [] as never, pieceBytes: 1 << 18, pauseMs: 1 }, 'stall'],
  ] as const)(
    `in a download from %s, whose part is kept and taken up again${why}`,
    { timeout },
    async (name, served, fault) => {
      const more = MODULES[0][1];
      const address = `/stops-${name.replaceAll(' ', '-')}.gguf`;
      const found: number[] = [];
      const freed: number[] = [];
      let resumed = 0;
      let lost = 0;
      const from = { url: server.serve(address, { ...served, bytes }), asFile: false };
      await tab.run((at) => abortPage.chooseSource(at), from);
      const before = await tab.run((how) => abortPage.wholeLoad(how), { store: true, more });
      await repeat(SHARES.download, LEAST, async () => {
        await tab.run((at) => abortPage.chooseSource(at), from);
        const afterBytes = Math.floor(bytes.length * (0.1 + pick(80) / 100));
        const faults = fault === 'stall' ? [{ kind: 'stall', afterBytes } as const] : [];
        server.serve(address, { ...served, bytes }, ...faults);
        // A stalled download says nothing more, and a browser may hold its last bytes back: some time after those before.
        const share = (afterBytes / bytes.length) * 0.8;
        const stop = {
          share,
          waitMs: fault === 'stall' ? 50 + pick(600) : pick(20),
          store: true,
          more,
        };
        const [seenMs, freeMs, partBytes] = await tab.run((how) => abortPage.stopLoad(how), stop);
        if (seenMs === undefined || freeMs === undefined) return;
        found.push(seenMs);
        freed.push(freeMs);
        const sentBytes = server.sentBytes(address);
        const again = await tab.run((how) => abortPage.wholeLoad(how), { store: true, more });
        const { fromStoreBytes, fromNetworkBytes, kept } = again.download ?? {};
        const isRight =
          again.tokens === before.tokens &&
          kept === true &&
          fromStoreBytes === partBytes &&
          server.sentBytes(address) - sentBytes === fromNetworkBytes &&
          fromNetworkBytes === bytes.length - (partBytes ?? 0);
        if (!isRight) lost += 1;
        if ((partBytes ?? 0) > 0) resumed += 1;
      });
      const freeAfter = { ...msOf(latenciesOf(freed), 'storeFree_'), resumed, lost };
      expect(isLate(`download from ${name}`, found, freeAfter)).toBe(false);
      expect(lost).toBe(0);
      // A fast download may be stopped before the first record of it; a stalled one waits beside its record.
      if (fault === 'stall') expect(resumed).toBeGreaterThan(0);
      const { workers } = await tab.run((how) => abortPage.wholeLoad(how), { store: true, more });
      expect(workers).toBe(0);
    },
  );
});
