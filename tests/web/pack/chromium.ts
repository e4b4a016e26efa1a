// Opens a page in Chromium and waits until it says that it is done.
import { execFileSync } from 'node:child_process';
import puppeteer, { type Browser } from 'puppeteer-core';

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const DONE_TIMEOUT_MS = 60_000;

export function startChromium(): Promise<Browser> {
  const executablePath = execFileSync(
    'sh',
    ['-c', 'command -v chromium || command -v chromium-browser'],
    {
      encoding: 'utf8',
    },
  ).trim();
  return puppeteer.launch({ executablePath, args: FLAGS });
}

export interface Outcome {
  answer: string | undefined;
  error: string | undefined;
  runtime: { module: string; threads: number; crossOriginIsolated: boolean; reasons: string[] };
  /** Messages of the console and requests that failed, the page's own and its workers'. */
  complaints: string[];
}

export async function openApp(browser: Browser, url: string): Promise<Outcome> {
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warn') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('requestfailed', (request) =>
    complaints.push(`${request.url()}: ${request.failure()?.errorText}`),
  );
  try {
    await page.goto(url);
    await page.waitForSelector('body[data-done]', { timeout: DONE_TIMEOUT_MS });
    const data = await page.evaluate(() => ({ ...document.body.dataset }));
    return {
      answer: data.answer,
      error: data.error,
      runtime: JSON.parse(data.runtime ?? '{}'),
      complaints,
    };
  } catch (error) {
    throw new Error(`${url} did not finish: ${error}\n${complaints.join('\n')}`);
  } finally {
    await page.close();
  }
}
