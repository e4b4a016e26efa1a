// What tests of the demo's service worker share.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { patienceMs } from './chat.js';
import { type Tab, until } from './tab.js';

/** As it is before a build puts its set there. */
export const workerSource = readFileSync(
  fileURLToPath(new URL('../../../web/pages/service_worker.js', import.meta.url)),
  'utf8',
);

/** No page is open for so long: a worker that has just answered ends first, and only then does the next one begin. */
export const closedMs = 2000;

/** Until the set of the page's build is kept. */
export const kept = (tab: Tab) =>
  until(tab, 'the service worker', patienceMs, async () => {
    const registration = await navigator.serviceWorker.getRegistration();
    return registration?.active?.state === 'activated';
  });
