// Starts Chromium or Firefox on the benchmark page and calls its functions. Headless, a fresh profile, no network.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import puppeteer from 'puppeteer-core';

const browsers = {
  chromium: {
    executables: ['/usr/bin/chromium', '/usr/bin/google-chrome', '/usr/bin/chromium-browser'],
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-sync',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-background-timer-throttling',
      '--disable-renderer-backgrounding',
    ],
  },
  firefox: { executables: ['/usr/bin/firefox-esr', '/usr/bin/firefox'], args: [] },
};

// A model of a gigabyte on one thread takes its time; nothing here waits for a person.
const kProtocolTimeoutMs = 30 * 60_000;

/** @returns {Promise<{call: (method: string, ...args: unknown[]) => Promise<any>, version: string, close: () => Promise<void>}>} */
export async function openBenchPage(name, url) {
  const { executables, args } = browsers[name];
  const { existsSync } = await import('node:fs');
  const executablePath =
    process.env[`HEADLIGHT_${name.toUpperCase()}`] ?? executables.find(existsSync);
  if (!executablePath)
    throw new Error(`${name} is not installed (looked for ${executables.join(', ')})`);
  const profile = mkdtempSync(join(tmpdir(), 'headlight-bench-'));
  const browser = await puppeteer.launch({
    browser: name === 'firefox' ? 'firefox' : 'chrome',
    executablePath,
    args,
    headless: true,
    userDataDir: profile,
    protocolTimeout: kProtocolTimeoutMs,
  });
  const page = await browser.newPage();
  page.on('pageerror', (error) => console.error(`page error: ${error.message}`));
  await page.goto(url);
  await page.waitForFunction(() => document.title === 'ready');
  return {
    version: await browser.version(),
    call: (method, ...parameters) =>
      page.evaluate((m, p) => globalThis.bench[m](...p), method, parameters),
    async close() {
      await browser.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
