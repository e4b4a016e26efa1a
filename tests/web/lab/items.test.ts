// The table of README.md beside this file: every item of the articles has a place on the lab page and a test, or says why not.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const here = new URL('./', import.meta.url);
const tests = new URL('../../', import.meta.url);
const page = new URL('../../../web/pages/lab/', import.meta.url);

interface Item {
  item: string;
  places: string[];
  test: string;
}

const items = readFileSync(new URL('README.md', here), 'utf8')
  .split('\n')
  .filter((line) => /^\| [ABC]\d/.test(line))
  .map((line): Item => {
    const [, item = '', , places = '', test = ''] = line.split('|').map((cell) => cell.trim());
    return { item, places: places.split(', '), test };
  });

const html = ['index.html', ...readdirSync(new URL('sections/', page)).map((f) => `sections/${f}`)]
  .map((file) => readFileSync(new URL(file, page), 'utf8'))
  .join('\n');

const numbers = (letter: string, first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, i) => `${letter}${first + i}`);

test('every item is there, once and in order', () => {
  const expected = [...numbers('A', 4, 17), ...numbers('B', 1, 44), ...numbers('C', 1, 59)];
  expect(items.map(({ item }) => item)).toEqual(expected);
});

test.each(items)('$item: its place is on the page, its test is there under its title', (item) => {
  for (const place of item.places) expect(html).toContain(`id="${place.slice(1)}"`);
  if (item.test.startsWith('not a thing')) return;
  const [, file = '', title = ''] = /^`([^`]+)`: (.+)$/.exec(item.test) ?? [];
  const path = new URL(file, tests);
  expect(existsSync(path), item.test).toBe(true);
  expect(readFileSync(path, 'utf8'), file).toContain(title);
});
