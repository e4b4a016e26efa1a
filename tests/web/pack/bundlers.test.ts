// The packed package works in users' apps with default configuration: in Vite's dev server and build, and without any
// bundler, isolated or not, under a policy that allows no eval, no blob workers and nothing from elsewhere.
import path from 'node:path';
import type { Browser } from 'puppeteer-core';
import { build, createServer, type ViteDevServer } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { responseHeaders, serve } from '../../../web/serve.mjs';
import { type Outcome, openApp, startChromium } from './chromium.js';
import { filesUnder, type PackedApp, packApp } from './packed_app.js';
import { buildWithWebpack } from './webpack_build.js';

const POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' data:";
/** Webpack is fetched when this test first runs. */
const INSTALL_TIMEOUT_MS = 300_000;
const ANSWER = /tiny language model/;

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

function expectAnswer({ answer, error, runtime, complaints }: Outcome, isolation: boolean): void {
  expect(error).toBeUndefined();
  expect(answer).toMatch(ANSWER);
  expect(runtime.crossOriginIsolated).toBe(isolation);
  // Chromium has relaxed SIMD; threads were asked for where they can be had.
  expect(runtime.module).toBe(isolation ? 'relaxed-threads' : 'relaxed');
  expect(complaints).toEqual([]);
}

const ISOLATION = [
  ['isolated', true],
  ['not isolated', false],
] as const;

describe('a page without a build step', () => {
  it.each(ISOLATION)('%s', async (_, isolation) => {
    const mounts = { '/': path.join(app.root, 'plain') };
    const server = await serve({ mounts, isolation, contentSecurityPolicy: POLICY });
    try {
      expectAnswer(await openApp(browser, server.url), isolation);
    } finally {
      await server.close();
    }
  });
});

describe('Vite, default configuration', () => {
  it.each(ISOLATION)('dev server, dependencies pre-bundled, %s', async (_, isolation) => {
    // Vite's own client opens a socket for reloading and adds style elements; the app asks for neither.
    const policy = `${POLICY}; connect-src 'self' ws:; style-src 'self' 'unsafe-inline'`;
    const server: ViteDevServer = await createServer({
      root: app.root,
      configFile: false,
      logLevel: 'warn',
      server: { port: 0, host: '127.0.0.1', headers: responseHeaders(isolation, policy) },
    });
    try {
      await server.listen();
      const url = server.resolvedUrls?.local[0] ?? '';
      expectAnswer(await openApp(browser, url), isolation);
      expect(filesUnder(path.join(app.root, 'node_modules/.vite/deps')).join()).toMatch(
        /headlight-wasm/,
      );
    } finally {
      await server.close();
    }
  });

  it('build, isolated and not', async () => {
    await build({ root: app.root, configFile: false, logLevel: 'warn' });
    for (const [, isolation] of ISOLATION) {
      const mounts = { '/': path.join(app.root, 'dist') };
      const server = await serve({ mounts, isolation, contentSecurityPolicy: POLICY });
      try {
        expectAnswer(await openApp(browser, server.url), isolation);
      } finally {
        await server.close();
      }
    }
    expect(
      filesUnder(path.join(app.root, 'dist')).filter((name) => name.endsWith('.wasm')),
    ).toHaveLength(4);
  });
});

describe('webpack, default configuration', () => {
  it(
    'build, isolated and not',
    async () => {
      const folder = path.join(app.root, 'webpack');
      const warnings = await buildWithWebpack(folder);
      // The hint that a .wasm file has more than 244 KiB is true and cannot be helped.
      expect(warnings.filter((text) => !text.startsWith('asset size limit'))).toEqual([]);
      for (const [, isolation] of ISOLATION) {
        const mounts = { '/': folder, '/dist/': path.join(folder, 'dist') };
        const server = await serve({ mounts, isolation, contentSecurityPolicy: POLICY });
        try {
          expectAnswer(await openApp(browser, server.url), isolation);
        } finally {
          await server.close();
        }
      }
      const built = filesUnder(path.join(folder, 'dist'));
      expect(built.filter((name) => name.endsWith('.wasm'))).toHaveLength(4);
    },
    INSTALL_TIMEOUT_MS,
  );
});
