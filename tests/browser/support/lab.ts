// What a person does on the lab page, and what they read there.
import { patienceMs } from './chat.js';
import { type Tab, until } from './tab.js';

export async function openLab(tab: Tab, url: string): Promise<void> {
  await tab.open(url);
  await until(tab, 'the lab', patienceMs, () => document.body.dataset.state === 'ready');
}

/** Texts of all elements of a selector. */
export function texts(tab: Tab, selector: string): Promise<string[]> {
  return tab.run(
    (wanted) =>
      [...document.querySelectorAll(wanted)].map((element) =>
        (element.textContent ?? '').replace(/\s+/g, ' ').trim(),
      ),
    selector,
  );
}

/** Waits until the element's text holds `wanted`: kernels answer a moment later. */
export function showsText(
  tab: Tab,
  selector: string,
  wanted: string,
  ms = patienceMs,
): Promise<void> {
  return until(
    tab,
    `"${wanted}" in ${selector}`,
    ms,
    (where, text) => document.querySelector(where)?.textContent?.includes(text),
    selector,
    wanted,
  );
}

/** Waits until the element's text is `wanted` and nothing else. */
export function readsText(tab: Tab, selector: string, wanted: string): Promise<void> {
  return until(
    tab,
    `"${wanted}" as ${selector}`,
    patienceMs,
    (where, text) => document.querySelector(where)?.textContent === text,
    selector,
    wanted,
  );
}

/** The page's address once it holds `part`. */
export async function addressWith(tab: Tab, part: string): Promise<string> {
  await until(
    tab,
    `${part} in the address`,
    patienceMs,
    (wanted) => location.href.includes(wanted),
    part,
  );
  return tab.run(() => location.href);
}

/** Clicks an export button inside `box` and gives the file that the page hands to the browser. */
export function exported(
  tab: Tab,
  box: string,
  format: 'svg' | 'png' | 'csv' | 'json',
): Promise<{ name: string; type: string; text: string; size: number }> {
  return tab.run(
    (selector, wanted) =>
      new Promise<{ name: string; type: string; text: string; size: number }>((resolve, reject) => {
        const create = URL.createObjectURL;
        const blobs = new Map<string, Blob>();
        URL.createObjectURL = (blob: Blob) => {
          const url = create.call(URL, blob);
          blobs.set(url, blob);
          return url;
        };
        const click = HTMLAnchorElement.prototype.click;
        HTMLAnchorElement.prototype.click = function (this: HTMLAnchorElement) {
          URL.createObjectURL = create;
          HTMLAnchorElement.prototype.click = click;
          const blob = blobs.get(this.href);
          if (!blob) {
            reject(new Error('a link to something else'));
            return;
          }
          const { download: name } = this;
          const { type, size } = blob;
          void blob
            .text()
            .then((text) => resolve({ name, type, size, text: text.slice(0, 500_000) }));
        };
        document.querySelector<HTMLElement>(`${selector} [data-export="${wanted}"]`)?.click();
      }),
    box,
    format,
  );
}
