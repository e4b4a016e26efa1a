// The lab's sections on the loaded model as a visitor uses them: prunes heads and reads what it costs, looks through a block,
// compares stable ranks, runs a layout as a whole model.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled, settings } from './support/browsers.js';
import { patienceMs } from './support/chat.js';
import { addressWith, exported, openLab, texts } from './support/lab.js';
import { expectFitsPhones, expectQuiet } from './support/page_checks.js';
import { builtPages, type Site } from './support/site.js';
import { type Tab, textOf, until } from './support/tab.js';

const here = settings.filter(({ isolation, engine }) => isolation && engine !== 'webkit');
/** Measuring runs the model for some seconds, on a slow machine for many. */
const measuringMs = 120_000;

describe.each(here)('lab, the loaded model, $title', ({ engine, isolation }) => {
  const skip = !isInstalled(engine);
  const test = skip ? it.skip : it;
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let tab: Tab;
  let site: Site;
  let url = '';

  const show = (id: string) =>
    tab.run((name) => document.getElementById(name)?.scrollIntoView({ block: 'start' }), id);

  beforeAll(async () => {
    if (skip) return;
    site = await builtPages(engine, isolation);
    url = `${site.url}lab/`;
    tab = site.tab;
    await openLab(tab, url);
  });

  afterAll(() => site?.close());

  afterEach(async () => {
    if (skip) return;
    await expectQuiet(tab, site.url);
  });

  test(`one token through a block: shapes, bytes and times beside the article’s${why}`, async () => {
    await show('phases');
    await until(
      tab,
      'the phases',
      measuringMs,
      () => document.querySelector('[data-phase-tensor="output"]') !== null,
    );
    const rows = await texts(tab, '#phase-table tbody tr');
    expect(rows.some((row) => row.startsWith('2. project'))).toBe(true);
    const q = await texts(tab, '[data-phase-tensor="q reshaped"] td');
    expect(q.slice(1, 5)).toEqual(['1 × 8 × 24', 'f32', '768 B', 'nothing to do']);
    expect((await texts(tab, '[data-phase-tensor="q"] td')).at(-1)).toContain('7 × 8192');
    expect((await texts(tab, '[data-phase-tensor="scores"] td')).at(-1)).toMatch(
      /64 × 7 × 7.*printed 6 KB/,
    );
    expect(await textOf(tab, 'phase-embedding')).toMatch(/2,048 × 192\. “.+” is row \d+: /);
    await tab.select('phase-without', '5');
    await until(tab, 'what the head reached', measuringMs, () =>
      /^Without head 5 of layer 0, ([\d,]+) of \1 numbers/.test(
        document.getElementById('phase-mix')?.textContent ?? '',
      ),
    );
    await addressWith(tab, 'px=5');
    await tab.select('phase-without', '');
    await tab.select('phase-layer', '4');
    expect(await addressWith(tab, 'pl=4')).toContain('pl=4');
    const csv = await exported(tab, '#phase-export', 'csv');
    expect(csv.text).toContain('2. project,k,1 x 48,f32,192');
  });

  test(`stable ranks of every layer, and whether the article’s claim holds${why}`, async () => {
    await show('ranks');
    await until(tab, 'the ranks', measuringMs, () =>
      /The article’s claim/.test(document.getElementById('rank-status')?.textContent ?? ''),
    );
    expect(await texts(tab, '[data-rank-layer] th')).toEqual(['0', '1', '2', '3', '4', '5']);
    const cells = await texts(tab, '[data-rank-layer="2"] td');
    expect(cells.map((cell) => cell.replace(/^[\d.]+ /, ''))).toEqual([
      ...['of 192', 'of 48', 'of 64', 'of 192'],
    ]);
    const svg = await exported(tab, '#spectrum-export', 'svg');
    expect(svg.text).toContain('<path');
  });

  test(`heads are pruned and keys cut; what it costs is measured, kept in the address and undone${why}`, async () => {
    await show('change');
    await until(
      tab,
      'the heads',
      measuringMs,
      () => document.querySelector('[data-head-cell="5.7"]') !== null,
    );
    for (const head of ['4.0', '4.1', '4.5', '4.6'])
      await tab.run(
        (key) => document.querySelector<HTMLElement>(`[data-head-cell="${key}"]`)?.click(),
        head,
      );
    expect(await textOf(tab, 'edit-name')).toBe('pruned 4.0, 4.1, 4.5, 4.6');
    await tab.type('edit-qk', '16');
    await tab.click('edit-measure');
    await until(tab, 'the figures', measuringMs, () =>
      document.getElementById('edit-verdict')?.textContent?.includes('d_qk 16: costs'),
    );
    expect(await texts(tab, '[data-figure="Cache, one token"] td')).toEqual([
      ...['2.625 KiB', '2.25 KiB', '−14.3 %'],
    ]);
    const recall = await texts(tab, '[data-figure="Facts recalled"] td');
    expect(Number.parseInt(recall[1] ?? '24', 10)).toBeLessThan(
      Number.parseInt(recall[0] ?? '0', 10),
    );
    expect((await textOf(tab, 'edit-writes-before')).toLowerCase()).toContain('green');
    const address = await addressWith(tab, 'prune=4.0,4.1,4.5,4.6');
    expect(address).toContain('eqk=16');
    await tab.click('edit-export');
    await until(tab, 'the refusal', patienceMs, () =>
      document.getElementById('edit-status')?.textContent?.includes('one table of frequencies'),
    );
    await tab.click('edit-undo');
    expect(await textOf(tab, 'edit-name')).toBe('as loaded');
    await until(
      tab,
      'a plain address',
      patienceMs,
      () => location.search.includes('prune') === false,
    );
  });

  test(`a session’s own eviction: first keys on a slider down to none, its cost measured${why}`, async () => {
    await show('change');
    expect(await textOf(tab, 'edit-keep-text')).toContain('Every key stays');
    await tab.select('edit-keep', 'sinks');
    expect(await textOf(tab, 'edit-keep-text')).toContain('session’s own policy');
    expect(await textOf(tab, 'edit-name')).toBe('keeps 4 first + 48 last keys');
    await tab.run(() =>
      document.querySelector<HTMLElement>('[data-testid="edit-sinks-slider"]')?.focus(),
    );
    for (let i = 0; i < 4; i++) await tab.press('ArrowLeft');
    expect(await textOf(tab, 'edit-name')).toBe('keeps 0 first + 48 last keys');
    expect(await addressWith(tab, 'es=0')).toContain('ek=sinks');
    await tab.click('edit-measure');
    await until(tab, 'the figures', measuringMs, () =>
      document.getElementById('edit-verdict')?.textContent?.startsWith('keeps 0 first'),
    );
    expect(await textOf(tab, 'edit-verdict')).toMatch(/costs .* recalled facts .* of the cache/);
    await tab.click('edit-export');
    await until(tab, 'what no file holds', patienceMs, () =>
      document.getElementById('edit-status')?.textContent?.includes('no file holds it'),
    );
    await tab.click('edit-undo');
  });

  test(`one click replaces the most fixed head by its pattern and says what that costs${why}`, async () => {
    await show('change');
    const labels = await texts(tab, '#edit-try button');
    expect(labels[0]).toMatch(/^Replace \d\.\d, the most fixed head \(spread 0\.\d\d\)$/);
    expect(labels[1]).toMatch(/^Prune \d\.\d, the most content-based \(spread 0\.\d\d\)$/);
    await tab.run(() => document.querySelector<HTMLElement>('#edit-try button')?.click());
    const head = /\d\.\d/.exec(labels[0] ?? '')?.[0] ?? '';
    await until(
      tab,
      'the figures',
      measuringMs,
      (name) => document.getElementById('edit-verdict')?.textContent?.startsWith(`fixed ${name}:`),
      head,
    );
    expect(await textOf(tab, 'edit-verdict')).toMatch(/: (costs|made the loss)/);
    await tab.click('edit-undo');
  });

  test(`the toy over 20 draws gives the article’s figures${why}`, async () => {
    await tab.click('toy-run');
    await until(tab, 'the toy', measuringMs, () =>
      document.getElementById('toy-status')?.textContent?.startsWith('Computed by the kernels'),
    );
    const [spread = '', error = ''] = await texts(tab, '[data-toy="previous"] td');
    expect(Math.abs(Number.parseFloat(spread) - 0.032)).toBeLessThan(0.003);
    expect(Math.abs(Number.parseFloat(error) - 0.0233)).toBeLessThan(0.002);
  });

  test(`a layout is built as a whole model, run, and can be stopped${why}`, async () => {
    await show('run');
    await tab.click('run-models');
    await until(tab, 'the run', measuringMs, () =>
      /Round|Warming/.test(document.getElementById('run-status')?.textContent ?? ''),
    );
    await tab.click('run-models');
    await until(tab, 'the stop', patienceMs, () =>
      document.getElementById('run-status')?.textContent?.startsWith('Stopped'),
    );
  });

  test(`nothing is wider than a phone${why}`, async () => {
    await expectFitsPhones(tab);
  });
});
