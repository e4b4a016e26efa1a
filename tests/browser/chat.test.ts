// The chat page end to end in real browsers, served with the headers of `npm start`: it loads, answers, stops, takes a
// dropped file, says what is wrong with a broken one, complains nowhere and asks nobody else for anything.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled, settings } from './support/browsers.js';
import { answerFinished, ask, dropFile, openChat, patienceMs, send } from './support/chat.js';
import { expectQuiet } from './support/page_checks.js';
import { builtPages, type Site } from './support/site.js';
import { type Tab, textOf, until } from './support/tab.js';

const makeModelPath = fileURLToPath(new URL('../bench/make_model.mjs', import.meta.url));
const modelUrl = 'models/default-q8_0.gguf';

// What the default model says of itself, in one of its wordings.
const whoItIs = /\b(language|demo|chat|small|tiny) (language |demo |chat )?model/i;

function modelIs(tab: Tab, name: string): Promise<void> {
  return until(
    tab,
    `the model ${name}`,
    patienceMs,
    (wanted) => {
      const shown = document.querySelector('[data-testid="model-button"]')?.textContent;
      return document.body.dataset.state === 'ready' && shown?.includes(wanted);
    },
    name,
  );
}

function makeSlowModel(): string {
  const folder = fileURLToPath(new URL('../../build/test/models', import.meta.url));
  mkdirSync(folder, { recursive: true });
  const path = `${folder}/slow.gguf`;
  if (!existsSync(path)) execFileSync('node', [makeModelPath, path, 'smol135', 'q4_0']);
  return folder;
}

describe.each(settings)('chat page, $title', ({ engine, isolation }) => {
  // The title of a skipped test says why.
  const skip = !isInstalled(engine);
  const test = skip ? it.skip : it;
  const why = skip ? ` (needs ${engine}: npm run setup)` : '';
  let tab: Tab;
  let site: Site;

  beforeAll(async () => {
    if (skip) return;
    site = await builtPages(engine, isolation, { '/slow/': makeSlowModel() });
    tab = site.tab;
    await openChat(tab, site.url);
  });

  afterAll(() => site?.close());

  afterEach(async () => {
    if (skip) return;
    await expectQuiet(tab, site.url);
  });

  test(`the default model loads by itself and recalls a fact of the conversation${why}`, async () => {
    await ask(tab, 'My name is Nora. I keep a green kite in the attic.');
    const answer = await ask(tab, 'What colour is my kite?');
    expect(answer.toLowerCase()).toContain('green');
  });

  test(`isolation and the page's idea of it agree${why}`, async () => {
    expect(await tab.run(() => globalThis.crossOriginIsolated === true)).toBe(isolation);
    const runtime = await textOf(tab, 'runtime-button');
    expect(runtime).toMatch(engine === 'webkit' ? /simd/i : /relaxed/i);
  });

  test(`stop ends the answer, keeps what was written, and the next question works${why}`, async () => {
    // The default model is done before anyone could stop it: one of 135 million random weights takes its time.
    await dropFile(tab, '/slow/slow.gguf', 'slow-model.gguf');
    await modelIs(tab, 'slow-model');
    await tab.click('new-chat');
    await send(tab, 'Tell me a story about a fox.');
    await until(tab, 'the first words', patienceMs, () => {
      const bodies = document.querySelectorAll('[data-testid="answer-body"]');
      return (bodies.item(bodies.length - 1)?.textContent?.trim().length ?? 0) > 0;
    });
    expect(await tab.run(() => document.body.dataset.state)).toBe('running');
    await tab.press('Escape');
    const partial = await answerFinished(tab);
    expect(partial.trim()).not.toBe('');
    expect(await textOf(tab, 'answer-note')).toMatch(/stopped/i);
    await send(tab, 'And another one.');
    await tab.click('stop');
    await answerFinished(tab);
    await dropFile(tab, modelUrl, 'default-again.gguf');
    await modelIs(tab, 'default-again');
  });

  test(`a dropped GGUF file is loaded and answers${why}`, async () => {
    await dropFile(tab, modelUrl, 'dropped-by-hand.gguf');
    await until(tab, 'the dropped model', patienceMs, () => {
      const shown = document.querySelector<HTMLElement>(
        '[data-testid="model-button"]',
      )?.textContent;
      return document.body.dataset.state === 'ready' && shown?.includes('dropped-by-hand');
    });
    expect(await ask(tab, 'Who are you?')).toMatch(whoItIs);
  });

  test(`a broken file gives a readable error and the page goes on working${why}`, async () => {
    await dropFile(tab, modelUrl, 'cut.gguf', 100_000);
    await until(
      tab,
      'the error',
      patienceMs,
      () => document.querySelector('[data-testid="problem"]') !== null,
    );
    const problem = await textOf(tab, 'problem');
    expect(problem).toMatch(/ends|cut|incomplete|truncated|too short/i);
    expect(problem).not.toMatch(/undefined|\[object|RuntimeError/);
    if ((await tab.run(() => document.body.dataset.state)) !== 'ready') {
      await tab.run(() =>
        document.querySelector<HTMLElement>('[data-remedy="default-model"]')?.click(),
      );
      await until(tab, 'a usable model', patienceMs, () => document.body.dataset.state === 'ready');
    }
    expect(await ask(tab, 'Who are you?')).toMatch(whoItIs);
  });
});
