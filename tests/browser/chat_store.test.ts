// Models by address on the chat page: kept in the browser, loaded again without their server, gone on with, deleted.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomModel, SMALL } from '../web/runtime/random_model.js';
import type { FaultServer } from '../web/store/fault_server.js';
import { isInstalled } from './support/browsers.js';
import { ask, openChat, patienceMs } from './support/chat.js';
import { type FaultySite, faultyBuiltPages } from './support/site.js';
import { type Tab, textOf, until } from './support/tab.js';

const MODEL = new Uint8Array(
  readFileSync(fileURLToPath(new URL('../../examples/models/default-q8_0.gguf', import.meta.url))),
);
const PATH = '/elsewhere/kept-model.gguf';
/** 6 GiB of cache for its context of 4,096. */
const TOO_LARGE = { ...SMALL, layers: 6, kv: 64, heads: 64, dqk: 512, dv: 512, d: 32, ctx: 4096 };

async function loadFrom(tab: Tab, url: string): Promise<void> {
  await tab.click('model-button');
  await tab.type('model-url', url);
  await tab.click('load-url');
}

function isReady(tab: Tab, name: string): Promise<void> {
  return until(
    tab,
    `the model ${name}`,
    patienceMs,
    (wanted) => {
      const shown = document.querySelector('[data-testid="model-button"]')?.textContent;
      return document.body.dataset.state === 'ready' && shown?.includes(wanted);
    },
    name,
  );
}

const openDialog = async (tab: Tab, listed: boolean): Promise<string> => {
  await tab.click('model-button');
  await until(
    tab,
    'the list of stored models',
    patienceMs,
    (wanted) => (document.querySelector('[data-testid="stored-model"]') !== null) === wanted,
    listed,
  );
  return textOf(tab, 'stored');
};

describe.each(['chromium', 'firefox', 'webkit'] as const)(
  'chat page, models by address, %s',
  (engine) => {
    const skip = !isInstalled(engine);
    const why = skip ? ` (needs ${engine}: npm run setup)` : '';
    // WebKitGTK has no file system for pages.
    const hasStore = engine !== 'webkit';
    let site: FaultySite;
    let server: FaultServer;
    let tab: Tab;

    beforeAll(async () => {
      if (skip) return;
      site = await faultyBuiltPages(engine);
      ({ server, tab } = site);
      await openChat(tab, server.url);
    });
    afterAll(() => site?.close());

    it.skipIf(skip)(`a model loads from its address and answers${why}`, async () => {
      await loadFrom(tab, server.serve(PATH, { bytes: MODEL, pieceBytes: 65_536, pauseMs: 4 }));
      await isReady(tab, 'kept-model');
      expect(await ask(tab, 'Who are you?')).toMatch(/model/i);
      const info = await tab.run(
        () => document.querySelector('[data-testid="model-info"]')?.textContent ?? '',
      );
      expect(info).toMatch(hasStore ? /kept in this browser/ : /not kept in the browser's storage/);
    });

    if (!hasStore) return;

    it.skipIf(skip)(`it loads again when its server is gone${why}`, async () => {
      server.files.delete(PATH);
      await openChat(tab, server.url);
      expect(await openDialog(tab, true)).toMatch(/kept-model.*3\.0 MB, from 127\.0\.0\.1/);
      await tab.click('stored-load');
      await isReady(tab, 'kept-model');
      expect(await textOf(tab, 'model-info')).toMatch(/this browser's storage/);
      expect(await ask(tab, 'Who are you?')).toMatch(/model/i);
      // The header before the download, then the file.
      expect(server.seen(PATH)).toHaveLength(2);
      expect(server.sentBytes(PATH)).toBeLessThan(2 * MODEL.length);
    });

    it.skipIf(skip)(
      `one that does not fit is refused before its download, with what would fit${why}`,
      async () => {
        const large = new Uint8Array(readFileSync(await randomModel('too-large', TOO_LARGE)));
        const url = server.serve('/elsewhere/large.gguf', {
          bytes: large,
          pieceBytes: 65_536,
          pauseMs: 5,
        });
        await loadFrom(tab, url);
        await until(
          tab,
          'the refusal',
          patienceMs,
          () => document.querySelector('[data-testid="problem"]') !== null,
        );
        expect(await textOf(tab, 'problem')).toMatch(
          /not enough memory.*needs \d+ MiB.*What would fit: nCtx: \d+/is,
        );
        expect(server.sentBytes('/elsewhere/large.gguf')).toBeLessThan(large.length / 2);
        await tab.click('dismiss');
      },
    );

    it.skipIf(skip)(`it is deleted, and the list says so${why}`, async () => {
      await openDialog(tab, true);
      await tab.click('stored-delete');
      await until(tab, 'an empty list', patienceMs, () => {
        const status = document.querySelector('[data-testid="stored-status"]')?.textContent ?? '';
        const rows = document.querySelectorAll('[data-testid="stored-model"]');
        return rows.length === 0 && status.includes('kept-model was deleted');
      });
      expect(await tab.problems()).toEqual([]);
    });
  },
);
