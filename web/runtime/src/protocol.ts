// What crosses between the page's thread and the worker, and nothing else does: requests and answers with an id,
// events of a request under way, and the few notes without an answer. Both sides were built from this one file, so
// messages are not checked again; what a user says is checked before it becomes a message (options.ts).
import type { AttendResult } from './attend_types.js';
import type { WireError } from './errors.js';
import type { LabCall, LabOps, LabProgress } from './lab/lab_protocol.js';
import type { RopeCall, RopeResult } from './lab/positions.js';
import type { StopFlag } from './stop_flag.js';
import type { StoreMode } from './store/stored_source.js';
import type {
  CacheType,
  ChatMessage,
  DownloadInfo,
  EngineStats,
  Eviction,
  ForwardTrace,
  GenerateChunk,
  GenerateResult,
  LoadProgress,
  MemoryInfo,
  ModelInfo,
  ModelPlan,
  PrefillProgress,
  RuntimeInfo,
  SpeedLimits,
} from './types.js';

export type ModuleName = RuntimeInfo['module'];
export type DotForm = RuntimeInfo['dotForm'];

/** One file of a model. Bytes stay on the page's thread and are sent range by range when asked for. */
export type SourceWire =
  | { kind: 'url'; url: string }
  | { kind: 'path'; path: string }
  | { kind: 'blob'; blob: Blob }
  | { kind: 'bytes'; nBytes: number };

/** Every default filled in. */
export interface SessionOptionsWire {
  /** 0: min(the model's, 4096). */
  nCtx: number;
  kvCacheK: CacheType;
  kvCacheV: CacheType;
  activations: 'int8' | 'f32';
  eviction: Eviction['policy'];
  /** Of the policy; others are not looked at. */
  evictionSinks: number;
  evictionWindow: number;
  evictionBudget: number;
}

/** Every default filled in. */
export interface DownloadOptionsWire {
  store: StoreMode;
  /** Lower case; of each source, or empty. */
  sha256: readonly string[];
  retries: number;
  revalidate: boolean;
}

/** Every default filled in. */
export interface CaptureRequestWire {
  what: 'weights' | 'scores' | 'softcapped' | 'scaled';
  layers: Uint32Array;
  allHeads: boolean;
  /** Unless allHeads. */
  heads: Uint32Array;
  headOutputs: boolean;
  residualNorms: boolean;
  logitLens: Uint32Array;
  rowsOf: 'last' | 'all' | 'listed';
  /** For 'listed'. */
  rows: Uint32Array;
}

/** Every default filled in, but for the seed's: the page's thread draws it. */
export interface GenerateOptionsWire {
  temperature: number;
  topK: number;
  topP: number;
  minP: number;
  repetitionPenalty: number;
  frequencyPenalty: number;
  presencePenalty: number;
  penaltyLastN: number;
  seed: number;
  logitBiasIds: Uint32Array;
  logitBiasValues: Float32Array;
  /** 0: until the context is full. */
  maxTokens: number;
  stop: readonly string[];
  /** Undefined: not asked for. 0: of the sampled token alone. */
  logprobs: number | undefined;
  ignoreEndOfGeneration: boolean;
  capture?: CaptureRequestWire;
}

export type PromptWire =
  | { kind: 'text'; text: string }
  | { kind: 'tokens'; tokens: Uint32Array }
  | {
      kind: 'chat';
      messages: readonly ChatMessage[];
      tools: readonly unknown[] | undefined;
      onContextFull: 'error' | 'drop-oldest';
    };

export interface AttendSpecWire {
  nQHeads: number;
  nKvHeads: number;
  dQk: number;
  dV: number;
  nTokens: number;
  nKv: number;
  /** Of the first query row. */
  firstPosition: number;
  /** 0: 1 / sqrt(dQk). */
  scale: number;
  window: number;
  softcap: number;
  causal: boolean;
  windowSinks: number;
  prefix: number;
  alibiSlopes: Float32Array | null;
  sinkLogits: Float32Array | null;
  /** [nMaskHeads, nMaskRows, nKv]; 1 is the same for all, no heads no mask. */
  mask: Float32Array | null;
  nMaskHeads: number;
  nMaskRows: number;
  capture: 'weights' | 'scores' | 'softcapped' | 'scaled' | null;
  kvCacheK: CacheType;
  kvCacheV: CacheType;
  kernel: 'auto' | 'reference' | 'tiled' | 'decode';
}

/** Body of each request. A session comes into being with the first request that names it. */
export interface Requests {
  /** The first request: loads the module and nothing more. */
  start: { module: ModuleName; glueUrl: string; wasmUrl: string; threads: number };
  load: {
    sources: readonly SourceWire[];
    session: SessionOptionsWire;
    download: DownloadOptionsWire;
  };
  inspect: { sources: readonly SourceWire[]; session: SessionOptionsWire };
  preflight: { sources: readonly SourceWire[]; session: SessionOptionsWire };
  /** `aborted`: the caller's signal had fired already. */
  generate: {
    session: number;
    prompt: PromptWire;
    options: GenerateOptionsWire;
    aborted: boolean;
  };
  truncate: { session: number; nTokens: number };
  /** Makes session `to`, with what `session` holds. */
  fork: { session: number; to: number };
  save: { session: number };
  restore: { session: number; bytes: Uint8Array };
  closeSession: { session: number };
  forward: {
    session: number;
    tokens: Uint32Array;
    allPositions: boolean;
    capture: CaptureRequestWire | undefined;
  };
  tokenize: { text: string; addSpecial: boolean; parseSpecial: boolean };
  detokenize: { tokens: Uint32Array };
  tokenTexts: { tokens: Uint32Array };
  stats: { session: number };
  attend: { spec: AttendSpecWire; q: Float32Array; k: Float32Array; v: Float32Array };
  limits: { readBytes: number; budgetMs: number };
  rope: RopeCall;
  sinusoids: { rows: Float32Array; positions: Uint32Array };
  alibiSlopes: { nHeads: number };
  lab: LabCall;
}
export type RequestType = keyof Requests;

export interface StartedModule {
  dotForm: DotForm;
  /** false: a relaxed build whose dot product follows no known rule here. Take the plain module. */
  relaxedOk: boolean;
  threads: number;
}

export interface LoadedModel {
  model: ModelInfo;
  memory: MemoryInfo;
  nCtx: number;
  download?: DownloadInfo;
}

export interface PreflightWire {
  plan: ModelPlan;
  fits: boolean;
  /** Of WASM memory before. */
  hadBytes: number;
  alternatives: { nCtx: number; kvCache: { k: CacheType; v: CacheType }; neededBytes: number }[];
}

export interface Replies {
  start: StartedModule;
  load: LoadedModel;
  inspect: ModelPlan;
  preflight: PreflightWire;
  generate: GenerateResult;
  truncate: null;
  fork: null;
  save: Uint8Array;
  restore: null;
  closeSession: null;
  forward: ForwardTrace;
  tokenize: number[];
  detokenize: string;
  tokenTexts: string[];
  stats: EngineStats;
  attend: AttendResult;
  limits: SpeedLimits;
  rope: RopeResult;
  sinusoids: Float32Array;
  alibiSlopes: Float32Array;
  /** Of the call's op. */
  lab: LabOps[keyof LabOps]['reply'];
}

export type Request<K extends RequestType = RequestType> = {
  [T in K]: { type: T; id: number; body: Requests[T] };
}[K];

/** Notes to the worker that have no answer of their own. */
export type Note =
  | { type: 'cancel'; id: number }
  /** Answer to the event 'wantBytes' of request `id`. */
  | { type: 'bytes'; id: number; bytes: Uint8Array };

export type ToWorker = Request | Note;

/** Of a module that starts; the first two only with threads. */
export type StartStep = 'creating threads' | 'threads created' | 'compiled';

/** What a request tells while it is under way. */
export type RequestEvent =
  | { type: 'starting'; id: number; step: StartStep }
  | { type: 'progress'; id: number; progress: LoadProgress }
  | { type: 'prefill'; id: number; progress: PrefillProgress }
  | { type: 'chunk'; id: number; chunk: GenerateChunk }
  | { type: 'lab'; id: number; progress: LabProgress }
  /** The half-open byte range of the given source of kind 'bytes'; answered by the note 'bytes'. */
  | { type: 'wantBytes'; id: number; source: number; start: number; end: number }
  /** The run may be stopped through shared memory from now on (stop_flag.ts); the note 'cancel' follows all the same. */
  | { type: 'stopFlag'; id: number; flag: StopFlag };

export type FromWorker =
  | { [T in RequestType]: { type: 'done'; id: number; value: Replies[T] } }[RequestType]
  | { type: 'failed'; id: number; error: WireError }
  | RequestEvent
  /** The module is gone (abort, trap in a pool thread): nothing will be answered any more. */
  | { type: 'fatal'; why: string };

/** Browsers only, below all that: to the page, and from it to the worker that it has made (worker/pool_workers.ts). */
export interface PoolWorkerRequest {
  type: 'poolWorker';
  glueUrl: string;
  port: MessagePort;
}
