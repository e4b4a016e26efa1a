// The browser side of Platform: module workers, files beside this one found by URL. The two `new URL` forms below are
// those that Vite and webpack recognise with their default configuration; they must stay literal.
import type { Endpoint, ModuleUrls, Platform } from './endpoint.js';
import { type Features, hasRelaxedSimd, hasSharedMemory, hasSimd } from './modules.js';
import type {
  FromWorker,
  ModuleName,
  PoolWorkerRequest,
  SourceWire,
  ToWorker,
} from './protocol.js';

const modules: Readonly<Record<ModuleName, ModuleUrls>> = {
  simd: {
    glueUrl: new URL('./wasm/headlight-simd.mjs', import.meta.url).href,
    wasmUrl: new URL('./wasm/headlight-simd.wasm', import.meta.url).href,
  },
  'simd-threads': {
    glueUrl: new URL('./wasm/headlight-simd-threads.mjs', import.meta.url).href,
    wasmUrl: new URL('./wasm/headlight-simd-threads.wasm', import.meta.url).href,
  },
  relaxed: {
    glueUrl: new URL('./wasm/headlight-relaxed.mjs', import.meta.url).href,
    wasmUrl: new URL('./wasm/headlight-relaxed.wasm', import.meta.url).href,
  },
  'relaxed-threads': {
    glueUrl: new URL('./wasm/headlight-relaxed-threads.mjs', import.meta.url).href,
    wasmUrl: new URL('./wasm/headlight-relaxed-threads.wasm', import.meta.url).href,
  },
};

function startWorker(): Endpoint {
  const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
  const pool: Worker[] = [];
  let onLost = (_why: string) => {};
  const onError = (event: ErrorEvent) => {
    event.preventDefault();
    onLost(
      event.message ? `${event.message} (${event.filename}:${event.lineno})` : WORKER_NOT_LOADED,
    );
  };
  const makePoolWorker = (request: PoolWorkerRequest) => {
    const made = new Worker(new URL('./worker.js', import.meta.url), {
      type: 'module',
      name: 'em-pthread', // POOL_WORKER_NAME: bundlers want a literal here
    });
    made.onerror = onError;
    made.postMessage(request, [request.port]);
    pool.push(made);
  };
  return {
    post: (message: ToWorker, transfer = []) => worker.postMessage(message, transfer),
    listen(onMessage, lost) {
      onLost = lost;
      worker.onmessage = ({ data }: MessageEvent<FromWorker | PoolWorkerRequest>) =>
        data.type === 'poolWorker' ? makePoolWorker(data) : onMessage(data);
      worker.onmessageerror = () => onLost('one of its messages could not be read');
      worker.onerror = onError;
    },
    setBusy() {},
    async terminate() {
      worker.onmessage = null;
      for (const one of [worker, ...pool]) one.terminate();
    },
  };
}

// The error event of a script that could not be fetched or was refused carries no message.
const WORKER_NOT_LOADED =
  'its script could not be loaded. Look for worker.js in the network panel: it must be served from this site, with a ' +
  "JavaScript content type, and allowed by the page's Content-Security-Policy (worker-src or script-src 'self')";

function probe(): Features {
  const shared = hasSharedMemory() && globalThis.crossOriginIsolated === true;
  return {
    simd: hasSimd(),
    relaxedSimd: hasRelaxedSimd(),
    sharedMemory: shared,
    noSharedMemoryReason: shared ? '' : noSharedMemoryReason(),
    crossOriginIsolated: globalThis.crossOriginIsolated === true,
    cores: globalThis.navigator?.hardwareConcurrency ?? 1,
  };
}

function noSharedMemoryReason(): string {
  return globalThis.crossOriginIsolated === true
    ? 'this browser has no WebAssembly threads'
    : 'the page is not cross-origin isolated (threads need the headers Cross-Origin-Opener-Policy: same-origin and ' +
        'Cross-Origin-Embedder-Policy: require-corp)';
}

/** The worker resolves URLs against its own place, so relative ones are made absolute here. */
function resolveString(source: string): SourceWire {
  return {
    kind: 'url',
    url: new URL(source, globalThis.document?.baseURI ?? globalThis.location.href).href,
  };
}

/** Asking may show the user a question: once for a page. */
const storage = { isAsked: false };

export const browserPlatform: Platform = {
  startWorker,
  modules,
  probe,
  resolveString,
  resolveUrl: (source) => ({ kind: 'url', url: source.href }),
  keepStorage() {
    if (storage.isAsked) return;
    storage.isAsked = true;
    const manager = globalThis.navigator.storage as StorageManager | undefined;
    manager?.persist?.().catch(() => {});
  },
};
