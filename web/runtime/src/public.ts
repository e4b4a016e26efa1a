// The public names that do not depend on the platform; index.ts and node.ts export them beside Engine, inspectModel and
// attend.

export type * from './attend_types.js';
export type * from './capture_types.js';
export { EngineSession, type TokenIds } from './engine.js';
export {
  AbortedError,
  BadModelError,
  BadOptionError,
  ContextFullError,
  type ErrorCode,
  type ErrorDetails,
  HeadlightError,
  IntegrityError,
  InternalError,
  NetworkError,
  OutOfMemoryError,
  QuotaError,
  UnsupportedError,
  WorkerLostError,
} from './errors.js';
export type { InspectOptions } from './launch.js';
export type { Alternative, Preflight, PreflightOptions } from './preflight.js';
export type { ModelStore } from './store/model_store.js';
export type { SavedSession, SessionStore } from './store/session_store.js';
export type * from './types.js';
