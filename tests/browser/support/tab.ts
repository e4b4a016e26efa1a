// One browser tab, the same for every engine: what the tests may do with it. Elements are named by data-testid.
export type EngineName = 'chromium' | 'firefox' | 'webkit';

export type Key = 'Enter' | 'Escape' | 'ArrowRight' | 'ArrowLeft';

export interface Tab {
  readonly engine: EngineName;
  open(url: string): Promise<void>;
  /** Runs a self-contained function in the page; arguments and result cross as JSON. */
  run<A extends unknown[], R>(script: (...args: A) => R | Promise<R>, ...args: A): Promise<R>;
  click(testid: string): Promise<void>;
  /** Types into a field as a person would, after emptying it. */
  type(testid: string, text: string): Promise<void>;
  press(key: Key): Promise<void>;
  /** Moves the pointer onto the first element of a CSS selector. */
  hover(selector: string): Promise<void>;
  /** Chooses an option of a <select> by its value. */
  select(testid: string, value: string): Promise<void>;
  /** Gives the page another size, in CSS pixels. */
  resize(width: number, height: number): Promise<void>;
  /** Console messages of level warning and error, uncaught errors included, since open(). */
  problems(): Promise<string[]>;
  /** URLs of everything requested since open(), the worker's requests included where the engine tells. */
  requests(): Promise<string[]>;
  close(): Promise<void>;
}

/** Waits until the function gives something true in the page; the error names what was waited for. */
export async function until<A extends unknown[]>(
  tab: Tab,
  what: string,
  timeoutMs: number,
  condition: (...args: A) => unknown,
  ...args: A
): Promise<void> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    if (await tab.run(condition, ...args)) return;
    if (Date.now() > end) {
      const shown = await tab.run(() =>
        (document.body.textContent ?? '').replace(/\s+/g, ' ').slice(0, 600),
      );
      throw new Error(
        `${tab.engine}: waited ${timeoutMs} ms for ${what}; the page shows: ${shown}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Text of the last element with this data-testid; '' when there is none. */
export function textOf(tab: Tab, testid: string): Promise<string> {
  return tab.run((id) => {
    const all = document.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`);
    return all.item(all.length - 1)?.textContent ?? '';
  }, testid);
}
