// Entry of the worker in browsers. Bundled into one file without imports, so that every bundler can serve it as it is.
import type { FromWorker, ToWorker } from '../protocol.js';
import { openOpfs } from '../store/opfs.js';
import type { ModuleFactory, WorkerEnvironment } from './environment.js';
import { WorkerHost } from './host.js';
import {
  hangsInMakingWorkers,
  POOL_WORKER_NAME,
  type PoolScope,
  pageMadeWorkers,
  servePool,
} from './pool_workers.js';

/** The part of DedicatedWorkerGlobalScope that is used; the DOM library of TypeScript has no workers' side. */
interface WorkerScope {
  postMessage(message: FromWorker, transfer: ArrayBuffer[]): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
}

const scope = globalThis as unknown as WorkerScope & PoolScope & { Worker: unknown };
const turns: (() => void)[] = [];
const channel = new MessageChannel();
channel.port1.onmessage = () => turns.shift()?.();

async function importGlue(url: string): Promise<ModuleFactory> {
  // The glue is a file of its own that no bundler should look into.
  const glue = (await import(/* @vite-ignore */ /* webpackIgnore: true */ url)) as {
    default: ModuleFactory;
  };
  return glue.default;
}

const environment: WorkerEnvironment = {
  post: (message, transfer = []) => scope.postMessage(message, transfer),
  importGlue,
  // A timer would be slowed down to 4 ms a turn; a message is not, and it waits its turn behind those that came before.
  nextTurn: () =>
    new Promise((resolve) => {
      turns.push(resolve);
      channel.port2.postMessage(null);
    }),
  openStore: openOpfs,
  readFile(path) {
    throw new TypeError(`there are no file paths in a browser: ${path}`);
  },
};

if (scope.name === POOL_WORKER_NAME) {
  servePool(scope, importGlue);
} else {
  if (hangsInMakingWorkers()) scope.Worker = pageMadeWorkers(scope);
  const host = new WorkerHost(environment);
  scope.onmessage = (event) => host.receive(event.data);
}
