// The lab's section "One head by hand" as a visitor uses it: points at numbers, edits them, slides, steps through tiles, shares
// the address. What is read are the kernels' numbers.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled, settings } from './support/browsers.js';
import { patienceMs } from './support/chat.js';
import { addressWith, exported, openLab, readsText, showsText, texts } from './support/lab.js';
import { expectFitsPhones, expectQuiet } from './support/page_checks.js';
import { builtPages, type Site } from './support/site.js';
import { type Tab, textOf, until } from './support/tab.js';

const here = settings.filter(({ isolation, engine }) => isolation || engine === 'webkit');

function matrix(tab: Tab, name: string): Promise<string[]> {
  return texts(tab, `[data-testid="three-${name}"] td[data-cell]`);
}

describe.each(here)('lab, one head by hand, $title', ({ engine, isolation }) => {
  const skip = !isInstalled(engine);
  const test = skip ? it.skip : it;
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let tab: Tab;
  let site: Site;

  const shows = (selector: string, wanted: string) => showsText(tab, selector, wanted);

  beforeAll(async () => {
    if (skip) return;
    site = await builtPages(engine, isolation);
    tab = site.tab;
    await openLab(tab, `${site.url}lab/`);
  });

  afterAll(() => site?.close());

  afterEach(async () => {
    if (skip) return;
    await expectQuiet(tab, site.url);
  });

  test(`the article's matrices, step by step${why}`, async () => {
    expect(await matrix(tab, 'q')).toEqual(['2', '0', '0', '3', '1', '2']);
    expect(await matrix(tab, 'k')).toEqual(['0', '2', '3', '0', '2', '1']);
    expect(await matrix(tab, 'v')).toEqual(['1', '1', '1', '4', '2', '2']);
    expect(await matrix(tab, 'scores')).toEqual(['0', '6', '4', '6', '0', '3', '4', '3', '4']);
    expect((await matrix(tab, 'scaled'))[1]).toBe('4.2426');
    expect((await matrix(tab, 'masked')).filter((text) => text === '−∞')).toHaveLength(3);
    expect(await matrix(tab, 'weights')).toEqual([
      ...['1', '0', '0'],
      ...['0.9858', '0.0142', '0'],
      ...['0.4011', '0.1978', '0.4011'],
    ]);
    const out = (await matrix(tab, 'out')).map(Number);
    for (const [i, exact] of [1, 1, 1, 1.0425, 1.4011, 1.9944].entries())
      expect(Math.abs((out[i] ?? 0) - exact)).toBeLessThan(1e-4);
    const check = await textOf(tab, 'three-check');
    expect(check).toMatch(engine === 'webkit' ? /module simd/ : /module relaxed/);
    expect(Number(/at most (\S+) from/.exec(check)?.[1])).toBeLessThan(1e-6);
  });

  test(`a number under the pointer says its arithmetic and marks what it is made of${why}`, async () => {
    await tab.hover('[data-testid="three-scores"] [data-cell="0,1"]');
    await shows('#three-text', '2·3 + 0·0 = 6');
    expect(await textOf(tab, 'three-name')).toBe('S[0][1]');
    const marked = await texts(tab, '.source');
    expect(marked).toEqual(['2', '0', '3', '0']);
  });

  test(`arrow keys walk through a matrix${why}`, async () => {
    await tab.run(() =>
      document
        .querySelector<HTMLElement>('[data-testid="three-weights"] [data-cell="0,0"]')
        ?.focus(),
    );
    await tab.press('ArrowRight');
    expect(await textOf(tab, 'three-name')).toBe('A[0][1]');
    expect(await textOf(tab, 'three-text')).toBe('exp(−∞) = 0: exactly zero');
  });

  test(`an edited number changes every step, stands in the address, and can be taken back${why}`, async () => {
    await tab.type('three-x-0-0', '3');
    await shows('[data-testid="three-q"]', '4');
    expect((await matrix(tab, 'scores')).slice(0, 3)).toEqual(['0', '12', '8']);
    const address = await addressWith(tab, 'x=3,0,1,0,0,2,0,1,1,1,0,1');
    await openLab(tab, address);
    expect((await matrix(tab, 'scores')).slice(0, 3)).toEqual(['0', '12', '8']);
    await tab.type('three-x-0-0', 'none');
    expect(await tab.run(() => document.querySelectorAll('[aria-invalid]').length)).toBe(1);
    expect((await matrix(tab, 'scores')).slice(0, 3)).toEqual(['0', '12', '8']);
    await tab.click('three-reset');
    expect((await matrix(tab, 'scores')).slice(0, 3)).toEqual(['0', '6', '4']);
    await until(tab, 'a plain address', patienceMs, () => location.search === '');
  });

  test(`without the mask the first token looks ahead${why}`, async () => {
    await tab.click('three-mask');
    // softmax(0, 4.2426, 2.8284)
    await shows('[data-testid="three-weights"]', '0.7952');
    await tab.click('three-mask');
    await readsText(tab, '[data-testid="three-weights"] [data-cell="0,1"]', '0');
  });

  test(`QK-norm shows its two matrices, bounds the scores, and the address says so${why}`, async () => {
    const shownNorms = () =>
      tab.run(
        () =>
          ['three-qNormed', 'three-kNormed'].filter(
            (id) => !document.querySelector<HTMLElement>(`[data-testid="${id}"]`)?.hidden,
          ).length,
      );
    expect(await shownNorms()).toBe(0);
    await tab.click('three-qknorm');
    await readsText(tab, '[data-testid="three-weights"] [data-cell="2,0"]', '0.4156');
    expect(await shownNorms()).toBe(2);
    await tab.hover('[data-testid="three-qNormed"] [data-cell="2,0"]');
    await shows('#three-text', '1 / √((1² + 2²) / 2) = 1 / 1.5811 = 0.6325');
    await openLab(tab, await addressWith(tab, 'qknorm=on'));
    expect((await matrix(tab, 'scores'))[2]).toBe('1.7889');
    await tab.click('three-qknorm');
    await readsText(tab, '[data-testid="three-scores"] [data-cell="0,2"]', '4');
    expect(await shownNorms()).toBe(0);
  });

  test(`padding gets nothing, a learned sink keeps a part, and the address says so${why}`, async () => {
    await tab.click('three-sink');
    await shows('[data-testid="three-weights"] [data-cell="0,0"]', '0.5');
    await tab.click('three-padding');
    await readsText(tab, '[data-testid="three-weights"] [data-cell="2,2"]', '0');
    await addressWith(tab, 'learnedsink=on');
    await openLab(tab, await addressWith(tab, 'padding=on'));
    expect((await matrix(tab, 'weights'))[0]).toBe('0.5000');
    await tab.click('three-reset');
    await shows('[data-testid="three-weights"] [data-cell="2,2"]', '0.4011');
    await until(tab, 'a plain address', patienceMs, () => location.search === '');
  });

  test(`two heads disagree; one wide head is muddy${why}`, async () => {
    const results = () => texts(tab, '#heads-list .result');
    expect(await results()).toEqual(['0.9241 / 0.0759', '0.1192 / 0.8808']);
    await tab.select('heads-n', '1');
    await shows('#heads-list', '0.5875 / 0.4125');
    expect(await textOf(tab, 'heads-list')).toMatch(/= 7.*= 6/);
    await tab.click('heads-reset');
    await shows('#heads-list', '0.9241');
  });

  test(`seven tokens: exact weights, the printed ones, and those not scaled${why}`, async () => {
    const column = (n: number) => texts(tab, `#seven-table td:nth-child(${n})`);
    expect(await column(4)).toEqual('0.0300 0.0193 0.0148 0.5074 0.3262 0.0793 0.0230'.split(' '));
    expect(await column(5)).toEqual('0.029 0.019 0.014 0.520 0.316 0.078 0.023'.split(' '));
    expect(await column(6)).toEqual('0.0287 0.0192 0.0142 0.5207 0.3158 0.0779 0.0235'.split(' '));
    expect((await column(7)).slice(3, 5)).toEqual(['0.9933', '0.0067']);
    await tab.click('seven-three');
    await shows('#seven-table', '0.3333');
    expect(await texts(tab, '#seven-table thead th')).not.toContain('Printed');
    await tab.click('seven-article');
    await shows('#seven-table', '0.5074');
    await tab.type('seven-shift', '1000');
    await addressWith(tab, 'shift=1000');
    expect(await column(4)).toEqual('0.0300 0.0193 0.0148 0.5074 0.3262 0.0793 0.0230'.split(' '));
    await tab.type('seven-shift', '0');
  });

  test(`tile by tile to the two-pass result${why}`, async () => {
    expect(await texts(tab, '#online-table tbody tr')).toHaveLength(1);
    await tab.click('online-next');
    await shows('#online-text', 'the old sums are multiplied');
    await tab.click('online-all');
    await shows('#online-text', 'two-pass result');
    const rows = await texts(tab, '#online-table tbody tr');
    expect(rows).toHaveLength(3);
    const [ours, kernels] = [
      (await texts(tab, '#online-table td:nth-child(6)')).at(-1),
      (await texts(tab, '#online-table td:nth-child(7)')).at(-1),
    ];
    expect(ours).toBe(kernels);
    await tab.type('online-tile', '7');
    await until(
      tab,
      'one tile',
      patienceMs,
      () => document.querySelector<HTMLButtonElement>('[data-testid="online-next"]')?.disabled,
    );
    await shows('#online-text', 'two-pass result');
  });

  test(`as d grows the unscaled softmax hardens${why}`, async () => {
    const largest = async () => {
      const text = await textOf(tab, 'sat-facts');
      return /weight: (\S+) scaled, (\S+) not/.exec(text)?.slice(1).map(Number) ?? [];
    };
    await tab.type('sat-d', '4');
    await shows('#sat-facts', '√4 =');
    const small = await largest();
    await tab.type('sat-d', '1024');
    await shows('#sat-facts', '√1024 = 32.00');
    const [scaled = 1, unscaled = 0] = await largest();
    expect(unscaled).toBeGreaterThan(0.99);
    expect(scaled).toBeLessThan(0.8);
    expect(small[1]).toBeLessThan(unscaled);
    await shows('#sat-table', '22.63');
    // Exact, drawn here, printed.
    const cells = await texts(tab, '#sat-table tbody tr:nth-child(3) td');
    expect([cells[0], cells[2]]).toEqual(['11.31', '11.3']);
    expect(Math.abs(Number(cells[1]) - 11.31)).toBeLessThan(0.05 * 11.31);
    expect(await textOf(tab, 'factor-result')).toBe('softmax(2, 1, 0) = 0.6652, 0.2447, 0.0900');
    await tab.type('sat-factor', '8');
    await shows('#factor-result', 'softmax(16, 8, 0) = 0.9997, 0.0003');
  });

  test(`figures are saved with their numbers${why}`, async () => {
    const csv = await exported(tab, '#three-export', 'csv');
    expect(csv.text).toMatch(/^matrix,row,0,1,2,3\r\nX,0,1,0,1,0\r\n/);
    const json = await exported(tab, '#heads-export', 'json');
    expect(JSON.parse(json.text)[0]['weight quad']).toBeCloseTo(0.9241, 4);
    const svg = await exported(tab, '#seven-export', 'svg');
    expect(svg.text).toMatch(/^<svg .*0\.9933 not scaled/s);
    const png = await exported(tab, '#online-export', 'png');
    expect(png.size).toBeGreaterThan(2000);
  });

  test(`nothing is wider than a phone${why}`, async () => {
    await expectFitsPhones(tab);
  });
});
