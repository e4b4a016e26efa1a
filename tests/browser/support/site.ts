// What a browser test opens: folders served as a site, where wanted with a server in front that goes wrong on demand, and a
// tab of a browser.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { serve } from '../../../web/serve.mjs';
import { FaultServer } from '../../web/store/fault_server.js';
import { openTab } from './browsers.js';
import { patienceMs } from './chat.js';
import { type EngineName, type Tab, until } from './tab.js';

const file = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

export interface Site {
  tab: Tab;
  url: string;
  close(): Promise<void>;
}

export interface FaultySite extends Site {
  /** Has the files that it is told to serve; the rest is the site's. */
  server: FaultServer;
}

type Mounts = Readonly<Record<string, string>>;

async function openSite(engine: EngineName, mounts: Mounts, isolation: boolean): Promise<Site> {
  const server = await serve({ mounts, isolation });
  const tab = await openTab(engine).catch(async (error) => {
    await server.close();
    throw error;
  });
  const close = async () => {
    await tab.close();
    await server.close();
  };
  return { tab, url: server.url, close };
}

async function withFaults({ url, tab, close }: Site): Promise<FaultySite> {
  const server = new FaultServer(url);
  await server.start();
  // At once: each waits for connections of the other.
  const closeAll = async () => {
    await Promise.all([close(), server.stop()]);
  };
  return { tab, url: server.url, server, close: closeAll };
}

/** The pages as they are built, and `more` before them. */
export function builtPages(engine: EngineName, isolation: boolean, more: Mounts = {}) {
  const pages = file('build/pages');
  if (!existsSync(pages)) throw new Error('the pages are not built: run `npm run build`');
  return openSite(engine, { ...more, '/': pages }, isolation);
}

export const faultyBuiltPages = async (engine: EngineName): Promise<FaultySite> =>
  withFaults(await builtPages(engine, false));

export interface FixtureOptions {
  /** Default false. */
  isolation?: boolean;
  /** Another package than the built one. */
  runtime?: string;
  /** Further mounts. */
  more?: Mounts;
}

/** A page of tests/browser/fixtures with the package. */
export function fixture(engine: EngineName, name: string, options: FixtureOptions = {}) {
  const { isolation = false, runtime = file('web/runtime/dist'), more = {} } = options;
  const mounts = { '/runtime/': runtime, ...more, '/': file(`tests/browser/fixtures/${name}`) };
  return openSite(engine, mounts, isolation);
}

export const faultyFixture = async (
  engine: EngineName,
  name: string,
  options?: FixtureOptions,
): Promise<FaultySite> => withFaults(await fixture(engine, name, options));

/** Opens a fixture's page anew. */
export async function openFixture(tab: Tab, url: string): Promise<void> {
  await tab.open(url);
  await until(tab, 'the package', patienceMs, () => document.title === 'ready');
}
