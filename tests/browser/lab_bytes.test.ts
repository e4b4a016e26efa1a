// The lab's section "Bytes" as a visitor uses it: chooses layouts, types, slides, hovers, shares the address, saves figures.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled, settings } from './support/browsers.js';
import { dropFile, patienceMs } from './support/chat.js';
import { addressWith, exported, openLab, texts } from './support/lab.js';
import { expectFitsPhones, expectQuiet } from './support/page_checks.js';
import { builtPages, type Site } from './support/site.js';
import { type Tab, textOf, until } from './support/tab.js';

const here = settings.filter(({ isolation, engine }) => isolation || engine === 'webkit');

describe.each(here)('lab, bytes, $title', ({ engine, isolation }) => {
  const skip = !isInstalled(engine);
  const test = skip ? it.skip : it;
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let tab: Tab;
  let site: Site;
  let url = '';

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

  test(`the first table stands there, ours beside the printed figures${why}`, async () => {
    const sizes = await texts(tab, '#preset-table td:nth-child(2) .exact');
    expect(sizes.map((text) => Number.parseFloat(text).toFixed(1)).join(' ')).toBe(
      '71.0 65.5 60.0 54.5 65.5 60.0 65.3 59.5 53.8',
    );
    const printed = await texts(tab, '#preset-table td:nth-child(2) small');
    expect(printed.join(' ')).toBe(
      '71.0 65.5 60.0 54.5 65.5 60.0 65.3 59.5 53.8'
        .split(' ')
        .map((mb) => `printed ${mb} MB`)
        .join(' '),
    );
    expect(await texts(tab, '#findings li')).toHaveLength(3);
    expect(await textOf(tab, 'preset-whys')).toMatch(/rounded to three decimals/);
  });

  test(`a mark of the chart is read by pointing at it${why}`, async () => {
    await tab.hover('[data-point="16 / 64"]');
    await until(tab, 'the detail', patienceMs, () =>
      document.getElementById('loss-detail')?.textContent?.includes('54.5 MB, loss 2.174, +3.72 %'),
    );
  });

  test(`typing a width changes the cost and the address; a shared address shows the same${why}`, async () => {
    await tab.type('shape-qk', '32');
    expect(await textOf(tab, 'cost-file')).toBe('60.0 MB');
    expect(await textOf(tab, 'key-notes')).toMatch(/2 loads of 16 bytes and 2 dot-product/);
    const address = await addressWith(tab, 'qk=32');
    await openLab(tab, address);
    expect(await textOf(tab, 'cost-file')).toBe('60.0 MB');
    await tab.click('shape-reset');
    expect(await textOf(tab, 'cost-file')).toBe('65.5 MB');
    await until(tab, 'a plain address', patienceMs, () => location.search === '');
  });

  test(`a slider is moved by the keyboard${why}`, async () => {
    await tab.run(() =>
      document.querySelector<HTMLElement>('[data-testid="shape-v-slider"]')?.focus(),
    );
    await tab.press('ArrowLeft');
    expect(await tab.run(() => document.querySelector<HTMLInputElement>('#shape-v')?.value)).toBe(
      '63',
    );
    // 28 blocks x 512 x 20 heads' widths x 2 bytes less: 65.489 - 0.573 MB.
    expect(await textOf(tab, 'cost-file')).toBe('64.9 MB');
    await tab.press('ArrowRight');
    expect(await textOf(tab, 'cost-file')).toBe('65.5 MB');
  });

  test(`what cannot be is said beside the field, and the last good figures stay${why}`, async () => {
    await tab.type('shape-G', '3');
    expect(await texts(tab, '#shape-G-error')).toEqual(['KV heads must divide the 8 query heads.']);
    expect(await textOf(tab, 'cost-file')).toBe('65.5 MB');
    await tab.type('shape-G', '0');
    expect(await texts(tab, '#shape-G-error')).toEqual([
      'KV heads: a whole number from 1 to 1,024.',
    ]);
    await tab.click('shape-reset');
    expect(await texts(tab, '#shape-G-error')).toEqual(['']);
  });

  test(`other layouts: the cache tables, one wide head, the loaded model${why}`, async () => {
    await tab.select('preset', 'llama70b');
    expect(await texts(tab, '#preset-table td:nth-child(3) .exact')).toEqual([
      '2,560 KiB',
      '320 KiB',
      '40 KiB',
    ]);
    expect(await texts(tab, '#preset-table td:nth-child(4) .exact')).toEqual([
      '20 GiB',
      '2.5 GiB',
      '0.3125 GiB',
    ]);
    await tab.select('preset', 'heads');
    expect(await texts(tab, '#preset-table td:nth-child(6) .exact')).toEqual([
      '32,768 B',
      '32,768 B',
      '4,096 B',
      '512 B',
    ]);
    await tab.select('preset', 'loaded');
    expect(await textOf(tab, 'cost-parameters')).toBe('2.81 million');
    expect(await textOf(tab, 'cost-kv-token')).toBe('1.313 KiB');
    await dropFile(tab, '../models/default-q8_0.gguf', 'mine.gguf');
    await until(tab, 'the dropped model', patienceMs, () =>
      document.getElementById('preset-title')?.textContent?.includes('mine'),
    );
    await dropFile(tab, '../models/default-q8_0.gguf', 'cut.gguf', 1000);
    await until(tab, 'what is wrong with a cut file', patienceMs, () =>
      /cut\.gguf .*(ends|incomplete|truncated|short).*The model before it stays in use/i.test(
        document.getElementById('toast')?.textContent ?? '',
      ),
    );
    await tab.select('preset', 'seedA1');
  });

  test(`the tensors of a branch, for the article's 70B shape as printed${why}`, async () => {
    await tab.click('tensor-article');
    const bytes = await texts(tab, '#tensor-table .exact');
    expect([bytes[0], bytes[3], bytes[10]]).toEqual(['112 KiB', '14 KiB', '6.125 KiB']);
    expect(await texts(tab, '#tensor-table small')).toHaveLength(16);
    expect(await textOf(tab, 'tensor-notes')).toContain('head 7 owns places 768 to 895');
    await tab.type('tensor-tokens', '14');
    expect((await texts(tab, '#tensor-table .exact'))[10]).toBe('24.5 KiB');
    await tab.type('tensor-tokens', '7');
    await tab.select('preset', 'seedA1');
  });

  test(`200 conversations against 25, and 186 against 23 in GB${why}`, async () => {
    const counts = () => texts(tab, '#conc-list .conc-n');
    expect((await counts()).slice(0, 3)).toEqual(['25', '200', '1,600']);
    await tab.select('conc-unit', 'GB');
    expect((await counts()).slice(0, 2)).toEqual(['23', '186']);
    await tab.select('conc-unit', 'GiB');
    await tab.type('conc-tokens', '4096');
    expect((await counts()).slice(0, 2)).toEqual(['50', '400']);
    await tab.type('conc-tokens', '8192');
    await tab.type('conc-gpus', '8');
    expect((await counts()).slice(0, 3)).toEqual(['25', '200', '200']);
    expect((await texts(tab, '#conc-list .conc-batch'))[2]).toContain('each KV head 8 times');
    await tab.type('conc-gpus', '1');
    await tab.type('conc-batch', '32');
    expect((await texts(tab, '#conc-list .conc-batch'))[1]).toBe('32 of them: 80 GiB');
    await tab.type('conc-batch', '16');
  });

  test(`a latent instead of 128 heads: 56.9 times fewer numbers, and fewer still with half of it${why}`, async () => {
    expect(await textOf(tab, 'mla-result')).toMatch(/^576 numbers .* 32,768: 56\.9 times fewer/);
    await tab.type('mla-latent', '256');
    expect(await textOf(tab, 'mla-result')).toMatch(/^320 numbers .* 102\.4 times fewer/);
    await addressWith(tab, 'mlac=256');
    await tab.type('mla-latent', '512');
  });

  test(`this device's ceilings give expected rates${why}`, async () => {
    await tab.click('measure-device');
    await until(tab, 'the rates', patienceMs, () =>
      /at most [\d,.]+ tokens\/s/.test(document.getElementById('cost-rates')?.textContent ?? ''),
    );
  });

  test(`a changed layout runs beside the row it came from, in every cache format${why}`, async () => {
    await tab.type('shape-qk', '64');
    await tab.click('try-run');
    await until(tab, 'the run', patienceMs, () =>
      /median of 5 rounds/.test(document.getElementById('try-status')?.textContent ?? ''),
    );
    const rows = await tab.run(() =>
      [...document.querySelectorAll<HTMLElement>('[data-try]')].map(({ dataset }) => dataset.try),
    );
    expect(rows).toEqual(
      ['8/4 heads, 48/64 wide', '8/4 heads, 64/64 wide'].flatMap((label) =>
        ['f32', 'f16', 'int8'].map((cache) => `${label}, ${cache}`),
      ),
    );
    // 1,024 rows of 4 heads x (48 + 64) x 4 bytes.
    expect((await texts(tab, '#try-table td:nth-child(3)'))[0]).toBe('1.75 MiB');
    const errors = (await texts(tab, '#try-table td:nth-child(6)')).map(Number.parseFloat);
    expect(errors[0]).toBe(0);
    expect(errors[2]).toBeLessThan(5);
    expect(await textOf(tab, 'try-status')).toMatch(/times as fast for one token/);
    await tab.click('shape-reset');
  });

  test(`figures are saved in all four formats${why}`, async () => {
    const csv = await exported(tab, '#preset-export', 'csv');
    expect(csv.name).toBe('headlight-seedA1.csv');
    expect(csv.text).toContain('48 / 64,65.489 MB,65.5 MB');
    const json = await exported(tab, '#loss-export', 'json');
    expect(JSON.parse(json.text)[3]).toMatchObject({ label: '16 / 64', loss: 2.174 });
    const svg = await exported(tab, '#loss-export', 'svg');
    expect(svg.text).toMatch(/^<svg [^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"/);
    expect(svg.text).not.toMatch(/class=|var\(--/);
    expect(svg.text).toMatch(/stroke="rgb/);
    expect(svg.text).toContain('queries and keys cut');
    const png = await exported(tab, '#item-export', 'png');
    expect(png.type).toBe('image/png');
    expect(png.size).toBeGreaterThan(5000);
  });

  test(`nothing is wider than a phone${why}`, async () => {
    await expectFitsPhones(tab);
  });
});
