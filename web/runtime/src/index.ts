// Everything public of headlight-wasm, for browsers; node.ts is its twin for Node.
import { attendOn } from './attend.js';
import type { AttendOptions, AttendResult } from './attend_types.js';
import { browserPlatform } from './browser_platform.js';
import { LoadedEngine } from './engine.js';
import { type InspectOptions, inspectOn, loadOn } from './launch.js';
import { limitsOn } from './limits.js';
import { type Preflight, type PreflightOptions, preflightOn } from './preflight.js';
import { ModelStore } from './store/model_store.js';
import { openOpfs, openSessions } from './store/opfs.js';
import { SessionStore } from './store/session_store.js';
import type { LimitsOptions, LoadOptions, ModelPlan, ModelSource, SpeedLimits } from './types.js';

export * from './public.js';

/** A model, loaded into a worker of its own. */
export class Engine extends LoadedEngine {
  /**
   * Loads a model. Needs no header and no set-up; `engine.info.runtime` says what runs and why.
   * Rejects with BadOptionError, NetworkError, BadModelError, UnsupportedError, IntegrityError, OutOfMemoryError,
   * WorkerLostError or, when `signal` fires, AbortedError.
   */
  static async load(source: ModelSource, options: LoadOptions = {}): Promise<Engine> {
    return new Engine(await loadOn(browserPlatform, source, options));
  }

  /**
   * What loading would take and give, from the model's header alone: bytes, whether they are there, what would fit otherwise,
   * and the expected speed. Rejects as load() does for a file that cannot be used.
   */
  static preflight(source: ModelSource, options: PreflightOptions = {}): Promise<Preflight> {
    return preflightOn(browserPlatform, source, options);
  }
}

/** What loading a model would take, from its header alone: the rest is not fetched. */
export function inspectModel(
  source: ModelSource,
  options: InspectOptions = {},
): Promise<ModelPlan> {
  return inspectOn(browserPlatform, source, options);
}

/** One attention layer on given rows, without a model: for trying a head layout. Each call starts a worker. */
export function attend(options: AttendOptions): Promise<AttendResult> {
  return attendOn(browserPlatform, options);
}

/** What this machine allows in the module that runs: to see speeds as a share of it. Each call starts a worker. */
export function measureLimits(options: LimitsOptions = {}): Promise<SpeedLimits> {
  return limitsOn(browserPlatform, options);
}

/** The models that `Engine.load(url, { store: true })` has kept in this browser. */
export const modelStore = new ModelStore(openOpfs, async () => {
  const storage = globalThis.navigator.storage as StorageManager | undefined;
  return (await storage?.persisted?.()) ?? false;
});

/** Sessions that were saved under a name in this browser. */
export const sessionStore = new SessionStore(openSessions);
