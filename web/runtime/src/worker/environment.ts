// What the worker's code asks of the place it runs in. worker.ts gives the browser's, worker_node.ts Node's, tests their own.
import type createHeadlight from '../../../../wasm/headlight.js';
import type { FromWorker } from '../protocol.js';
import type { StorePlace } from '../store/place.js';

export type ModuleFactory = typeof createHeadlight;

export interface WorkerEnvironment {
  post(message: FromWorker, transfer?: ArrayBuffer[]): void;
  /** The default export of a module's glue. */
  importGlue(url: string): Promise<ModuleFactory>;
  /** Ends after everything that was waiting in the event loop, messages above all, had its turn. */
  nextTurn(): Promise<void>;
  /** The browser's storage for models; undefined where there is none. Throws where it is forbidden. */
  openStore(): Promise<StorePlace | undefined>;
  /** A file by its path, in pieces; Node only. Throws what the file system throws. */
  readFile(path: string): { nBytes: number; chunks: AsyncIterable<Uint8Array> };
}
