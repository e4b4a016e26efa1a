// Entry of the worker in Node, bundled into one file.
import { closeSync, createReadStream, fstatSync, openSync, statSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import type { FromWorker, ToWorker } from '../protocol.js';
import type { ModuleFactory, WorkerEnvironment } from './environment.js';
import { WorkerHost } from './host.js';

/** As much as the loader's staging buffer takes at once. */
const CHUNK_BYTES = 1 << 20;

function readFile(path: string): { nBytes: number; chunks: AsyncIterable<Uint8Array> } {
  // Before it is opened: opening a pipe that nobody writes to never ends, and then not even the worker can be.
  if (!statSync(path).isFile()) throw new TypeError('it is not a file');
  const fd = openSync(path, 'r');
  const stats = fstatSync(fd);
  if (!stats.isFile()) {
    closeSync(fd);
    throw new TypeError('it is not a file');
  }
  return { nBytes: stats.size, chunks: createReadStream(path, { fd, highWaterMark: CHUNK_BYTES }) };
}

const port = parentPort;
if (port !== null) {
  const environment: WorkerEnvironment = {
    post: (message: FromWorker, transfer = []) => port.postMessage(message, transfer),
    importGlue: async (url) => ((await import(url)) as { default: ModuleFactory }).default,
    nextTurn: () => new Promise((resolve) => setImmediate(resolve)),
    openStore: async () => undefined,
    readFile,
  };
  const host = new WorkerHost(environment);
  port.on('message', (message: ToWorker) => host.receive(message));
}
