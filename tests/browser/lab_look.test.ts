// The lab's section "Where a token looks" as a visitor uses it: a text, all heads, one enlarged, pointing, keys, comparing,
// writing on, labels, the induction circuit, sharing and saving.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled, settings } from './support/browsers.js';
import { patienceMs } from './support/chat.js';
import { addressWith, exported, openLab, showsText, texts } from './support/lab.js';
import { expectFitsPhones, expectQuiet } from './support/page_checks.js';
import { builtPages, type Site } from './support/site.js';
import { type Tab, textOf, until } from './support/tab.js';

const here = settings.filter(({ isolation, engine }) => isolation || engine === 'webkit');

/** Labelling runs the model several times. */
const longMs = 4 * patienceMs;

describe.each(here)('lab, where a token looks, $title', ({ engine, isolation }) => {
  const skip = !isInstalled(engine);
  const test = skip ? it.skip : it;
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let tab: Tab;
  let site: Site;

  /** Comes to the section, and waits for its maps. */
  async function openLook(search = ''): Promise<void> {
    await openLab(tab, `${site.url}lab/${search}`);
    await tab.run(() => document.querySelector('#look')?.scrollIntoView());
    await ready();
  }
  const ready = () =>
    until(tab, 'the maps', longMs, () => {
      const section = document.querySelector<HTMLElement>('#look');
      return section?.dataset.look === 'ready' && document.querySelector('.look-map') !== null;
    });
  const shows = (selector: string, wanted: string) => showsText(tab, selector, wanted, longMs);
  const example = (label: string) =>
    tab.run((wanted) => {
      const buttons = [...document.querySelectorAll<HTMLElement>('#look-examples button')];
      buttons.find(({ textContent }) => textContent === wanted)?.click();
    }, label);
  /** Row and key of the largest weights of the shown head, from its CSV. */
  async function largest(): Promise<number[]> {
    const { text } = await exported(tab, '#look-export', 'csv');
    const best = new Map<number, { key: number; weight: number }>();
    for (const line of text.trim().split('\r\n').slice(1)) {
      const cells = line.split(',');
      const [row, key, weight] = [Number(cells[0]), Number(cells[1]), Number(cells.at(-1))];
      if (weight > (best.get(row)?.weight ?? -1)) best.set(row, { key, weight });
    }
    return [...best.values()].map(({ key }) => key);
  }

  beforeAll(async () => {
    if (skip) return;
    site = await builtPages(engine, isolation);
    tab = site.tab;
    await openLook();
  });
  afterAll(() => site?.close());
  afterEach(async () => {
    if (!skip) await expectQuiet(tab, site.url);
  });

  test(`every head of the default model is there, and a token row is shown${why}`, async () => {
    expect(await texts(tab, '.look-map')).toHaveLength(48);
    expect(await textOf(tab, 'look-status')).toMatch(/17 tokens, 48 heads in 6 layers; module/);
    expect((await texts(tab, '.look-chip')).slice(0, 3)).toEqual(['<s>', 'Once', 'upon']);
    expect(await textOf(tab, 'look-row-title')).toMatch(
      /^Where “lamp” \(position 16\) looks in head \d\.\d$/,
    );
    expect(await textOf(tab, 'look-facts')).toMatch(/on the first token; entropy \d\.\d\d nats/);
  });

  test(`pointing at a token shows its row; arrow keys walk; the address keeps it${why}`, async () => {
    await tab.hover('.look-chip[data-row="4"]');
    await shows('#look-row-title', '“time” (position 4)');
    await tab.run(() => document.querySelector<HTMLElement>('.look-chip[data-row="5"]')?.click());
    await tab.run(() => document.querySelector<HTMLElement>('.look-chip[data-row="5"]')?.focus());
    await tab.press('ArrowRight');
    await shows('#look-row-title', '“small” (position 6)');
    await addressWith(tab, 'lr=6');
  });

  test(`arrow keys on the map read single weights${why}`, async () => {
    // A pointer that rests on the tokens or the map would choose, too, whenever the page moves below it.
    await tab.hover('#look-text');
    const sum = async () => Number(/: ([\d.]+)$/.exec(await textOf(tab, 'look-note'))?.[1]);
    await tab.run(() => document.querySelector<HTMLElement>('.look-chip[data-row="1"]')?.click());
    await shows('#look-row-title', '(position 1)');
    await tab.run(() => document.querySelector<HTMLElement>('.look-canvas')?.focus());
    await tab.press('ArrowLeft');
    await shows('#look-note', '“Once” (1) → “<s>” (0)');
    const first = await sum();
    await tab.press('ArrowRight');
    await shows('#look-note', '“Once” (1) → “Once” (1)');
    expect(first + (await sum())).toBeCloseTo(1, 3);
    await tab.press('ArrowRight');
    await shows('#look-note', 'cannot see what comes after it');
    await addressWith(tab, 'lr=1');
  });

  test(`a head is chosen by click and by arrow keys, and pinned to compare${why}`, async () => {
    await tab.run(() => document.querySelector<HTMLElement>('[data-head="2.1"]')?.click());
    await shows('#look-head-name', 'Layer 2, head 1');
    await tab.click('look-pin');
    await tab.run(() => document.querySelector<HTMLElement>('[data-head="2.1"]')?.focus());
    await tab.press('ArrowRight');
    await shows('#look-head-name', 'Layer 2, head 2');
    await shows('#look-row-title', 'head 2.2 and head 2.1');
    expect(await texts(tab, '[data-facts]')).toHaveLength(2);
    const address = await addressWith(tab, 'lp=2.1');
    expect(address).toContain('lh=2.2');
    await tab.click('look-pin');
  });

  test(`the induction circuit says where it looks: 0, 1, 2, 1, 2 behind the first token${why}`, async () => {
    await example('A B C A B');
    await shows('#look-status', '6 tokens, 2 heads in 2 layers');
    await shows('#look-head-name', 'Layer 1, head 0');
    expect(await largest()).toEqual([0, 1, 2, 3, 2, 3]);
    await tab.run(() => document.querySelector<HTMLElement>('[data-head="0.0"]')?.click());
    expect(await largest()).toEqual([0, 0, 1, 2, 3, 4]);
    await example('A B C D E');
    await shows('#look-strip', 'E');
    await ready();
    expect(await largest()).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test(`writing on follows the head: after A B C A B comes C${why}`, async () => {
    await example('A B C A B');
    await shows('#look-status', '6 tokens');
    await tab.click('look-write');
    await until(
      tab,
      'the text to grow',
      longMs,
      () => (document.querySelector<HTMLTextAreaElement>('#look-text')?.value.length ?? 0) > 20,
    );
    await ready();
    const text = await tab.run(
      () => document.querySelector<HTMLTextAreaElement>('#look-text')?.value,
    );
    expect(text).toMatch(/^A B C A B C A B C A B/);
    expect((await texts(tab, '.look-chip')).length).toBeGreaterThan(20);
  });

  test(`labels over the built-in text, with the formulas' numbers${why}`, async () => {
    await tab.click('look-label');
    await until(
      tab,
      'labels',
      longMs,
      () => !document.querySelector<HTMLElement>('#look-survey')?.hidden,
    );
    const rows = await texts(tab, '[data-label-of]');
    expect(rows.find((row) => row.startsWith('0.0'))).toMatch(/previous-token\s*fixed pattern/);
    expect(rows.find((row) => row.startsWith('1.0'))).toMatch(/induction\s*content-based/);
  });

  test(`a figure is saved in each format${why}`, async () => {
    const box = '#look-export';
    expect((await exported(tab, box, 'svg')).text).toContain('<rect');
    expect((await exported(tab, box, 'png')).type).toBe('image/png');
    const json = JSON.parse((await exported(tab, '#look-survey-export', 'json')).text);
    expect(json[0]).toMatchObject({ head: expect.any(String), label: expect.any(String) });
  });

  test(`a shared address shows the same${why}`, async () => {
    await openLook('?lm=circuit&lt=X+Y+Z+X&lh=0.0&lr=2');
    expect(await textOf(tab, 'look-status')).toMatch(/^5 tokens, 2 heads/);
    await shows('#look-head-name', 'Layer 0, head 0');
    await shows('#look-row-title', '“Y” (position 2)');
  });

  test(`an empty text is the start token alone${why}`, async () => {
    await openLook('?lm=circuit');
    // Not typed: WebKit's driver cannot type nothing.
    await tab.run(() => {
      const field = document.querySelector<HTMLTextAreaElement>('#look-text');
      if (field) field.value = '';
      field?.dispatchEvent(new Event('input'));
    });
    await tab.click('look-run');
    await ready();
    await shows('#look-status', '1 token,');
  });

  test(`fits a phone${why}`, async () => {
    await expectFitsPhones(tab);
  });
});
