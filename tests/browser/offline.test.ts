// The service worker of the demo: a second visit starts without the server, one build's files are never mixed with
// another's, and pages of a host without headers can be isolated.
import { appendFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { serviceWorkerFor } from '../../web/pages/offline_plugin.js';
import { serve } from '../../web/serve.mjs';
import { report } from '../soak/plan.js';
import { isInstalled, openTab } from './support/browsers.js';
import { ask, openChat, patienceMs } from './support/chat.js';
import { reopened } from './support/puppeteer_tab.js';
import { closedMs, kept, workerSource } from './support/service_worker.js';
import { type Tab, until } from './support/tab.js';

const file = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url));

/** The pages in a folder that a test may change, and their server. */
class Site {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'headlight-site-'));
  server: Awaited<ReturnType<typeof serve>> | undefined;

  async start(isolation: boolean): Promise<string> {
    cpSync(file('build/pages'), this.folder, { recursive: true });
    this.server = await serve({ mounts: { '/': this.folder }, isolation });
    return this.server.url;
  }
  /** As the build does it. */
  writeWorker(isolate = false): void {
    const worker = serviceWorkerFor(this.folder, workerSource, isolate);
    writeFileSync(path.join(this.folder, 'service_worker.js'), worker);
  }
  change(name: string, text: string): void {
    appendFileSync(path.join(this.folder, name), text);
  }
  async stop(): Promise<void> {
    await this.server?.close();
    this.server = undefined;
  }
}

/** The text that the page gets for a file of the site. */
const textOf = (tab: Tab, name: string) =>
  tab.run(async (at) => (await fetch(new URL(at, location.href))).text(), name);

/** Looks for a new build, and gives what became of it. */
const updated = (tab: Tab) =>
  tab.run(async () => {
    const registration = await navigator.serviceWorker.ready;
    const found = await registration.update().then(
      (r) => r as unknown as ServiceWorkerRegistration,
      () => registration,
    );
    const worker = found.installing ?? found.waiting;
    if (worker === null) return 'none';
    for (let i = 0; i < 600 && worker.state === 'installing'; i++)
      await new Promise((resolve) => setTimeout(resolve, 100));
    return worker.state;
  });

describe.each(['chromium', 'firefox'] as const)('offline in %s', (engine) => {
  const skip = !isInstalled(engine);
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let site: Site;
  let tab: Tab;

  afterEach(async () => {
    if (skip) return;
    await tab.close();
    await site.stop();
    rmSync(site.folder, { recursive: true });
  });

  async function visit(isolation = true, isolate = false): Promise<string> {
    site = new Site();
    const url = await site.start(isolation);
    site.writeWorker(isolate);
    tab = await openTab(engine);
    await openChat(tab, url);
    await kept(tab);
    return url;
  }

  it.skipIf(skip)(`a second visit starts and answers with the server gone${why}`, async () => {
    const url = await visit();
    await site.stop();
    await openChat(tab, url);
    expect(await ask(tab, 'Who are you?')).toMatch(/^I am/);
    expect(await tab.run(() => crossOriginIsolated)).toBe(true);
    const policies = await tab.run(async () => {
      const worker = performance
        .getEntriesByType('resource')
        .find(({ name }) => /worker-[^/]*\.js$/.test(name));
      const response = await fetch(worker?.name ?? 'index.html');
      return [worker !== undefined, response.headers.get('content-security-policy')];
    });
    expect(policies).toEqual([
      true,
      expect.stringContaining("script-src 'self' 'wasm-unsafe-eval'"),
    ]);
    await tab.open(`${url}lab/`);
    await until(tab, 'the lab', patienceMs, () => document.body.dataset.state === 'ready');
    await tab.open(`${url}bench/`);
    await until(tab, 'the bench page', patienceMs, () => document.body.dataset.state === 'idle');
    report(`second visit without the server, ${engine}`, { runs: 3, faults: 1, lost: 0 });
  });

  it.skipIf(skip)(
    `a new build comes whole, when no other page of the old one is open${why}`,
    async () => {
      const url = await visit();
      const before = await textOf(tab, 'theme.js');
      // A server in the middle of being updated: the list is there, a file is not yet.
      site.change('theme.js', '\n// two');
      site.writeWorker();
      site.change('theme.js', '\n// three');
      await openChat(tab, url);
      expect(await updated(tab)).toBe('redundant');
      expect(await textOf(tab, 'theme.js')).toBe(before);

      site.writeWorker();
      expect(await updated(tab)).toBe('installed');
      await openChat(tab, url);
      expect(await textOf(tab, 'theme.js')).toBe(before);
      // Both at once: Chromium asks the network when a worker dies with the page that was closed, so the text alone
      // would not say that the new build is there.
      await expect
        .poll(
          async () => {
            tab = await reopened(tab);
            await pause(closedMs);
            await openChat(tab, url);
            const nKept = await tab.run(async () => (await caches.keys()).length);
            return [await textOf(tab, 'theme.js'), nKept];
          },
          { timeout: patienceMs, interval: 500 },
        )
        .toEqual([`${before}\n// two\n// three`, 1]);
      // What the browser clears comes from the network, and no empty set is made in its place.
      await tab.run(async () => {
        for (const name of await caches.keys()) await caches.delete(name);
      });
      expect(await textOf(tab, 'theme.js')).toBe(`${before}\n// two\n// three`);
      expect(await tab.run(async () => (await caches.keys()).length)).toBe(0);
    },
  );

  it.skipIf(skip)(`a site without a service worker any more is another one${why}`, async () => {
    const url = await visit();
    writeFileSync(path.join(site.folder, 'index.html'), '<title>another site</title>');
    rmSync(path.join(site.folder, 'service_worker.js'));
    // It still opens, and goes.
    await tab.open(url);
    await until(tab, 'the end of the service worker', patienceMs, async () => {
      const registration = await navigator.serviceWorker.getRegistration();
      return document.readyState === 'complete' && registration === undefined;
    });
    await tab.open(url);
    expect(await tab.run(() => document.title)).toBe('another site');
  });

  it.skipIf(skip)(`can isolate pages of a host without headers${why}`, async () => {
    const url = await visit(false, true);
    expect(await tab.run(() => crossOriginIsolated)).toBe(false);
    await openChat(tab, url);
    expect(await tab.run(() => crossOriginIsolated)).toBe(true);
    expect(await ask(tab, 'Who are you?')).toMatch(/^I am/);
  });
});
