// The lab's section "Positions" as a visitor uses it: chooses schemes, slides, types, takes examples, shares the address.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled, settings } from './support/browsers.js';
import { patienceMs } from './support/chat.js';
import { addressWith, exported, openLab, showsText, texts } from './support/lab.js';
import { expectFitsPhones, expectQuiet } from './support/page_checks.js';
import { builtPages, type Site } from './support/site.js';
import { type Tab, textOf, until } from './support/tab.js';

const here = settings.filter(({ isolation, engine }) => isolation || engine === 'webkit');

describe.each(here)('lab, positions, $title', ({ engine, isolation }) => {
  const skip = !isInstalled(engine);
  const test = skip ? it.skip : it;
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let tab: Tab;
  let site: Site;

  const facts = (wanted: string) => showsText(tab, '#pos-facts', wanted);
  const press = (selector: string, label: string) =>
    tab.run(
      (where, wanted) =>
        [...document.querySelectorAll<HTMLElement>(`${where} button`)]
          .find(({ textContent }) => textContent === wanted)
          ?.click(),
      selector,
      label,
    );

  beforeAll(async () => {
    if (skip) return;
    site = await builtPages(engine, isolation);
    tab = site.tab;
    await openLab(tab, `${site.url}lab/`);
  });
  afterAll(() => site?.close());
  afterEach(async () => {
    if (!skip) await expectQuiet(tab, site.url);
  });

  test(`the schemes stand there with what the kernels measure of each${why}`, async () => {
    expect(await texts(tab, '#pos-schemes [data-scheme] th')).toEqual([
      ...['None', 'Sinusoidal', 'Learned table', 'RoPE', 'ALiBi'],
    ]);
    const moved = await texts(tab, '#pos-schemes td.measured:nth-last-child(2)');
    const isSmall = moved.map((text) => Number(text.replace('−', '-')) < 1e-5);
    expect(isSmall).toEqual([true, false, false, true, true]);
    await facts('64 pairs: θ from 1 down to 0.000115478');
  });

  test(`a pair turned by hand: 0.5403 at (5, 3), (10, 8) and (2, 0); other positions are typed${why}`, async () => {
    const dots = () => texts(tab, '[data-turn] td:nth-child(4)');
    expect(await dots()).toEqual(['0.540302', '0.540302', '0.540302']);
    await tab.type('pos-turn-places-0-1', '4');
    await until(tab, 'cos 0.5', patienceMs, () =>
      document.querySelector('[data-turn="0"]')?.textContent?.includes('0.877583'),
    );
    await addressWith(tab, 'posturn=5,4,10,8,2,0');
    await tab.type('pos-turn-places-0-1', '3');
  });

  test(`NTK, dynamic NTK and YaRN: the published numbers, by example buttons${why}`, async () => {
    await press('#pos-examples', 'NTK × 8, 128 wide');
    await facts('= 82,684.62.');
    await press('#pos-examples', 'Dynamic NTK × 2 at 8,192');
    await facts('base 30,527.74;');
    await press('#pos-examples', 'YaRN × 16, 4,096 → 65,536');
    await facts('pairs 0 to 20 keep theirs, pairs from 46 on are interpolated (÷ 16)');
    await facts('= 1.27726');
    expect((await texts(tab, '[data-pair="20"] td')).at(-1)).toBe('1');
    expect((await texts(tab, '[data-pair="46"] td')).at(-1)).toBe('16');
    const address = await addressWith(tab, 'poss=yarn');
    await openLab(tab, address);
    await facts('= 1.27726');
    const csv = await exported(tab, '#pos-stretch-export', 'csv');
    expect(csv.text.split('\r\n')[1]).toMatch(/^0,1,6\.28/);
  });

  test(`a slider moves the factor; a width out of range is said${why}`, async () => {
    await tab.run(() =>
      document.querySelector<HTMLElement>('#pos-f-slider, [data-testid="pos-f-slider"]')?.focus(),
    );
    await tab.press('ArrowRight');
    await facts('(÷ 17)');
    await tab.type('pos-d', '1');
    expect(await texts(tab, '#pos-d-error')).toEqual(['d_qk: a whole number from 2 to 512.']);
    await tab.type('pos-d', '128');
  });

  test(`ALiBi: slopes of any number of heads, chosen in the table by its button${why}`, async () => {
    await press('#pos-schemes', 'ALiBi');
    await until(
      tab,
      'eight slopes',
      patienceMs,
      () => document.querySelectorAll('[data-slope]').length === 8,
    );
    expect(await texts(tab, '[data-slope="7"] td')).toEqual([
      ...['0.00390625', '0', '−0.00390625', '−0.03125', '−0.25'],
    ]);
    await tab.type('pos-h', '12');
    await until(
      tab,
      'twelve slopes',
      patienceMs,
      () => document.querySelectorAll('[data-slope]').length === 12,
    );
    const slopes = await texts(tab, '[data-slope] td:nth-child(2)');
    expect(slopes.slice(8)).toEqual(['0.707107', '0.353553', '0.176777', '0.0883883']);
    await addressWith(tab, 'pos=alibi');
  });

  test(`a learned table ends, sinusoids do not${why}`, async () => {
    await press('#pos-schemes', 'Learned table');
    await facts('Position 4,096 has no row');
    await tab.type('pos-t', '1000');
    await facts('Position 1,000 has no row');
    await press('#pos-schemes', 'Sinusoidal');
    await facts('Position 0 adds 0, 1, 0, 1');
    expect((await texts(tab, '#pos-rows tbody tr:first-child td')).join(' ')).toBe('0 1 0 1 0 1');
    expect(await textOf(tab, 'pos-point')).toContain('hands of a clock');
  });

  test(`fits a phone${why}`, async () => {
    await expectFitsPhones(tab);
  });
});
