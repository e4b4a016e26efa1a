// A machine that sleeps and wakes (all processes of the browser stand still), a tab behind another one, a tab that the browser
// freezes: what was under way goes on, no wait is taken for a fault, and the text is the same as without.
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import type * as Headlight from 'headlight-wasm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type BrokenPackage, breakPackage } from '../web/runtime/broken_package.js';
import type { FaultServer } from '../web/store/fault_server.js';
import { sha256Of } from '../web/store/loading.js';
import { isInstalled } from './support/browsers.js';
import { patienceMs } from './support/chat.js';
import { sleepFor } from './support/process_tree.js';
import { devtools, hide, processId } from './support/puppeteer_tab.js';
import { type FaultySite, faultyFixture, openFixture } from './support/site.js';
import type { Tab } from './support/tab.js';

const file = (at: string) => fileURLToPath(new URL(`../../${at}`, import.meta.url));
const MODEL = new Uint8Array(readFileSync(file('examples/models/default-q8_0.gguf')));
const HASH = sha256Of(MODEL);
const SLEEP_MS = 3000;
const ROUNDS = 6;
/** Of a download without a byte, here: shorter than the sleep. */
const STALL_MS = 1000;

/** In the page; fixtures/engine/main.js and the tests below put it there. */
interface Page {
  headlight: typeof Headlight;
  engine: Headlight.Engine;
  outcome: Promise<unknown>;
  nTokens: number;
  longestGapMs: number;
  wasHidden: boolean;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Starts a load and does not wait for it. */
const beginLoad = (tab: Tab, url: string, options: object) =>
  tab.run(
    (at, more) => {
      const page = globalThis as unknown as Page;
      const loading = page.headlight.Engine.load(at, more).then((engine) => {
        page.engine = engine;
        return { download: engine.info.download, runtime: engine.info.runtime };
      });
      page.outcome = loading.catch(({ code, message }) => ({ error: `${code}: ${message}` }));
    },
    url,
    options,
  );

/** Starts `rounds` times 400 tokens of one prompt, one after another, and does not wait for them. */
const beginRun = (tab: Tab, rounds: number) =>
  tab.run((n) => {
    const page = globalThis as unknown as Page;
    const options = { temperature: 0, maxTokens: 400, ignoreEndOfGeneration: true };
    page.nTokens = 0;
    page.longestGapMs = 0;
    page.wasHidden = false;
    const round = async () => {
      const tokens: number[] = [];
      const session = page.engine.session();
      let last = performance.now();
      for await (const chunk of session.complete([1, 5, 9], options)) {
        tokens.push(...chunk.tokens);
        page.nTokens += chunk.tokens.length;
        page.longestGapMs = Math.max(page.longestGapMs, performance.now() - last);
        page.wasHidden ||= document.hidden;
        last = performance.now();
      }
      await session.close();
      return tokens.join();
    };
    const all = async () => {
      const texts = new Set<string>();
      for (let i = 0; i < n; i++) texts.add(await round());
      return [...texts];
    };
    page.outcome = all().catch(({ code, message }) => ({ error: `${code}: ${message}` }));
  }, rounds);

const outcomeOf = (tab: Tab) => tab.run(() => (globalThis as unknown as Page).outcome);
const nTokensOf = (tab: Tab) => tab.run(() => (globalThis as unknown as Page).nTokens);

describe.each(['chromium', 'firefox'] as const)('sleep and wake in %s', (engine) => {
  const skip = !isInstalled(engine) || process.platform !== 'linux';
  const why = skip ? ` (needs ${engine} on Linux: npm run setup)` : '';
  let site: FaultySite;
  let server: FaultServer;
  let broken: BrokenPackage;
  let tab: Tab;
  let nPaths = 0;

  beforeAll(async () => {
    if (skip) return;
    broken = breakPackage((glue) => glue);
    // Less patience for downloads than users have.
    broken.changeWorker('stallMs: 3e4', `stallMs: ${STALL_MS}`);
    const more = { '/models/': file('examples/models') };
    const options = { isolation: true, runtime: broken.folder, more };
    site = await faultyFixture(engine, 'engine', options);
    ({ server, tab } = site);
  });
  beforeEach(async () => {
    if (skip) return;
    await openFixture(tab, site.url);
  });
  afterAll(async () => {
    await site?.close();
    broken?.remove();
  });

  /** All of the browser stands still. */
  async function sleep(): Promise<void> {
    expect(await sleepFor(processId(tab), SLEEP_MS)).toBeGreaterThan(2);
  }

  /** The tab is behind another one. */
  async function hidden(): Promise<void> {
    const show = await hide(tab);
    await pause(SLEEP_MS);
    await show();
  }

  /** The browser takes the tab's time away, as it does after minutes in the background. */
  async function frozen(): Promise<void> {
    const show = await hide(tab);
    const tools = await devtools(tab);
    await tools.send('Page.setWebLifecycleState', { state: 'frozen' });
    await pause(SLEEP_MS);
    await tools.send('Page.setWebLifecycleState', { state: 'active' });
    await tools.detach();
    await show();
  }

  const absences: [string, () => Promise<void>][] = [
    ['a machine that sleeps', sleep],
    ['a hidden tab', hidden],
    ...(engine === 'chromium' ? ([['a frozen tab', frozen]] as [string, typeof frozen][]) : []),
  ];
  const cases = absences.flatMap(([name, away]) =>
    [1, 2].map((threads): [string, number, () => Promise<void>] => [name, threads, away]),
  );

  it.skipIf(skip).each(cases)(
    `%s, %i thread(s): the same text, nothing lost${why}`,
    async (_, threads, away) => {
      await beginLoad(tab, `${server.url}/models/default-q8_0.gguf`, { threads, module: 'simd' });
      expect(await outcomeOf(tab)).toMatchObject({ runtime: { threads } });
      await beginRun(tab, 1);
      const undisturbed = await outcomeOf(tab);
      expect(undisturbed).toEqual([expect.stringMatching(/^\d+(,\d+){399}$/)]);
      await beginRun(tab, ROUNDS);
      await expect
        .poll(() => nTokensOf(tab), { timeout: patienceMs, interval: 5 })
        .toBeGreaterThan(0);
      await away();
      expect(await outcomeOf(tab)).toEqual(undisturbed);
      const [gapMs, wasHidden] = await tab.run(() => {
        const page = globalThis as unknown as Page;
        return [page.longestGapMs, page.wasHidden] as const;
      });
      // The run was under way.
      if (away === hidden) expect(wasHidden).toBe(true);
      else expect(gapMs).toBeGreaterThan(0.8 * SLEEP_MS);
      await beginRun(tab, 1);
      expect(await outcomeOf(tab)).toEqual(undisturbed);
    },
  );

  it.skipIf(skip)(`sleep while threads start: they are there afterwards${why}`, async () => {
    for (const waitMs of [0, 50, 150, 300]) {
      await beginLoad(tab, `${server.url}/models/default-q8_0.gguf`, {
        threads: 2,
        module: 'simd',
      });
      await pause(waitMs);
      await sleep();
      expect(await outcomeOf(tab)).toMatchObject({ runtime: { threads: 2 } });
      await tab.run(() => (globalThis as unknown as Page).engine.dispose());
    }
  });

  it.skipIf(skip).each(absences)(
    `%s during a download, longer than a silence is borne: it goes on where it was${why}`,
    async (_, away) => {
      const modelPath = `/model-${nPaths++}.gguf`;
      const slow = { bytes: MODEL, pieceBytes: 32_768, pauseMs: 20 };
      const url = server.serve(modelPath, slow);
      await beginLoad(tab, url, { threads: 1, module: 'simd', store: true });
      await expect
        .poll(() => server.sentBytes(modelPath), { timeout: patienceMs, interval: 5 })
        .toBeGreaterThan(300_000);
      await away();
      expect(await outcomeOf(tab)).toMatchObject({
        download: { kept: true, sha256: [HASH], notices: [] },
      });
      // Chromium may let go of a frozen tab's connection; the rest is then asked for, once.
      const [first, rest, more] = server.seen(modelPath);
      expect(more).toBeUndefined();
      expect(first).toMatchObject({ range: undefined });
      if (rest === undefined) return;
      expect(away).toBe(frozen);
      expect(rest.range).toBe(`bytes=${MODEL.length - rest.sentBytes}-`);
      expect(rest.sentBytes).toBeLessThan(MODEL.length);
    },
  );

  it.skipIf(skip)(
    `a connection that did not outlive the sleep: the download goes on where it was${why}`,
    async () => {
      const modelPath = `/model-${nPaths++}.gguf`;
      const slow = { bytes: MODEL, pieceBytes: 32_768, pauseMs: 20 };
      // Silence behind that byte, as of a connection that the network has forgotten.
      const url = server.serve(modelPath, slow, { kind: 'stall', afterBytes: 1_000_000 });
      await beginLoad(tab, url, { threads: 1, module: 'simd', store: true });
      await expect
        .poll(() => server.sentBytes(modelPath), { timeout: patienceMs, interval: 5 })
        .toBe(1_000_000);
      await sleep();
      expect(await outcomeOf(tab)).toMatchObject({
        download: { kept: true, sha256: [HASH], notices: [] },
      });
      expect(server.seen(modelPath).map(({ range }) => range)).toEqual([
        undefined,
        'bytes=1000000-',
      ]);
      expect(server.sentBytes(modelPath)).toBe(MODEL.length);
    },
  );
});
