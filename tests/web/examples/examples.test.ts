// Each program in examples/ does what it says, as it stands there: the Node scripts run, the pages answer in Chromium.
// (The C++ example runs in the native stage of `npm test`.)
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Browser } from 'puppeteer-core';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serve } from '../../../web/serve.mjs';
import { startChromium } from '../pack/chromium.js';
import { type PackedApp, packApp } from '../pack/packed_app.js';

const project = path.resolve(import.meta.dirname, '../../..');
const examples = path.join(project, 'examples');
const maxLines = 60;
const answerTimeoutMs = 60_000;
const run = promisify(execFile);

describe('examples in Node', () => {
  it('chat.mjs prints the answer and the speed', async () => {
    const { stdout } = await run('node', ['examples/node/chat.mjs'], { cwd: project });
    expect(stdout).toMatch(/tiny language model/);
    expect(stdout).toMatch(/\(\d+ tokens, \d+ tokens\/s, module simd\)/);
  });

  it('layout.mjs prints the bytes of its layout and agrees with the reference', async () => {
    const { stdout } = await run('node', ['examples/head-layout/layout.mjs', '300'], {
      cwd: project,
    });
    // Two KV heads, (48 + 64) elements of two bytes.
    expect(stdout).toContain('cache: 448 bytes a token, 134400 bytes for 300 tokens');
    expect(stdout).toContain('kernel: decode');
  });

  it('layout.mjs ends with an error for a layout that cannot be', async () => {
    await expect(
      run('node', ['examples/head-layout/layout.mjs', '0'], { cwd: project }),
    ).rejects.toThrow(/BadOption|rows/);
  });

  it('no example is longer than a screen', () => {
    const programs = readdirSync(examples, { recursive: true, encoding: 'utf8' }).filter(
      (name) => /\.(mjs|js|ts|cc)$/.test(name) && !name.startsWith('models'),
    );
    expect(programs.length).toBeGreaterThanOrEqual(5);
    for (const name of programs) {
      const lines = readFileSync(path.join(examples, name), 'utf8').split('\n').length;
      expect(lines, name).toBeLessThanOrEqual(maxLines);
    }
  });
});

describe('examples in a browser', () => {
  let app: PackedApp;
  let browser: Browser;
  beforeAll(async () => {
    app = packApp();
    browser = await startChromium();
  });
  afterAll(async () => {
    await browser?.close();
    app?.remove();
  });

  /** Presses the button of an example and waits for its answer. */
  async function answerOf(folder: string, button: string): Promise<string> {
    const server = await serve({ mounts: { '/': folder }, isolation: false });
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    try {
      await page.goto(server.url);
      await page.waitForFunction(
        () => /^Ready/.test(document.getElementById('status')?.textContent ?? ''),
        {
          timeout: answerTimeoutMs,
        },
      );
      await page.click(button);
      await page.waitForFunction(
        () => /model.*\./.test(document.getElementById('answer')?.textContent ?? ''),
        { timeout: answerTimeoutMs },
      );
      expect(complaints).toEqual([]);
      return await page.$eval('#answer', (element) => element.textContent ?? '');
    } finally {
      await page.close();
      await server.close();
    }
  }

  it('the plain page answers', async () => {
    const folder = path.join(app.root, 'plain');
    cpSync(path.join(examples, 'page'), folder, { recursive: true });
    expect(await answerOf(folder, '#form button')).toMatch(/tiny language model/);
  });

  it('the Vite app builds with the default configuration and answers', async () => {
    const root = path.join(app.root, 'vite-app');
    cpSync(path.join(examples, 'vite-app'), root, { recursive: true });
    mkdirSync(path.join(root, 'public'));
    cpSync(path.join(app.root, 'public/model.gguf'), path.join(root, 'public/model.gguf'));
    await build({ root, configFile: false, logLevel: 'warn' });
    expect(await answerOf(path.join(root, 'dist'), '#ask')).toMatch(/tiny language model/);
  });
});
