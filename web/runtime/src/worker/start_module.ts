// Loads one of the four modules into this worker and starts its thread pool. Which one is decided elsewhere (launch.ts);
// a failure is thrown and ends this worker.
import type { HeadlightModule, ModuleArguments, Runtime } from '../../../../wasm/headlight.js';
import {
  asHeadlightError,
  type HeadlightError,
  NetworkError,
  OutOfMemoryError,
  WorkerLostError,
} from '../errors.js';
import type { Requests, StartedModule, StartStep } from '../protocol.js';
import type { ModuleFactory, WorkerEnvironment } from './environment.js';
import { unwrap } from './unwrap.js';

export interface RunningModule {
  module: HeadlightModule;
  runtime: Runtime;
  started: StartedModule;
}

export const WASM_PAGE_BYTES = 65536;
/** What wasm32 can address; also the maximum that the modules declare. */
export const MAX_WASM_PAGES = 65536;
/** What the modules declare as their initial memory: Emscripten's default of 16 MiB. */
const INITIAL_PAGES = 256;
/** A shared memory reserves its maximum at once, which small devices refuse: then less is tried. */
const SHARED_MAXIMA = [MAX_WASM_PAGES, MAX_WASM_PAGES / 2, MAX_WASM_PAGES / 4];

export interface StartHooks {
  /** For who watches from outside: this thread may hang in the next step (start_watch.ts). */
  onStep(step: StartStep): void;
  /** The module has aborted and cannot be used any more. */
  onAbort(what: unknown): void;
}

export async function startModule(
  env: WorkerEnvironment,
  { glueUrl, wasmUrl, threads }: Requests['start'],
  hooks: StartHooks,
): Promise<RunningModule> {
  const factory = await importGlue(env, glueUrl);
  const args: ModuleArguments = {
    locateFile: () => wasmUrl,
    mainScriptUrlOrBlob: glueUrl,
    preRun: () => hooks.onStep('compiled'),
    onAbort: hooks.onAbort,
  };
  if (threads > 1) {
    args.wasmMemory = sharedMemory();
    args.headlightThreads = threads - 1;
    hooks.onStep('creating threads');
  }
  const starting = factory(args);
  if (threads > 1) hooks.onStep('threads created');
  const module = await starting.catch(async (error) => {
    throw await whyNotStarted(wasmUrl, error);
  });
  const { dotForm, relaxedOk } = module.probe();
  const runtime = unwrap(module.createRuntime(threads));
  return { module, runtime, started: { dotForm, relaxedOk, threads: runtime.nThreads() } };
}

function sharedMemory(): WebAssembly.Memory {
  let failure: unknown;
  for (const maximum of SHARED_MAXIMA) {
    try {
      return new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum, shared: true });
    } catch (error) {
      failure = error;
    }
  }
  throw noMemory('shared memory', failure);
}

const noMemory = (kind: string, cause: unknown) =>
  new OutOfMemoryError(
    `no ${kind} of ${(INITIAL_PAGES * WASM_PAGE_BYTES) / 2 ** 20} MiB or more could be reserved`,
    {},
    { cause },
  );

/**
 * That there is no memory for a module, or no network, reads otherwise in each browser; it shows in that there still is none.
 */
async function whyNotStarted(wasmUrl: string, cause: unknown): Promise<HeadlightError> {
  try {
    new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum: MAX_WASM_PAGES });
  } catch {
    return noMemory('memory', cause);
  }
  const { message } = asHeadlightError(cause);
  const response = await fetched(wasmUrl);
  if (response?.ok === false) return refused(wasmUrl, response.status, cause);
  if (response === undefined && isFetched(wasmUrl))
    return new NetworkError(`${wasmUrl} could not be fetched: ${message}`, { url: wasmUrl });
  return new WorkerLostError(`the module did not start: ${message}`, {}, { cause });
}

async function importGlue(env: WorkerEnvironment, url: string): Promise<ModuleFactory> {
  try {
    return await env.importGlue(url);
  } catch (error) {
    throw await whyNotImported(url, error);
  }
}

const isFetched = (url: string) => /^https?:/.test(url);

/** The answer alone; undefined where there is none. */
async function fetched(url: string): Promise<Response | undefined> {
  if (!isFetched(url)) return undefined;
  const response = await fetch(url).catch(() => undefined);
  await response?.body?.cancel();
  return response;
}

const refused = (url: string, status: number, cause: unknown) =>
  new NetworkError(
    `${url} answered ${status}: serve the package's dist/wasm folder where the bundler expects it`,
    { url, status },
    { cause },
  );

/** A failed import() does not say why; the commonest causes show in a fetch of the same file. */
async function whyNotImported(url: string, cause: unknown): Promise<NetworkError> {
  const details = { url };
  const response = await fetched(url);
  if (response?.ok === false) return refused(url, response.status, cause);
  const contentType = response?.headers.get('content-type') ?? 'no content type';
  if (response !== undefined && !/javascript/.test(contentType)) {
    return new NetworkError(
      `${url} is served as '${contentType}', which browsers do not import: serve .mjs files as text/javascript`,
      { ...details, status: response.status, contentType },
      { cause },
    );
  }
  return new NetworkError(
    `${url} could not be imported: ${asHeadlightError(cause).message}`,
    details,
    { cause },
  );
}
