// Which browsers are here, and how a tab of each is opened. `npm test` installs all three on Debian; elsewhere the tests
// of a missing one are skipped by name.
import { existsSync } from 'node:fs';
import { openPuppeteerTab } from './puppeteer_tab.js';
import type { EngineName, Tab } from './tab.js';
import { openWebKitTab, webkitIsInstalled } from './webkit_tab.js';

const executables = {
  chromium: ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'],
  firefox: ['/usr/bin/firefox-esr', '/usr/bin/firefox'],
};

function find(engine: 'chromium' | 'firefox'): string | undefined {
  return executables[engine].find((path) => existsSync(path));
}

export function isInstalled(engine: EngineName): boolean {
  return engine === 'webkit' ? webkitIsInstalled() : find(engine) !== undefined;
}

export function openTab(engine: EngineName): Promise<Tab> {
  if (engine === 'webkit') return openWebKitTab();
  const path = find(engine);
  if (path === undefined) throw new Error(`${engine} is not installed: run \`npm run setup\``);
  return openPuppeteerTab(engine, path);
}

/** Every engine, with and without the headers that let threads share memory. WebKitGTK has no shared memory. */
export const settings: readonly { engine: EngineName; isolation: boolean; title: string }[] = [
  { engine: 'chromium', isolation: true, title: 'Chromium, isolated' },
  { engine: 'chromium', isolation: false, title: 'Chromium, not isolated' },
  { engine: 'firefox', isolation: true, title: 'Firefox, isolated' },
  { engine: 'firefox', isolation: false, title: 'Firefox, not isolated' },
  { engine: 'webkit', isolation: false, title: 'WebKit' },
];
