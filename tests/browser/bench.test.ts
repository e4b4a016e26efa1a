// The bench page in real browsers: a run measures, proves its answer and can be copied; it stops when told, takes a dropped
// file, says what is wrong with a broken one, and complains nowhere.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { knownSha256 } from '../../web/pages/bench/known_answer.js';
import { isInstalled, settings } from './support/browsers.js';
import { dropFile, patienceMs } from './support/chat.js';
import { expectQuiet } from './support/page_checks.js';
import { builtPages, type Site } from './support/site.js';
import { type Tab, textOf, until } from './support/tab.js';

const modelUrl = '../models/default-q8_0.gguf';

function stateIs(tab: Tab, state: string): Promise<void> {
  return until(
    tab,
    `the state ${state}`,
    patienceMs,
    (wanted) => document.body.dataset.state === wanted,
    state,
  );
}

/** "3,583" -> 3583. */
async function numberOf(tab: Tab, testid: string): Promise<number> {
  return Number.parseFloat((await textOf(tab, testid)).replaceAll(',', ''));
}

describe.each(settings)('bench page, $title', ({ engine, isolation }) => {
  const skip = !isInstalled(engine);
  const test = skip ? it.skip : it;
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let tab: Tab;
  let site: Site;

  beforeAll(async () => {
    if (skip) return;
    site = await builtPages(engine, isolation);
    tab = site.tab;
    await tab.open(`${site.url}bench/`);
    await stateIs(tab, 'idle');
  });

  afterAll(() => site?.close());

  afterEach(async () => {
    if (skip) return;
    await expectQuiet(tab, site.url);
  });

  test(`a run that is stopped measures nothing and leaves a page that works${why}`, async () => {
    await tab.click('run');
    await stateIs(tab, 'running');
    expect(await textOf(tab, 'step')).not.toBe('');
    await tab.click('stop');
    await stateIs(tab, 'idle');
    expect(await textOf(tab, 'toast')).toMatch(/stopped/i);
    expect(await tab.run(() => document.getElementById('results')?.hidden)).toBe(true);
  });

  test(`a run gives rates, ceilings, what ran and a right answer${why}`, async () => {
    await tab.click('run');
    await stateIs(tab, 'done');
    const [decode, prefill] = [
      await numberOf(tab, 'decode-rate'),
      await numberOf(tab, 'prefill-rate'),
    ];
    expect(decode).toBeGreaterThan(20);
    expect(prefill).toBeGreaterThan(decode);
    expect(await textOf(tab, 'hash')).toBe(knownSha256);
    const verdict = await tab.run(() => document.getElementById('verdict')?.dataset.verdict);
    expect(verdict).toBe('right');
    const limits = await textOf(tab, 'limits');
    expect(limits).toMatch(/[\d.]+ GB\/s.*[\d.]+ Gop\/s.*[\d.]+ GFLOP\/s/);
    expect(await textOf(tab, 'machine')).toMatch(engine === 'webkit' ? /simd/ : /relaxed/);
    expect(await textOf(tab, 'stats')).toMatch(/context tokens/);
    const stages = await tab.run(() =>
      [...document.querySelectorAll<HTMLElement>('[data-stage]')].map(
        ({ dataset }) => dataset.stage,
      ),
    );
    expect(stages).toContain('attention');
    expect(stages).toHaveLength(9);
    const report = await textOf(tab, 'report');
    expect(report).toContain(knownSha256);
    expect(report).toMatch(/decode:\s+[\d,.]+ tokens\/s/);
    expect(report).not.toMatch(/undefined|NaN|\[object/);
  });

  test(`the picture shows the same rates, and says them${why}`, async () => {
    const figure = await tab.run(() => {
      const chart = document.querySelector('#figure svg');
      const bars = [...document.querySelectorAll('#figure .fill')];
      const tracks = [...document.querySelectorAll('#figure .track')];
      return {
        label: chart?.getAttribute('aria-label') ?? '',
        shares: bars.map(
          (bar, i) => Number(bar.getAttribute('width')) / Number(tracks[i]?.getAttribute('width')),
        ),
        width: chart?.getBoundingClientRect().width ?? 0,
        page: document.documentElement.clientWidth,
      };
    });
    expect(figure.label).toContain(`${await textOf(tab, 'decode-rate')} tokens a second`);
    const shares = [await textOf(tab, 'decode-share'), await textOf(tab, 'prefill-share')];
    for (const [i, share] of shares.entries())
      expect(100 * (figure.shares[i] ?? 0)).toBeCloseTo(Number.parseInt(share, 10), -1);
    expect(figure.width).toBeLessThanOrEqual(figure.page);
  });

  test(`copy says that it copied, or that the browser refused${why}`, async () => {
    await tab.click('copy');
    await until(tab, 'a word about it', patienceMs, () =>
      /copied|refused/i.test(document.getElementById('toast')?.textContent ?? ''),
    );
  });

  test(`a dropped file is measured in the plain module, and has a hash without a verdict${why}`, async () => {
    await dropFile(tab, modelUrl, 'dropped.gguf');
    expect(await textOf(tab, 'model-name')).toBe('dropped');
    await tab.run(() => {
      const select = document.querySelector<HTMLSelectElement>('[data-testid="module"]');
      if (select) select.value = 'simd';
    });
    await tab.click('run');
    await stateIs(tab, 'running');
    await stateIs(tab, 'done');
    expect(await textOf(tab, 'machine')).toMatch(/Modulesimd/);
    expect(await textOf(tab, 'hash')).toMatch(/^[0-9a-f]{64}$/);
    const verdict = await tab.run(() => document.getElementById('verdict')?.dataset.verdict);
    expect(verdict).toBe('unknown');
  });

  test(`a broken file gives a readable error, and the default model still runs${why}`, async () => {
    await dropFile(tab, modelUrl, 'cut.gguf', 100_000);
    await tab.click('run');
    await stateIs(tab, 'failed');
    const problem = await textOf(tab, 'problem');
    expect(problem).toMatch(/ends|cut|incomplete|truncated|too short/i);
    expect(problem).not.toMatch(/undefined|\[object|RuntimeError/);
    await tab.click('use-default');
    await tab.click('run');
    await stateIs(tab, 'done');
    expect(await textOf(tab, 'hash')).toBe(knownSha256);
    expect(await textOf(tab, 'problem')).toBe('');
  });
});
