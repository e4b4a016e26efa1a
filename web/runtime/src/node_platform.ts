// The Node side of Platform: worker_threads, the `.node.mjs` glue, file paths beside URLs, and the V8 flags that
// relaxed SIMD needs under old Node versions.

import { resolveObjectURL } from 'node:buffer';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { Endpoint, ModuleUrls, Platform } from './endpoint.js';
import { type Features, hasRelaxedSimd, hasSharedMemory, hasSimd } from './modules.js';
import type { FromWorker, ModuleName, SourceWire, ToWorker } from './protocol.js';

function urls(name: ModuleName): ModuleUrls {
  return {
    glueUrl: new URL(`./wasm/headlight-${name}.node.mjs`, import.meta.url).href,
    wasmUrl: new URL(`./wasm/headlight-${name}.wasm`, import.meta.url).href,
  };
}

const modules: Readonly<Record<ModuleName, ModuleUrls>> = {
  simd: urls('simd'),
  'simd-threads': urls('simd-threads'),
  relaxed: urls('relaxed'),
  'relaxed-threads': urls('relaxed-threads'),
};

function startWorker(): Endpoint {
  // Flags of the program's own start, such as --input-type, are not for its workers.
  const worker = new Worker(new URL('./worker-node.js', import.meta.url), { execArgv: [] });
  // A script that is done with its calls may end without dispose(): see setBusy.
  worker.unref();
  return {
    post: (message: ToWorker, transfer = []) => worker.postMessage(message, transfer),
    listen(onMessage, onLost) {
      worker.on('message', (message: FromWorker) => onMessage(message));
      worker.on('messageerror', () => onLost('one of its messages could not be read'));
      worker.on('error', (error) => onLost(String(error)));
      worker.on('exit', (code) => onLost(`it ended with code ${code}`));
    },
    setBusy: (busy) => (busy ? worker.ref() : worker.unref()),
    async terminate() {
      await worker.terminate();
    },
  };
}

/** The first Node whose V8 has relaxed SIMD without a flag. */
const FIRST_NODE_WITH_RELAXED_SIMD = 22;

function probe(relaxedAsked: boolean): Features {
  // V8 of Node 20 hides the instructions behind a flag, and its baseline compiler computes the dot product wrongly until
  // a function tiers up. The flags hold for the whole process, so they are set only when the module was asked for by name.
  const major = Number.parseInt(process.versions.node, 10);
  if (relaxedAsked && major < FIRST_NODE_WITH_RELAXED_SIMD) {
    setFlagsFromString('--experimental-wasm-relaxed-simd');
    setFlagsFromString('--no-liftoff');
  }
  const shared = hasSharedMemory();
  return {
    simd: hasSimd(),
    relaxedSimd: hasRelaxedSimd(),
    sharedMemory: shared,
    noSharedMemoryReason: shared ? '' : 'this Node has no WebAssembly threads',
    crossOriginIsolated: false,
    cores: availableParallelism(),
  };
}

/** `C:\x` has no `//`, so that a drive is not taken for a scheme. */
const URL_LIKE = /^([a-z][a-z0-9+.-]*:\/\/|data:|blob:)/i;

function resolveUrl(url: URL): SourceWire {
  switch (url.protocol) {
    case 'file:':
      return { kind: 'path', path: fileURLToPath(url) };
    case 'blob:': {
      // Its name means something on this thread only.
      const blob = resolveObjectURL(url.href);
      if (blob === undefined) throw new TypeError('there is no such Blob, or it was revoked');
      return { kind: 'blob', blob: blob as Blob };
    }
    case 'http:':
    case 'https:':
    case 'data:':
      return { kind: 'url', url: url.href };
    default:
      throw new TypeError(`Node fetches no ${url.protocol} addresses`);
  }
}

export const nodePlatform: Platform = {
  startWorker,
  modules,
  probe,
  resolveString: (source) =>
    URL_LIKE.test(source) ? resolveUrl(new URL(source)) : { kind: 'path', path: resolve(source) },
  resolveUrl,
};
