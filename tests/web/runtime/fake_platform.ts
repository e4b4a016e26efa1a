// A Platform whose workers are WorkerHosts on this very thread, over a FakeModule. Messages are cloned and come later, as
// between real threads.
import type { Endpoint, Platform } from '../../../web/runtime/src/endpoint.js';
import { LoadedEngine } from '../../../web/runtime/src/engine.js';
import { loadOn } from '../../../web/runtime/src/launch.js';
import type { Features } from '../../../web/runtime/src/modules.js';
import type { FromWorker, ModuleName, ToWorker } from '../../../web/runtime/src/protocol.js';
import type { StorePlace } from '../../../web/runtime/src/store/place.js';
import type { LoadOptions, ModelSource } from '../../../web/runtime/src/types.js';
import type { ModuleFactory } from '../../../web/runtime/src/worker/environment.js';
import { WorkerHost } from '../../../web/runtime/src/worker/host.js';
import { FakeModule, type FakeScript, script } from './fake_module.js';

export interface FakeWorker {
  endpoint: Endpoint;
  /** What the worker was told. */
  received: ToWorker[];
  terminated: boolean;
  /** Ends the worker as a crash would. */
  crash(why: string): void;
}

export interface FakePlatform extends Platform {
  readonly workers: FakeWorker[];
  /** Of the last worker that has started one. */
  module(): FakeModule;
}

const FEATURES: Features = {
  simd: true,
  relaxedSimd: false,
  sharedMemory: false,
  noSharedMemoryReason: 'this is a test',
  crossOriginIsolated: false,
  cores: 4,
};

export interface FakeOptions {
  /** Where models are stored. */
  place?: StorePlace;
  features?: Partial<Features>;
  /** What the glue of a module does instead of giving the fake module. */
  factories?: Partial<
    Record<
      ModuleName,
      (module: FakeModule, args: Parameters<ModuleFactory>[0]) => Promise<FakeModule>
    >
  >;
}

export function fakePlatform(
  changes: Partial<FakeScript> = {},
  options: FakeOptions = {},
): FakePlatform {
  const workers: FakeWorker[] = [];
  let latest: FakeModule | undefined;
  const importGlue = async (url: string): Promise<ModuleFactory> => {
    const factory = options.factories?.[url as ModuleName];
    return async (args) => {
      latest = new FakeModule(script(changes));
      if (factory !== undefined) return factory(latest, args);
      args?.preRun?.();
      return latest;
    };
  };
  const urls = (name: ModuleName) => ({ glueUrl: name, wasmUrl: `${name}.wasm` });
  return {
    workers,
    module() {
      if (latest === undefined) throw new Error('no module was started');
      return latest;
    },
    startWorker() {
      const worker = fakeWorker(importGlue, options.place);
      workers.push(worker);
      return worker.endpoint;
    },
    modules: {
      simd: urls('simd'),
      'simd-threads': urls('simd-threads'),
      relaxed: urls('relaxed'),
      'relaxed-threads': urls('relaxed-threads'),
    },
    probe: () => ({ ...FEATURES, ...options.features }),
    resolveString: (url) => ({ kind: 'url', url }),
    resolveUrl: ({ href }) => ({ kind: 'url', url: href }),
  };
}

function fakeWorker(
  importGlue: (url: string) => Promise<ModuleFactory>,
  place: StorePlace | undefined,
): FakeWorker {
  let toPage: (message: FromWorker) => void = () => {};
  let onLost: (why: string) => void = () => {};
  const received: ToWorker[] = [];
  const host = new WorkerHost({
    post: (message, transfer = []) => {
      const copy = structuredClone(message, { transfer });
      setImmediate(() => !worker.terminated && toPage(copy));
    },
    importGlue,
    nextTurn: () => new Promise((resolve) => setImmediate(() => !worker.terminated && resolve())),
    openStore: async () => place,
    readFile: () => {
      throw new Error('no files here');
    },
  });
  const worker: FakeWorker = {
    received,
    terminated: false,
    crash(why) {
      worker.terminated = true;
      onLost(why);
    },
    endpoint: {
      post(message, transfer = []) {
        const copy = structuredClone(message, { transfer });
        received.push(copy);
        setImmediate(() => !worker.terminated && host.receive(copy));
      },
      listen(onMessage, lost) {
        toPage = onMessage;
        onLost = lost;
      },
      setBusy() {},
      async terminate() {
        worker.terminated = true;
      },
    },
  };
  return worker;
}

export const FAKE_FILE = new Uint8Array(100);
FAKE_FILE.set(new TextEncoder().encode('GGUF'));

/** An engine over the fake, as Engine.load would make it. */
export async function loadFake(
  platform: Platform,
  options: LoadOptions = {},
  source: ModelSource = FAKE_FILE,
): Promise<LoadedEngine> {
  return new LoadedEngine(await loadOn(platform, source, options));
}
