// From options to a running worker: tries the modules that modules.ts proposes, one worker each, until one stands, then
// loads or inspects a model in it. A worker that failed is ended before the next is tried, so nothing half-started stays.
import { abortable } from './abortable.js';
import { callBack } from './callbacks.js';
import { Connection } from './connection.js';
import type { Platform } from './endpoint.js';
import {
  AbortedError,
  asHeadlightError,
  type HeadlightError,
  NetworkError,
  OutOfMemoryError,
  WorkerLostError,
} from './errors.js';
import { type Candidate, chooseModules, type Features, type ModuleWishes } from './modules.js';
import {
  abortSignal,
  checkEviction,
  checkKvCache,
  checkLoadOptions,
  checkOptions,
  downloadOptions,
  elsewhere,
  integer,
  type Rules,
  sessionOptions,
} from './options.js';
import type { LoadedModel, RequestEvent, StartedModule } from './protocol.js';
import { type OpenedSources, openSources, rememberSource } from './source.js';
import { MAX_STUCK, StartWatch, ThreadsStuckError } from './start_watch.js';
import type { EngineInfo, LoadOptions, ModelPlan, ModelSource, RuntimeInfo } from './types.js';

export interface Started {
  connection: Connection;
  runtime: RuntimeInfo;
}

/** The worker of the moment, for who must end a launch from outside. */
interface Launch {
  connection?: Connection;
  /** Ended from outside, perhaps between two workers: no further one may be started. */
  endedBy?: HeadlightError;
}

function startCandidate(
  platform: Platform,
  candidate: Candidate,
  launch: Launch,
): Promise<StartedModule> {
  const connection = new Connection(platform.startWorker());
  launch.connection = connection;
  const body = {
    module: candidate.name,
    ...platform.modules[candidate.name],
    threads: candidate.threads,
  };
  return new Promise((resolve, reject) => {
    const watch = new StartWatch(candidate.threads, reject);
    const { reply } = connection.call('start', body, (event) => {
      if (event.type === 'starting') watch.reached(event.step);
    });
    reply.then(resolve, reject).finally(() => watch.end());
  });
}

/** Throws BadOptionError for wishes that cannot be honoured, or what the last candidate failed with. */
async function startModule(
  platform: Platform,
  features: Features,
  wishes: ModuleWishes,
  launch: Launch,
): Promise<Started> {
  const { candidates, reasons } = chooseModules(features, wishes);
  let failure: HeadlightError | undefined;
  let relaxedWorks = true;
  const left = [...candidates];
  let nStuck = 0;
  for (let candidate = left.shift(); candidate !== undefined; candidate = left.shift()) {
    if (candidate.relaxed && !relaxedWorks) continue;
    try {
      const started = await startCandidate(platform, candidate, launch);
      if (started.relaxedOk || !candidate.relaxed) {
        return standing(launch, candidate, started, features, reasons);
      }
      relaxedWorks = false;
      failure = new WorkerLostError('its relaxed dot product follows no known rule on this engine');
    } catch (error) {
      failure = asHeadlightError(error);
    }
    await launch.connection?.close(failure);
    if (launch.endedBy !== undefined) throw launch.endedBy;
    if (failure.code === 'Aborted') throw failure;
    reasons.push(`not ${candidate.name} with ${candidate.threads} thread(s): ${failure.message}`);
    if (failure instanceof ThreadsStuckError && nStuck++ < MAX_STUCK) left.unshift(candidate);
  }
  throw allFailed(failure, reasons, wishes);
}

function standing(
  launch: Launch,
  candidate: Candidate,
  started: StartedModule,
  features: Features,
  reasons: string[],
): Started {
  if (launch.connection === undefined)
    throw new WorkerLostError('The worker was lost while it started');
  return {
    connection: launch.connection,
    runtime: {
      module: candidate.name,
      threads: started.threads,
      dotForm: started.dotForm,
      crossOriginIsolated: features.crossOriginIsolated,
      reasons,
    },
  };
}

function allFailed(
  failure: HeadlightError | undefined,
  reasons: string[],
  { threads }: ModuleWishes,
): HeadlightError {
  const text = `No WebAssembly module could be started. ${reasons.join('; ')}.`;
  const cause = { cause: failure };
  if (failure?.code === 'OutOfMemory') {
    const remedy = 'dispose() engines that are not needed any more, or close other tabs';
    return new OutOfMemoryError(`${text} To make room, ${remedy}.`, failure.details, cause);
  }
  if (failure?.code === 'Network') return new NetworkError(text, failure.details, cause);
  const remedy = ' Ask for fewer threads, or leave the option out: then one is tried too.';
  return new WorkerLostError(
    text + (threads !== undefined && threads > 1 ? remedy : ''),
    {},
    cause,
  );
}

/**
 * Starts a module and does `work` in it. Ends the worker when the work fails or the signal fires.
 */
export async function launch<T>(
  platform: Platform,
  wishes: ModuleWishes,
  signal: AbortSignal | undefined,
  work: (started: Started) => Promise<T>,
): Promise<T> {
  if (signal?.aborted) throw new AbortedError();
  const state: Launch = {};
  const features = platform.probe(wishes.module === 'relaxed');
  const done = startModule(platform, features, wishes, state).then(work);
  const end = (error: HeadlightError) => {
    state.endedBy = error;
    return state.connection?.close(error);
  };
  try {
    return await abortable(done, signal, () => void end(new AbortedError()));
  } catch (error) {
    await end(asHeadlightError(error));
    throw error;
  }
}

/** Loads what was prepared into a worker of its own. */
export type Load = (signal: AbortSignal | undefined) => Promise<LoadedOn>;

export interface LoadedOn {
  connection: Connection;
  info: EngineInfo;
  /** Prepares the same model once more: throws BadOptionError where it, or what is changed, cannot be had. */
  again(changes: LoadOptions): Load;
}

export async function loadOn(
  platform: Platform,
  source: ModelSource,
  options: LoadOptions,
): Promise<LoadedOn> {
  return prepareLoad(platform, source, options)(options.signal);
}

/** Whatever can be refused without a worker is refused here: a restart has not yet ended the one it has. */
function prepareLoad(platform: Platform, source: ModelSource, options: LoadOptions): Load {
  checkLoadOptions(options);
  const opened = openSources(source, platform);
  downloadOptions(options, opened.sources.length);
  const wishes = moduleWishes(options);
  chooseModules(platform.probe(wishes.module === 'relaxed'), wishes);
  const again = againWith(platform, source, options);
  return async (signal) => ({ ...(await loadOpened(platform, opened, options, signal)), again });
}

/** What it gives is kept, and with it all that it shares a scope with: no bytes of a model may be among that. */
function againWith(
  platform: Platform,
  source: ModelSource,
  options: LoadOptions,
): LoadedOn['again'] {
  const remembered = rememberSource(source);
  const { signal: _, ...lasting } = options;
  return (changes) => prepareLoad(platform, remembered(), { ...lasting, ...changes });
}

const moduleWishes = ({ module = 'auto', threads }: LoadOptions): ModuleWishes => ({
  module,
  threads,
});

/**
 * A shared memory can be smaller than an unshared one (start_module.ts): a model that does not fit beside threads that
 * nobody asked for is tried once more with one thread.
 */
async function loadOpened(
  platform: Platform,
  opened: OpenedSources,
  options: LoadOptions,
  signal: AbortSignal | undefined,
): Promise<Omit<LoadedOn, 'again'>> {
  try {
    return await loadWith(platform, opened, options, signal);
  } catch (thrown) {
    const error = asHeadlightError(thrown);
    const hadThreads = options.threads === undefined && platform.probe(false).sharedMemory;
    if (error.code !== 'OutOfMemory' || !hadThreads) throw error;
    const loaded = await loadWith(platform, opened, { ...options, threads: 1 }, signal);
    loaded.info.runtime.reasons.push(`one thread, because with more: ${error.message}`);
    return loaded;
  }
}

async function loadWith(
  platform: Platform,
  opened: OpenedSources,
  options: LoadOptions,
  signal: AbortSignal | undefined,
): Promise<Omit<LoadedOn, 'again'>> {
  const startMs = performance.now();
  callBack('onProgress', options.onProgress, { phase: 'module', loadedBytes: 0 });
  return launch(platform, moduleWishes(options), signal, async ({ connection, runtime }) => {
    const { sources } = opened;
    const download = downloadOptions(options, sources.length);
    if (download.store !== 'off') platform.keepStorage?.();
    const body = { sources, session: sessionOptions(options), download };
    const onEvent = (event: RequestEvent) => {
      if (event.type === 'progress') callBack('onProgress', options.onProgress, event.progress);
      else opened.serve(event, connection);
    };
    const loaded: LoadedModel = await connection.call('load', body, onEvent).reply;
    connection.remedy = 'engine.restart() loads the model again.';
    return { connection, info: { ...loaded, runtime, loadMs: performance.now() - startMs } };
  });
}

export type InspectOptions = Pick<LoadOptions, 'nCtx' | 'kvCache' | 'eviction' | 'signal'>;

const INSPECT_RULES: Rules<InspectOptions> = {
  nCtx: integer(1),
  kvCache: elsewhere,
  eviction: elsewhere,
  signal: abortSignal,
};

/** Sizes are those of one thread: each further thread adds a little workspace. */
export async function inspectOn(
  platform: Platform,
  source: ModelSource,
  options: InspectOptions,
): Promise<ModelPlan> {
  checkOptions('inspectModel', options, INSPECT_RULES);
  checkKvCache('inspectModel', options.kvCache);
  checkEviction('inspectModel', options.eviction);
  const opened = openSources(source, platform);
  return launch(
    platform,
    { module: 'simd', threads: 1 },
    options.signal,
    async ({ connection }) => {
      const body = { sources: opened.sources, session: sessionOptions(options) };
      const plan = await connection.call('inspect', body, (event) =>
        opened.serve(event, connection),
      ).reply;
      await connection.close(new AbortedError());
      return plan;
    },
  );
}
