// The built pages hand on the licences of all that they contain, the package's workers included, and name them.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('../../../build/pages', import.meta.url));
const projectFile = fileURLToPath(new URL('../../../package.json', import.meta.url));

/** Dependencies that no page and no worker contains: they build, check and test. */
const TOOLS =
  /^(@biomejs\/biome|@types\/.*|publint|puppeteer-core|sirv|typescript|vite|vitest|webdriverio)$/;

test('the licence of each dependency that is shipped lies beside the pages, which link to it', () => {
  if (!existsSync(folder)) throw new Error('the pages are not built: run `npm run build`');
  const page = readFileSync(`${folder}/lab/index.html`, 'utf8');
  const links = [...page.matchAll(/<link rel="license" href="\.\.\/([^"]+)"/g)].map(([, at]) => at);
  expect(links).toHaveLength(2);
  const texts = links.map((at) => readFileSync(`${folder}/${at}`, 'utf8')).join('\n');
  const { devDependencies } = JSON.parse(readFileSync(projectFile, 'utf8')) as {
    devDependencies: Record<string, string>;
  };
  const shipped = Object.entries(devDependencies).filter(([name]) => !TOOLS.test(name));
  expect(shipped.length).toBeGreaterThan(5);
  for (const [name, version] of shipped)
    expect(texts).toMatch(new RegExp(`^(## )?${name} (- )?${version} \\(`, 'm'));
});
