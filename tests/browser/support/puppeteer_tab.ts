// Chromium and Firefox through puppeteer-core.
import puppeteer, {
  type Browser,
  type CDPSession,
  type ConsoleMessage,
  type Page,
} from 'puppeteer-core';
import type { EngineName, Key, Tab } from './tab.js';

// As root Chromium needs --no-sandbox; the rest keeps it from looking for a network at start.
const chromiumArgs = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

class PuppeteerTab implements Tab {
  readonly #problems: string[] = [];
  readonly #requests: string[] = [];

  constructor(
    readonly engine: EngineName,
    readonly browser: Browser,
    readonly page: Page,
  ) {
    page.on('console', (message: ConsoleMessage) => {
      if (message.type() === 'error' || message.type() === 'warn')
        this.#problems.push(message.text());
    });
    page.on('pageerror', (error) => this.#problems.push(String(error)));
    page.on('request', (request) => this.#requests.push(request.url()));
  }

  async open(url: string): Promise<void> {
    this.#problems.length = 0;
    this.#requests.length = 0;
    await this.page.goto(url);
  }

  run<A extends unknown[], R>(script: (...args: A) => R | Promise<R>, ...args: A): Promise<R> {
    return this.page.evaluate(script as never, ...(args as unknown as [])) as Promise<R>;
  }

  async click(testid: string): Promise<void> {
    await this.page.locator(`[data-testid="${testid}"]`).click();
  }

  async type(testid: string, text: string): Promise<void> {
    await this.page.locator(`[data-testid="${testid}"]`).fill(text);
    await this.page.focus(`[data-testid="${testid}"]`);
  }

  async press(key: Key): Promise<void> {
    await this.page.keyboard.press(key);
  }

  async hover(selector: string): Promise<void> {
    await this.page.locator(selector).hover();
  }

  async select(testid: string, value: string): Promise<void> {
    await this.page.select(`[data-testid="${testid}"]`, value);
  }

  async resize(width: number, height: number): Promise<void> {
    await this.page.setViewport({ width, height });
  }

  async problems(): Promise<string[]> {
    return [...this.#problems];
  }

  async requests(): Promise<string[]> {
    return [...this.#requests];
  }

  async close(): Promise<void> {
    await this.browser.close();
  }
}

/** Another tab of the same browser, and this one closed: a page that was left may live on to be returned to. */
export async function reopened(tab: Tab): Promise<Tab> {
  const { browser, page: left } = asPuppeteer(tab);
  const page = await browser.newPage();
  await left.close();
  return new PuppeteerTab(tab.engine, browser, page);
}

/** What only Chromium's developer tools do. */
export function devtools(tab: Tab): Promise<CDPSession> {
  return asPuppeteer(tab).page.createCDPSession();
}

/** A second tab of the same browser, in front of this one; `end` closes it as its user would. */
export async function besides(tab: Tab): Promise<{ tab: Tab; end(): Promise<void> }> {
  const { browser } = asPuppeteer(tab);
  const page = await browser.newPage();
  return { tab: new PuppeteerTab(tab.engine, browser, page), end: () => page.close() };
}

/** A second tab in front of this one; resolves to what closes it and shows this one again. */
export async function hide(tab: Tab): Promise<() => Promise<void>> {
  const { browser, page } = asPuppeteer(tab);
  const other = await browser.newPage();
  await other.bringToFront();
  return async () => {
    await other.close();
    await page.bringToFront();
  };
}

/** Of the process that all others of this browser come from. */
export function processId(tab: Tab): number {
  const id = asPuppeteer(tab).browser.process()?.pid;
  if (id === undefined) throw new Error(`${tab.engine} has no process of its own`);
  return id;
}

function asPuppeteer(tab: Tab): PuppeteerTab {
  if (!(tab instanceof PuppeteerTab)) throw new Error(`${tab.engine} cannot do this`);
  return tab;
}

export async function openPuppeteerTab(
  engine: 'chromium' | 'firefox',
  executablePath: string,
): Promise<Tab> {
  const browser = await puppeteer.launch({
    browser: engine === 'firefox' ? 'firefox' : 'chrome',
    executablePath,
    headless: true,
    args: engine === 'firefox' ? [] : chromiumArgs,
  });
  return new PuppeteerTab(engine, browser, await browser.newPage());
}
