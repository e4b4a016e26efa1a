// WebKitGTK's MiniBrowser through WebKitWebDriver (WebDriver classic) under a virtual display. It tells nothing of the
// console or the network: both are recorded in the page itself from the moment that open() returns (errors before that
// would keep the page from working, which the tests see), and requests come from the page's own resource timings.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { type Browser, remote } from 'webdriverio';
import type { Key, Tab } from './tab.js';

const driverPath = '/usr/bin/WebKitWebDriver';
const startTimeoutMs = 20_000;
const scriptTimeoutMs = 120_000;

/** The MiniBrowser that comes with the driver's library, or undefined. */
export function findMiniBrowser(): string | undefined {
  for (const folder of [
    '/usr/lib/x86_64-linux-gnu',
    '/usr/lib/aarch64-linux-gnu',
    '/usr/libexec',
  ]) {
    if (!existsSync(folder)) continue;
    for (const name of readdirSync(folder)
      .filter((n) => n.startsWith('webkit2gtk-4'))
      .sort()
      .reverse()) {
      const path = `${folder}/${name}/MiniBrowser`;
      if (existsSync(path)) return path;
    }
  }
  return undefined;
}

export function webkitIsInstalled(): boolean {
  return (
    existsSync(driverPath) && existsSync('/usr/bin/xvfb-run') && findMiniBrowser() !== undefined
  );
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

async function waitForDriver(port: number): Promise<void> {
  const end = Date.now() + startTimeoutMs;
  for (;;) {
    const ready = await fetch(`http://127.0.0.1:${port}/status`).then(
      (response) => response.ok,
      () => false,
    );
    if (ready) return;
    if (Date.now() > end)
      throw new Error(`WebKitWebDriver did not answer within ${startTimeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** The driver runs under xvfb-run: the whole group goes. */
function stopGroup(driver: ChildProcess): void {
  if (driver.pid === undefined || driver.exitCode !== null) return;
  process.kill(-driver.pid, 'SIGTERM');
}

/** WebDriver's own characters for keys. */
const keyCodes: Record<Key, string> = {
  Enter: 'Enter',
  Escape: 'Escape',
  ArrowLeft: '\uE012',
  ArrowRight: '\uE014',
};

class WebKitTab implements Tab {
  readonly engine = 'webkit';

  constructor(
    readonly browser: Browser,
    readonly driver: ChildProcess,
  ) {}

  async open(url: string): Promise<void> {
    await this.browser.url(url);
    await this.run(() => {
      const seen: string[] = [];
      (globalThis as { seenProblems?: string[] }).seenProblems = seen;
      for (const level of ['warn', 'error'] as const) {
        const original = console[level].bind(console);
        console[level] = (...args: unknown[]) => {
          seen.push(args.map(String).join(' '));
          original(...args);
        };
      }
      addEventListener('error', (event) => seen.push(event.message));
      addEventListener('unhandledrejection', (event) => seen.push(String(event.reason)));
    });
  }

  async run<A extends unknown[], R>(
    script: (...args: A) => R | Promise<R>,
    ...args: A
  ): Promise<R> {
    // The driver waits for a promise that a script returns.
    return (await this.browser.execute(script as never, ...(args as unknown as []))) as R;
  }

  async #element(testid: string) {
    const element = this.browser.$(`[data-testid="${testid}"]`);
    await element.waitForDisplayed({ timeout: startTimeoutMs });
    return element;
  }

  #focus(testid: string): Promise<void> {
    return this.run(
      (id) => document.querySelector<HTMLElement>(`[data-testid="${id}"]`)?.focus(),
      testid,
    );
  }

  async click(testid: string): Promise<void> {
    await (await this.#element(testid)).click();
  }

  async type(testid: string, text: string): Promise<void> {
    const element = await this.#element(testid);
    // Not by a click, which the driver makes at an edge of the window, where the page's short messages lie.
    await this.#focus(testid);
    await element.clearValue();
    await element.addValue(text);
  }

  async press(key: Key): Promise<void> {
    await this.browser.keys(keyCodes[key]);
  }

  async hover(selector: string): Promise<void> {
    const element = this.browser.$(selector);
    await element.waitForDisplayed({ timeout: startTimeoutMs });
    await element.moveTo();
  }

  async select(testid: string, value: string): Promise<void> {
    const element = await this.#element(testid);
    // As a click would: a list remembers at the focus what it showed, and tells only what differs from that.
    await this.#focus(testid);
    await element.selectByAttribute('value', value);
  }

  async resize(width: number, height: number): Promise<void> {
    await this.browser.setWindowSize(width, height);
  }

  problems(): Promise<string[]> {
    return this.run(
      () => (globalThis as { seenProblems?: string[] }).seenProblems ?? ['nothing recorded'],
    );
  }

  requests(): Promise<string[]> {
    return this.run(() => performance.getEntriesByType('resource').map((entry) => entry.name));
  }

  async close(): Promise<void> {
    await this.browser.deleteSession().catch(() => undefined);
    stopGroup(this.driver);
  }
}

export async function openWebKitTab(): Promise<Tab> {
  const port = await freePort();
  const driver = spawn('xvfb-run', ['-a', driverPath, `--port=${port}`], {
    detached: true,
    stdio: 'ignore',
    env: {
      ...process.env,
      WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1',
      LIBGL_ALWAYS_SOFTWARE: '1',
    },
  });
  try {
    await waitForDriver(port);
    const browser = await remote({
      hostname: '127.0.0.1',
      port,
      logLevel: 'error',
      capabilities: {
        browserName: 'MiniBrowser',
        'wdio:enforceWebDriverClassic': true,
        'webkitgtk:browserOptions': { binary: findMiniBrowser(), args: ['--automation'] },
      } as WebdriverIO.Capabilities,
    });
    await browser.setTimeout({ script: scriptTimeoutMs, pageLoad: scriptTimeoutMs });
    return new WebKitTab(browser, driver);
  } catch (error) {
    stopGroup(driver);
    throw error;
  }
}
