// What holds on every page, whatever it shows.
import { expect } from 'vitest';
import { patienceMs } from './chat.js';
import { type Tab, until } from './tab.js';

/** Nothing in the console, and nothing asked of anyone but the page's own server. */
export async function expectQuiet(tab: Tab, ownUrl: string): Promise<void> {
  expect(await tab.problems(), 'console').toEqual([]);
  const foreign = (await tab.requests()).filter(
    (url) => !url.startsWith(ownUrl) && !url.startsWith('data:') && !url.startsWith('blob:'),
  );
  expect(foreign, 'requests to others').toEqual([]);
}

/** Fails if the page is wider than a phone's screen; leaves it at the size of a desktop's. */
export async function expectFitsPhones(tab: Tab): Promise<void> {
  for (const width of [390, 320]) {
    await tab.resize(width, 800);
    await until(
      tab,
      `a page that fits ${width} pixels`,
      patienceMs,
      () => document.documentElement.scrollWidth <= innerWidth,
    );
  }
  await tab.resize(1280, 900);
}
