// A file that is no model, dropped on the lab page: the page says why in the error's own words, and every section goes on
// with the model before it.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled, settings } from './support/browsers.js';
import { dropFile, patienceMs } from './support/chat.js';
import { openLab, showsText, texts } from './support/lab.js';
import { expectQuiet } from './support/page_checks.js';
import { builtPages, type Site } from './support/site.js';
import { type Tab, textOf, until } from './support/tab.js';

const here = settings.filter(({ isolation, engine }) => isolation && engine !== 'webkit');
/** Models are loaded and run. */
const longMs = 60_000;

const stays = 'The model before it stays in use.';

describe.each(here)('lab, files that are no models, $title', ({ engine, isolation }) => {
  const skip = !isInstalled(engine);
  const test = skip ? it.skip : it;
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let tab: Tab;
  let site: Site;
  let modelUrl = '';

  const show = (id: string) =>
    tab.run((name) => document.getElementById(name)?.scrollIntoView({ block: 'start' }), id);
  const shows = (selector: string, wanted: string) => showsText(tab, selector, wanted, longMs);
  const mapsReady = () =>
    until(tab, 'the maps', longMs, () => {
      const section = document.querySelector<HTMLElement>('#look');
      return section?.dataset.look === 'ready' && document.querySelector('.look-map') !== null;
    });
  const experimentsReady = () =>
    until(
      tab,
      'the calibration',
      longMs,
      () => document.querySelectorAll('#edit-try button').length === 4,
    );

  /** Looks again, computes a block again and measures an edit: each on its own engine or the shared one. */
  async function expectAllWork(): Promise<void> {
    await tab.click('look-run');
    await shows('#look-status', '17 tokens, 48 heads in 6 layers');
    await tab.run(() => {
      const table = document.getElementById('phase-table');
      table?.replaceChildren();
    });
    await tab.click('phase-again');
    await until(
      tab,
      'the phases',
      longMs,
      () => document.querySelector('[data-phase-tensor="output"]') !== null,
    );
    await experimentsReady();
    await tab.run(() => document.querySelector<HTMLElement>('[data-head-cell="4.1"]')?.click());
    await tab.click('edit-measure');
    await shows('#edit-verdict', 'pruned 4.1: ');
    await tab.click('edit-undo');
  }

  beforeAll(async () => {
    if (skip) return;
    site = await builtPages(engine, isolation);
    modelUrl = `${site.url}models/default-q8_0.gguf`;
    tab = site.tab;
    await openLab(tab, `${site.url}lab/`);
    await show('look');
    await mapsReady();
    for (const id of ['phases', 'change', 'ranks']) await show(id);
    await experimentsReady();
  });

  afterAll(() => site?.close());

  afterEach(async () => {
    if (skip) return;
    await expectQuiet(tab, site.url);
  });

  test.each([
    {
      name: 'notes.txt',
      nBytes: 200,
      page: 'theme.js',
      says: 'notes.txt: this is not a GGUF file but text that begins ',
    },
    {
      name: 'cut.gguf',
      nBytes: 1000,
      page: 'models/default-q8_0.gguf',
      says: 'cut.gguf ends after 1000 bytes, but the model needs more: not even its header is complete.',
    },
    {
      name: 'half.gguf',
      nBytes: 1_500_000,
      page: 'models/default-q8_0.gguf',
      says: 'half.gguf has 1500000 bytes, but the tensors that its header lists need ',
    },
  ])(`$name is refused and nothing is given up${why}`, async ({ name, nBytes, page, says }) => {
    await dropFile(tab, `${site.url}${page}`, name, nBytes);
    await shows('#model-status', says);
    for (const place of ['model-status', 'toast']) {
      const text = await textOf(tab, place);
      expect(text).toContain(says);
      expect(text).toContain(stays);
      expect(text).not.toContain('disposed');
      // Once, though several sections could have said it.
      expect(text.split(says)).toHaveLength(2);
    }
    // Not even asked for anew: the maps and the experiments stand.
    expect(
      await tab.run(() => document.querySelector<HTMLSelectElement>('#look-model')?.value),
    ).toBe('');
    expect(await texts(tab, '.look-map')).toHaveLength(48);
    expect(await texts(tab, '#edit-try button')).toHaveLength(4);
    await expectAllWork();
  });

  test(`a file whose header is good and whose vocabulary is not: back to the model before${why}`, async () => {
    await tab.run(async (url) => {
      const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
      // tokenizer.ggml.model, then the value's type (4 bytes), its length (8) and the name itself.
      const key = new TextEncoder().encode('tokenizer.ggml.model');
      const at = bytes.findIndex((_, i) => key.every((byte, j) => bytes[i + j] === byte));
      bytes[at + key.length + 12] = 'x'.charCodeAt(0);
      const transfer = new DataTransfer();
      transfer.items.add(new File([bytes], 'tongue.gguf'));
      dispatchEvent(
        new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }),
      );
    }, modelUrl);
    await shows('#toast', 'tokenizer.ggml.model');
    const text = await textOf(tab, 'toast');
    expect(text).toContain(stays);
    expect(text).not.toContain('disposed');
    await until(tab, 'the default model', longMs, () => {
      const select = document.querySelector<HTMLSelectElement>('#look-model');
      return select?.value === '' && ![...select.options].some(({ value }) => value === 'file');
    });
    await mapsReady();
    await expectAllWork();
  });

  test(`a good file in the middle of the work: no word of engines that are gone${why}`, async () => {
    await tab.click('edit-measure');
    await dropFile(tab, modelUrl, 'again.gguf');
    await until(
      tab,
      'the file in the maps',
      patienceMs,
      () => document.querySelector<HTMLSelectElement>('#look-model')?.value === 'file',
    );
    await mapsReady();
    await dropFile(tab, modelUrl, 'and-again.gguf');
    await shows('#look-model', 'and-again');
    await mapsReady();
    await expectAllWork();
    expect(await textOf(tab, 'toast')).not.toContain('disposed');
  });
});
