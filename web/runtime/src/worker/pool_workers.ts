// Workers of a thread pool that the page makes, for browsers in which a worker had better not make one.
//
// Firefox (153) does not return from `new Worker` in a worker, for good, in one of a hundred calls or so, and of pools of seven
// a quarter hangs; of workers that the page makes none does. Emscripten's glue makes its pool in the module's worker: there
// PageMadeWorker takes the place of Worker. It asks the page for one and gives it the end of a channel, so that what the two
// say to each other, the shared memory among it, does not pass through the page, whose garbage would hold it.
import type { PoolWorkerRequest } from '../protocol.js';

/** What the glue knows the workers of its pool by. */
export const POOL_WORKER_NAME = 'em-pthread';

/** What is used of a worker's global scope; the DOM library of TypeScript has only the page's side. */
export interface PoolScope {
  name: string;
  postMessage(message: unknown, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent) => void) | null;
}

export const hangsInMakingWorkers = (): boolean => /\bFirefox\//.test(navigator.userAgent);

/** As much of Worker as the glue uses. An error in one is the page's to hear, which then ends all of them. */
export function pageMadeWorkers(scope: PoolScope) {
  return class PageMadeWorker {
    readonly #port: MessagePort;

    constructor(glueUrl: string) {
      const { port1, port2 } = new MessageChannel();
      this.#port = port1;
      scope.postMessage({ type: 'poolWorker', glueUrl, port: port2 } satisfies PoolWorkerRequest, [
        port2,
      ]);
    }

    set onmessage(listener: (event: MessageEvent) => void) {
      this.#port.onmessage = listener;
    }

    postMessage(message: unknown, transfer: Transferable[] = []): void {
      this.#port.postMessage(message, transfer);
    }

    /** They end with the module's worker, all at once. */
    terminate(): void {}
  };
}

/** In the worker that the page has made: the glue talks to the module's worker as if that were its maker. */
export function servePool(scope: PoolScope, importGlue: (url: string) => Promise<unknown>): void {
  scope.onmessage = async ({ data }: MessageEvent<PoolWorkerRequest>) => {
    const { glueUrl, port } = data;
    scope.postMessage = (message, transfer = []) => port.postMessage(message, transfer);
    try {
      await importGlue(glueUrl);
    } catch (error) {
      // Only what is thrown outside of a promise does the page hear of.
      setTimeout(() => {
        throw error;
      });
      return;
    }
    // The glue has put its own listener there, and changes it.
    port.onmessage = (event) => scope.onmessage?.(event);
  };
}
