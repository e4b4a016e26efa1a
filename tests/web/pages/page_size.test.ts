// What a visitor downloads before a page works: scripts and styles, compressed. The WASM modules have a limit of their own.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('../../../build/pages', import.meta.url));
const maxBytes = 300_000;

/** The files that a page names, and those that these name, by their hashed names. */
function reachable(page: string): Set<string> {
  const assets = readdirSync(`${folder}/assets`).filter((name) => /\.(js|css)$/.test(name));
  const seen = new Set<string>();
  const visit = (text: string) => {
    for (const name of assets) {
      if (seen.has(name) || !text.includes(name)) continue;
      seen.add(name);
      visit(readFileSync(`${folder}/assets/${name}`, 'utf8'));
    }
  };
  visit(readFileSync(`${folder}/${page}`, 'utf8'));
  return seen;
}

test.each(['index.html', 'lab/index.html', 'bench/index.html'])(
  '%s: scripts and styles are under 300 kB compressed',
  (page) => {
    if (!existsSync(folder)) throw new Error('the pages are not built: run `npm run build`');
    const names = [...reachable(page)];
    expect(names.some((name) => name.startsWith('worker'))).toBe(true);
    const bytes = names.reduce(
      (sum, name) => sum + gzipSync(readFileSync(`${folder}/assets/${name}`)).length,
      0,
    );
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(maxBytes);
  },
);
