// The demo's service worker against what becomes of its caches, its server and its neighbours: a page is never lost, never
// half of another build, and what went wrong once heals.
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isInstalled, openTab } from './support/browsers.js';
import { patienceMs } from './support/chat.js';
import { reopened } from './support/puppeteer_tab.js';
import { closedMs, kept } from './support/service_worker.js';
import { type BuildOptions, SmallSite } from './support/small_site.js';
import type { Tab } from './support/tab.js';

const poll = { timeout: patienceMs, interval: 200 };
const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};
/** Two pages, their script and a worker. */
const nFiles = 4;

/** Of which build the page and its script are. */
async function opened(tab: Tab, url: string): Promise<string[]> {
  await tab.open(url);
  return tab.run(() => [document.title, document.body.dataset.ready ?? 'it did not run']);
}

/** How many files each cache has. */
const nKept = (tab: Tab) =>
  tab.run(async () => {
    const names = await caches.keys();
    return Promise.all(names.map(async (name) => (await (await caches.open(name)).keys()).length));
  });

/** Removes the files with this in their address from all caches. */
const remove = (tab: Tab, part: string) =>
  tab.run(async (text) => {
    for (const name of await caches.keys()) {
      const cache = await caches.open(name);
      for (const { url } of await cache.keys()) if (url.includes(text)) await cache.delete(url);
    }
  }, part);

/** What the site's worker says, or that it did not start. */
const workerSays = (tab: Tab) =>
  tab.run(
    () =>
      new Promise<string>((resolve) => {
        const worker = new Worker('assets/worker.js');
        worker.onmessage = ({ data }: MessageEvent<string>) => resolve(data);
        worker.onerror = () => resolve('it was not loaded');
      }),
  );

describe.each(['chromium', 'firefox'] as const)('the service worker in %s', (engine) => {
  const skip = !isInstalled(engine);
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let site: SmallSite;
  let tab: Tab;

  beforeEach(async () => {
    if (skip) return;
    site = new SmallSite();
    await site.start();
    tab = await openTab(engine);
  });
  afterEach(async () => {
    if (skip) return;
    await tab.close();
    await site.stop();
  });

  /** Opens the first build of a folder until the service worker answers for it. */
  async function visit(options: BuildOptions = {}): Promise<string> {
    const url = site.url + (options.folder ?? '');
    site.build('one', options);
    await tab.open(url);
    await kept(tab);
    expect(await opened(tab, url)).toEqual(['one', 'one']);
    expect(await tab.run(() => navigator.serviceWorker.controller !== null)).toBe(true);
    return url;
  }

  it.skipIf(skip)(`what was removed comes back with the next page${why}`, async () => {
    const url = await visit();
    for (const part of ['index.html', 'main', 'worker', '/']) {
      await remove(tab, part);
      expect(await opened(tab, url)).toEqual(['one', 'one']);
      await expect.poll(() => nKept(tab), poll).toEqual([nFiles]);
      site.isDown = true;
      expect(await opened(tab, `${url}lab/`)).toEqual(['one', 'one']);
      expect(await opened(tab, url)).toEqual(['one', 'one']);
      site.isDown = false;
    }
  });

  it.skipIf(skip)(
    `what is gone here and on the server gives way to the new build${why}`,
    async () => {
      const url = await visit();
      await remove(tab, 'main');
      site.build('two');
      expect(await opened(tab, url)).toEqual(['two', 'two']);
      expect(await opened(tab, `${url}lab/`)).toEqual(['two', 'two']);
    },
  );

  it.skipIf(skip)(`a cache that cannot be read is as none${why}`, async () => {
    await visit({ before: 'caches.match = async () => { throw new Error("disk"); };\n' });
  });

  it.skipIf(skip)(`a cache that takes nothing leaves all to the network${why}`, async () => {
    site.build('one', {
      before: 'Cache.prototype.put = async () => { throw new Error("full"); };\n',
    });
    for (let i = 0; i < 2; i++) expect(await opened(tab, site.url)).toEqual(['one', 'one']);
    // Not nKept: what it looks into is made by that.
    await expect.poll(() => tab.run(async () => (await caches.keys()).length), poll).toBe(0);
    expect(await tab.problems()).toEqual([]);
  });

  it.skipIf(skip)(`pages of a host that redirects from index.html open${why}`, async () => {
    site.redirectsToFolders = true;
    const url = await visit();
    site.isDown = true;
    expect(await opened(tab, `${url}lab/?a#b`)).toEqual(['one', 'one']);
    expect(await opened(tab, `${url}index.html`)).toEqual(['one', 'one']);
  });

  it.skipIf(skip)(`files that did not change come with the headers of today${why}`, async () => {
    const url = await visit();
    site.headers = isolation;
    site.build('two');
    await tab.run(async () => (await navigator.serviceWorker.ready).update());
    await expect
      .poll(async () => {
        tab = await reopened(tab);
        await pause(closedMs);
        return opened(tab, url);
      }, poll)
      .toEqual(['two', 'two']);
    expect(await tab.run(() => crossOriginIsolated)).toBe(true);
    expect(await workerSays(tab)).toBe('started');
  });

  it.skipIf(skip)(`isolates what the network gives too${why}`, async () => {
    const url = await visit({ isolate: true });
    await remove(tab, 'worker');
    expect(await workerSays(tab)).toBe('started');
    await remove(tab, 'index.html');
    expect(await opened(tab, url)).toEqual(['one', 'one']);
    expect(await tab.run(() => crossOriginIsolated)).toBe(true);
  });

  it.skipIf(skip)(`two builds in two folders of one origin are kept both${why}`, async () => {
    const urls = [await visit({ folder: 'a/' }), await visit({ folder: 'b/', isolate: true })];
    expect(await nKept(tab)).toEqual([nFiles, nFiles]);
    site.isDown = true;
    for (const url of urls) expect(await opened(tab, url)).toEqual(['one', 'one']);
  });
});
