// Engines with threads, started and disposed of again and again on a busy machine: a browser may hang in making the
// threads (web/runtime/src/start_watch.ts), and then another try must stand.
import { type ChildProcess, spawn } from 'node:child_process';
import os from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import type * as Headlight from 'headlight-wasm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled } from '../../browser/support/browsers.js';
import { fixture, openFixture, type Site } from '../../browser/support/site.js';
import type { Tab } from '../../browser/support/tab.js';
import { isLong, repeat, report, timeFor } from '../plan.js';

const file = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const MODEL = '/models/default-q8_0.gguf';
const SHARE = 0.02;
const LEAST = isLong ? 40 : 12;

interface Started {
  threads: number;
  /** Tries before the one that stands, in which the browser hung. */
  hung: number;
  code: string;
}

const start = (tab: Tab): Promise<Started> =>
  tab.run(async (url) => {
    const { Engine } = (globalThis as unknown as { headlight: typeof Headlight }).headlight;
    try {
      const options = { module: 'simd', threads: 2 } as const;
      const engine = await Engine.load(new URL(url, location.href), options);
      const { threads, reasons } = engine.info.runtime;
      const { tokens } = await engine.complete([1, 5, 9], { maxTokens: 2 }).result();
      await engine.dispose();
      const hung = reasons.filter((reason) => reason.includes('hung')).length;
      return { threads, hung, code: tokens.length === 0 ? 'no tokens' : '' };
    } catch (error) {
      return { threads: 0, hung: 0, code: String(error) };
    }
  }, MODEL);

describe.each(['chromium', 'firefox'] as const)('starts in %s', (engine) => {
  const skip = !isInstalled(engine);
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  const burners: ChildProcess[] = [];
  let site: Site;
  let tab: Tab;

  beforeAll(async () => {
    if (skip) return;
    const more = { '/models/': file('examples/models') };
    site = await fixture(engine, 'engine', { isolation: true, more });
    tab = site.tab;
    await openFixture(tab, site.url);
    for (const _ of os.cpus())
      burners.push(spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  });
  afterAll(async () => {
    for (const burner of burners) burner.kill('SIGKILL');
    await site?.close();
  });

  it.skipIf(skip)(
    `with threads, on a busy machine, all stand${why}`,
    { timeout: timeFor(SHARE).timeout },
    async () => {
      const lost: string[] = [];
      let hung = 0;
      const runs = await repeat(SHARE, LEAST, async (i) => {
        const started = await start(tab);
        hung += started.hung;
        if (started.code !== '' || started.threads !== 2)
          lost.push(`${i}: ${started.threads} threads, ${started.code}`);
      });
      report(`starts, ${engine}`, { runs, faults: 0, lost: lost.length, browserHung: hung });
      expect(lost).toEqual([]);
    },
  );
});
