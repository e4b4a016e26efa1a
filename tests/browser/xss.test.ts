// What a model writes cannot run script, load anything or change the page: every payload goes the real way into a real
// document, streamed, under a policy that would let script and images through, so that only the page's own gates hold.
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import puppeteer, { type Browser, type Page } from 'puppeteer-core';
import sirv from 'sirv';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { payloads } from './fixtures/xss_payloads.js';

const chromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  existsSync,
);
const allowedTags = new Set(
  'div p br hr h3 h4 h5 h6 blockquote ul ol li pre code em strong del a table thead tbody tr th td button span svg path details summary'.split(
    ' ',
  ),
);
const allowedAttributes = new Set(
  'href title class start align target rel tabindex role aria-label aria-hidden type data-testid data-copy-code viewBox d'.split(
    ' ',
  ),
);

describe.skipIf(chromium === undefined)('untrusted answers (needs Chromium)', () => {
  let folder: string;
  let browser: Browser;
  let page: Page;
  let close: () => Promise<unknown>;
  const requests: string[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'headlight-xss-'));
    await build({
      configFile: false,
      logLevel: 'error',
      build: {
        outDir: folder,
        lib: {
          entry: fileURLToPath(new URL('fixtures/xss_page.ts', import.meta.url)),
          formats: ['es'],
          fileName: 'page',
        },
      },
    });
    await writeFile(
      path.join(folder, 'index.html'),
      '<!doctype html><script type="module" src="page.js"></script>',
    );
    const server = createServer(sirv(folder, { dev: true })).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    close = () => new Promise((resolve) => server.close(resolve));
    browser = await puppeteer.launch({
      executablePath: chromium ?? '',
      args: ['--no-sandbox', '--disable-gpu'],
    });
    page = await browser.newPage();
    page.on('request', (request) => requests.push(request.url()));
    const { port } = server.address() as AddressInfo;
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.waitForFunction(() => typeof window.showAnswer === 'function');
  });

  afterAll(async () => {
    await browser?.close();
    await close?.();
    if (folder) await rm(folder, { recursive: true });
  });

  async function check(how: 'showAnswer' | 'showSanitized', payload: string): Promise<void> {
    requests.length = 0;
    const found = await page.evaluate(
      async (name, text) => {
        const root = window[name](text);
        const hover = new MouseEvent('mouseover', { bubbles: true });
        for (const element of root.querySelectorAll('*')) element.dispatchEvent(hover);
        // Loads and their error events come after the frame.
        await new Promise((resolve) => setTimeout(resolve, 20));
        const elements = [root, ...root.querySelectorAll('*')];
        return {
          pwned: window.pwned,
          tags: elements.map(({ localName }) => localName),
          attributes: elements.flatMap((element) => element.getAttributeNames()),
          links: [...root.querySelectorAll('a')].map(({ href, target, rel }) => ({
            href,
            target,
            rel,
          })),
        };
      },
      how,
      payload,
    );
    expect(found.pwned).toBe(false);
    expect(requests).toEqual([]);
    expect(found.tags.filter((tag) => !allowedTags.has(tag))).toEqual([]);
    expect(found.attributes.filter((name) => !allowedAttributes.has(name))).toEqual([]);
    for (const { href, target, rel } of found.links) {
      expect(href).toMatch(/^(https?:\/\/|mailto:)/);
      expect({ target, rel }).toEqual({ target: '_blank', rel: 'noopener noreferrer nofollow' });
    }
  }

  for (const payload of payloads) {
    const name = payload.length > 60 ? `${payload.slice(0, 60)}...` : payload;
    test(`as an answer: ${JSON.stringify(name)}`, () => check('showAnswer', payload));
    test(`as HTML: ${JSON.stringify(name)}`, () => check('showSanitized', payload));
  }

  test('the check sees what it looks for: an unsanitised image is caught', async () => {
    requests.length = 0;
    const pwned = await page.evaluate(async () => {
      const probe = document.createElement('div');
      probe.innerHTML = '<img src="missing.png" onerror="PWN()">';
      document.body.replaceChildren(probe);
      await new Promise((resolve) => setTimeout(resolve, 200));
      const result = window.pwned;
      window.pwned = false;
      return result;
    });
    expect(pwned).toBe(true);
    expect(requests).toHaveLength(1);
  });

  test('Markdown still gets through: links, code, tables, alignment', async () => {
    const html = await page.evaluate(
      (text) => window.showAnswer(text).innerHTML,
      '[a](https://e.com/?x=1&y=2)\n\n```js\n1 < 2\n```\n\n|a|b|\n|:-|-:|\n|1|2|\n\n3. three',
    );
    expect(html).toContain('href="https://e.com/?x=1&amp;y=2"');
    expect(html).toContain('<code class="language-js">1 &lt; 2\n</code>');
    expect(html).toContain('<td align="right">2</td>');
    expect(html).toContain('<ol start="3">');
  });
});
