// One worker seen from the page's thread, whatever kind of worker it is, and the Platform: all that differs between
// browsers and Node. Nothing here knows what the messages mean.
import type { Features } from './modules.js';
import type { FromWorker, ModuleName, SourceWire, ToWorker } from './protocol.js';

export interface Endpoint {
  post(message: ToWorker, transfer?: ArrayBuffer[]): void;
  /** `onLost` is called at most once, when the worker has died or cannot be understood. */
  listen(onMessage: (message: FromWorker) => void, onLost: (why: string) => void): void;
  /** Node: whether the worker keeps the process alive. Browsers: nothing. */
  setBusy(busy: boolean): void;
  terminate(): Promise<void>;
}

export interface ModuleUrls {
  /** The Emscripten glue, an ES module that is imported by the worker. */
  glueUrl: string;
  wasmUrl: string;
}

export interface Platform {
  startWorker(): Endpoint;
  readonly modules: Readonly<Record<ModuleName, ModuleUrls>>;
  /** `relaxedAsked`: the user named the relaxed module, so what it needs may be switched on for the process. */
  probe(relaxedAsked: boolean): Features;
  /** What a string names: a URL, and in Node also a file. */
  resolveString(source: string): SourceWire;
  resolveUrl(source: URL): SourceWire;
  /** Asks the browser not to clear what is stored. The answer is not waited for: it may be the user's. */
  keepStorage?(): void;
}
