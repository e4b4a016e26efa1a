// What a person does on the chat page.
import { type Tab, textOf, until } from './tab.js';

// The machine of the tests may be busy: generous, and only ever waited out by a failure.
export const patienceMs = 90_000;

export async function openChat(tab: Tab, url: string): Promise<void> {
  await tab.open(url);
  await until(tab, 'the default model', patienceMs, () => document.body.dataset.state === 'ready');
}

/** Sends a message by the keyboard. */
export async function send(tab: Tab, text: string): Promise<void> {
  const n = await tab.run(() => document.querySelectorAll('[data-testid="answer"]').length);
  await tab.type('input', text);
  await tab.press('Enter');
  await until(
    tab,
    `an answer to "${text}"`,
    patienceMs,
    (before) => document.querySelectorAll('[data-testid="answer"]').length > before,
    n,
  );
}

export async function answerFinished(tab: Tab): Promise<string> {
  await until(tab, 'the end of the answer', patienceMs, () => {
    const answers = document.querySelectorAll('[data-testid="answer"]');
    const last = answers.item(answers.length - 1);
    return document.body.dataset.state === 'ready' && last?.getAttribute('aria-busy') !== 'true';
  });
  return textOf(tab, 'answer-body');
}

export async function ask(tab: Tab, text: string): Promise<string> {
  await send(tab, text);
  return answerFinished(tab);
}

/** Drops a file whose bytes the page fetches from its own server, whole or cut after `nBytes`. */
export async function dropFile(
  tab: Tab,
  url: string,
  name: string,
  nBytes?: number,
): Promise<void> {
  await tab.run(
    async (from, as, cut) => {
      const bytes = await (await fetch(from)).arrayBuffer();
      const file = new File([cut === null ? bytes : bytes.slice(0, cut)], as);
      const transfer = new DataTransfer();
      transfer.items.add(file);
      dispatchEvent(
        new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }),
      );
    },
    url,
    name,
    nBytes ?? null,
  );
}
