// Everything public of headlight-wasm, for Node; index.ts is its twin for browsers.
import { attendOn } from './attend.js';
import type { AttendOptions, AttendResult } from './attend_types.js';
import { LoadedEngine } from './engine.js';
import { type InspectOptions, inspectOn, loadOn } from './launch.js';
import { limitsOn } from './limits.js';
import { nodePlatform } from './node_platform.js';
import { type Preflight, type PreflightOptions, preflightOn } from './preflight.js';
import { ModelStore } from './store/model_store.js';
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
    return new Engine(await loadOn(nodePlatform, source, options));
  }

  /**
   * What loading would take and give, from the model's header alone: bytes, whether they are there, what would fit otherwise,
   * and the expected speed. Rejects as load() does for a file that cannot be used.
   */
  static preflight(source: ModelSource, options: PreflightOptions = {}): Promise<Preflight> {
    return preflightOn(nodePlatform, source, options);
  }
}

/** What loading a model would take, from its header alone: the rest is not fetched. */
export function inspectModel(
  source: ModelSource,
  options: InspectOptions = {},
): Promise<ModelPlan> {
  return inspectOn(nodePlatform, source, options);
}

/** One attention layer on given rows, without a model: for trying a head layout. Each call starts a worker. */
export function attend(options: AttendOptions): Promise<AttendResult> {
  return attendOn(nodePlatform, options);
}

/** What this machine allows in the module that runs: to see speeds as a share of it. Each call starts a worker. */
export function measureLimits(options: LimitsOptions = {}): Promise<SpeedLimits> {
  return limitsOn(nodePlatform, options);
}

/** The models that `Engine.load(url, { store: true })` has kept in this browser. Node has no such storage: it is empty. */
export const modelStore = new ModelStore(
  async () => undefined,
  async () => false,
);

/** Node has no storage of a browser's kind: put() is a QuotaError. Write the bytes of session.save() to a file. */
export const sessionStore = new SessionStore(async () => undefined);
