// The page of fixtures/store: loads through the store, and what is in it.
import type { DownloadInfo, ErrorDetails, StorageUse, StoredModel } from 'headlight-wasm';
import type { Tab } from './tab.js';

export interface Loaded {
  download?: DownloadInfo;
  tokens?: number[];
  phases?: string[];
  error?: { code: string; message: string; details: ErrorDetails };
}

/** What fixtures/store/main.js puts there. */
export interface StorePage {
  load(url: string, options?: object): Promise<Loaded>;
  begin(url: string, options?: object): void;
  look(url: string): Promise<number[]>;
  abort: AbortController;
  store: {
    list(): Promise<StoredModel[]>;
    use(): Promise<StorageUse>;
    delete(url: string): Promise<boolean>;
    clear(): Promise<number>;
    size(url: string): Promise<number | null>;
  };
}
/** In the page. */
declare const storePage: StorePage;

export const load = (tab: Tab, url: string, options: object = {}) =>
  tab.run((at, more) => storePage.load(at, more), url, options);
export const begin = (tab: Tab, url: string) => tab.run((at) => storePage.begin(at), url);
export const list = (tab: Tab) => tab.run(() => storePage.store.list());
/** Bytes of the model by preflight() and by inspectModel(). */
export const look = (tab: Tab, url: string) => tab.run((at) => storePage.look(at), url);
