// The module that Embind exposes, as the worker sees it (wasm/*.cc). Hand-written; a test compares it with the live
// module. Nothing throws: every call that can fail returns a Result. Objects hold WASM memory: call delete().

import type {
  CapturedArray as CapturedArrayWire,
  Captured as CapturedWire,
} from '../web/runtime/src/capture_types.js';
import type {
  AttentionTensorWire,
  BlockTraceWire,
  ModelEditWire,
  RopeWire,
} from '../web/runtime/src/lab/wire.js';
import type { CaptureRequestWire } from '../web/runtime/src/protocol.js';

export type { AttentionTensorWire, BlockTraceWire, ModelEditWire, RopeWire };

export interface ModuleError {
  /** ErrorCodeName of src/base/error.h: 'BadModel', 'Unsupported', 'BadOption', 'OutOfMemory', ... */
  code: string;
  message: string;
  details: Record<string, string>;
}
export type Result<T> = { value: T; error?: undefined } | { value?: undefined; error: ModuleError };

export interface ProbeInfo {
  /** How 8-bit codes are multiplied here: DotFormName of src/simd/dot_form.h. */
  dotForm: 'wide' | 'unsigned' | 'signed' | 'split';
  relaxedBuild: boolean;
  /** false in a relaxed build whose dot matches no known semantics: the loader then takes the plain module. */
  relaxedOk: boolean;
  threadsBuild: boolean;
}

/** All fields are required: web/runtime fills in the defaults. */
export interface SessionOptionsWire {
  /** 0: min(model's, 4096). */
  nCtx: number;
  kvCacheK: 'f32' | 'f16' | 'int8';
  kvCacheV: 'f32' | 'f16' | 'int8';
  activations: 'int8' | 'f32';
  eviction: 'none' | 'sinks' | 'h2o' | 'snapkv';
  /** Of the policy; others are not looked at. */
  evictionSinks: number;
  evictionWindow: number;
  evictionBudget: number;
}

export interface LayerInfoWire {
  nQHeads: number;
  nKvHeads: number;
  dQk: number;
  dV: number;
  dFf: number;
  /** 0: none. */
  window: number;
  ropeStyle: 'none' | 'interleaved' | 'half-split';
  nRot: number;
  ropeFreqBase: number;
}

export interface ModelInfoWire {
  architecture: string;
  name: string;
  dModel: number;
  vocabSize: number;
  nCtxTrain: number;
  tiedHead: boolean;
  layers: LayerInfoWire[];
  /** Packed weights of the headers seen so far. */
  weightsBytes: number;
  /** Multiply-adds with weights per token, i.e. parameters used by one token. */
  parametersUsed: number;
}

export interface SessionPlanWire {
  nCtx: number;
  kvCacheBytes: number;
  kvBytesPerToken: number;
  workspaceBytes: number;
}

export interface GenerateOptionsWire {
  temperature: number;
  topK: number;
  topP: number;
  minP: number;
  repetitionPenalty: number;
  frequencyPenalty: number;
  presencePenalty: number;
  penaltyLastN: number;
  /** 64 bits as two halves. */
  seedLow: number;
  seedHigh: number;
  /** Parallel arrays. */
  logitBiasIds: Uint32Array;
  logitBiasValues: Float32Array;
  nLogprobs: number;
  /** 0: until the context is full. */
  maxTokens: number;
  stopTokens: Uint32Array;
  ignoreStopTokens: boolean;
  capture: CaptureRequestWire | null;
}

export interface TokenLogprobWire {
  id: number;
  logprob: number;
}
export interface SampledTokenWire extends TokenLogprobWire {
  top: TokenLogprobWire[];
}

export interface AdvanceResultWire {
  done: boolean;
  finish: 'none' | 'stop' | 'length' | 'aborted';
  nPromptDone: number;
  nPrompt: number;
  tokens: SampledTokenWire[];
  /** One of the prompt with the first token, then one a token; empty unless asked for. */
  captures: CapturedWire[];
}

export interface RunStatsWire {
  nPrompt: number;
  nPromptReused: number;
  nGenerated: number;
  /** Tokens put through the model in decodeMs. */
  nDecodeSteps: number;
  prefillMs: number;
  decodeMs: number;
  prefillStages: StageTimesWire;
  decodeStages: StageTimesWire;
}

/** What the time went into, summed over layers and tokens. */
export interface StageTimesWire {
  embeddingMs: number;
  normsMs: number;
  projectionsMs: number;
  positionsMs: number;
  attentionMs: number;
  feedForwardMs: number;
  activationMs: number;
  headMs: number;
  samplingMs: number;
}

export type LoaderState = 'header' | 'planned' | 'data' | 'shardDone';

export interface Deletable {
  delete(): void;
}

/** Owns the thread pool; outlives what it made. */
export interface Runtime extends Deletable {
  createLoader(): Result<Loader>;
  nThreads(): number;
}

export interface Loader extends Deletable {
  /** Address of the staging buffer in HEAPU8; re-read HEAPU8 before each copy, memory may have grown. */
  stage(): number;
  /** Bytes that fit the staging buffer. */
  stageBytes(): number;
  /** Takes the first n staged bytes; `taken` < n only when the header ends inside them: stage the rest again. */
  append(n: number): Result<{ taken: number; state: LoaderState }>;
  state(): LoaderState;
  shardBytes(): number;
  /** From 'planned' on. */
  modelInfo(): Result<ModelInfoWire>;
  planSession(options: SessionOptionsWire): Result<SessionPlanWire>;
  /** Scalars only: numbers (64-bit ones that are not safe integers as strings), strings and booleans by key. */
  metadata(): Result<Record<string, string | number | boolean>>;
  /** null: no such key. Copies; string i is bytes [offsets[i], offsets[i + 1]). */
  strings(key: string): Result<{ bytes: Uint8Array; offsets: Uint32Array } | null>;
  numbers(key: string): Result<Float32Array | Int32Array | Uint32Array | Float64Array | null>;
  dropMetadata(): void;
  /** Reserves the packed weights of this shard. */
  allocate(): Result<null>;
  /** Instead of allocate(): leaves this shard's data out. Such a loader plans only: finish() is an error. */
  skipData(): Result<null>;
  beginShard(): Result<null>;
  /** Files that the model consists of; from the first header on. */
  shardCount(): number;
  finish(): Result<Model>;
}

export interface Model extends Deletable {
  info(): ModelInfoWire;
  createSession(options: SessionOptionsWire): Result<Session>;
  // From here to traceBlock, as Session's scores: in the modules of one thread only.
  /** Another model that shares what does not change; this one stays as it is (src/lab/model_edit.h). */
  edit(edit: ModelEditWire): Result<Model>;
  /** Matrix `role` of a layer: 0 W_q, 1 W_k, 2 W_v, 3 W_o. Encoded: the bytes that a file of `type` holds. */
  attentionTensor(layer: number, role: number, encoded: boolean): Result<AttentionTensorWire>;
  /** Largest first. */
  singularValues(layer: number, role: number): Result<Float32Array>;
  createCalibration(nTokens: number): Result<Calibration>;
  traceBlock(tokens: Uint32Array, options: TraceOptionsWire): Result<BlockTraceWire>;
}

export interface LayerCalibrationWire {
  /** [heads, nTokens] */
  byOffset: Float32Array;
  /** [heads, 8]: first row's weight, spread, mean spread, likeliest shift, output errors of shift, mean, first, table. */
  numbers: Float32Array;
  /** [dQk / 2], sums to 1. */
  pairShares: Float32Array;
}

/** Two passes over segments of nTokens tokens: all added, then all checked. */
export interface Calibration extends Deletable {
  segment(tokens: Uint32Array, check: boolean): Result<null>;
  /** Computes the segment; false: more is to be done. */
  advance(budgetMs: number): Result<boolean>;
  layer(layer: number): Result<LayerCalibrationWire>;
}

export interface TraceOptionsWire {
  layer: number;
  kvCacheK: 'f32' | 'f16' | 'int8';
  kvCacheV: 'f32' | 'f16' | 'int8';
  lastOnly: boolean;
  budgetMs: number;
}

export interface Session extends Deletable {
  begin(tokens: Uint32Array, options: GenerateOptionsWire): Result<null>;
  advance(budgetMs: number): Result<AdvanceResultWire>;
  cancel(): void;
  truncate(nTokens: number): Result<null>;
  /** History and cache rows of another session of the same model and options. */
  copyFrom(other: Session): Result<null>;
  /** History and cache rows as bytes (src/session/saved_session.h), outside of WASM memory. */
  save(): Result<Uint8Array>;
  restore(bytes: Uint8Array): Result<null>;
  beginForward(
    tokens: Uint32Array,
    allPositions: boolean,
    capture: CaptureRequestWire | null,
  ): Result<null>;
  /**
   * null: more is to be done; cancel() ends it. logits: [vocabSize] of the last position, or [nTokens, vocabSize].
   * capture: null where none was asked for.
   */
  advanceForward(
    budgetMs: number,
  ): Result<{ logits: Float32Array; capture: CapturedWire | null } | null>;
  /** Takes the session's history. */
  beginScores(tokens: Uint32Array): Result<null>;
  /** null: more is to be done; cancel() ends it. Entry i is about token i + 1. */
  advanceScores(
    budgetMs: number,
  ): Result<{ logProbabilities: Float32Array; likeliest: Uint32Array } | null>;
  history(): Uint32Array;
  stats(): RunStatsWire;
  plan(): SessionPlanWire;
}

export interface AttendSpecWire {
  nQHeads: number;
  nKvHeads: number;
  dQk: number;
  dV: number;
  /** Query rows; row t stands at position firstPosition + t. */
  nTokens: number;
  nKv: number;
  firstPosition: number;
  /** 0: 1 / sqrt(dQk). */
  scale: number;
  window: number;
  softcap: number;
  causal: boolean;
  windowSinks: number;
  prefix: number;
  /** [nQHeads] */
  alibiSlopes: Float32Array | null;
  sinkLogits: Float32Array | null;
  /** [nMaskHeads, nMaskRows, nKv], added to the scores; nMaskHeads 0: none, nMaskHeads or nMaskRows 1: the same for all. */
  mask: Float32Array | null;
  nMaskHeads: number;
  nMaskRows: number;
  kvCacheK: 'f32' | 'f16' | 'int8';
  kvCacheV: 'f32' | 'f16' | 'int8';
  capture: 'weights' | 'scores' | 'softcapped' | 'scaled' | null;
  kernel: 'auto' | 'reference' | 'tiled' | 'decode';
}

export interface HeadlightModule {
  /** [1]: read between layers by what computes in a session; another thread stores 1 there to stop it. */
  stopFlag?: Int32Array | undefined;
  HEAPU8: Uint8Array;
  probe(): ProbeInfo;
  /** Current size of the WASM memory. */
  wasmBytes(): number;
  createRuntime(nThreads: number): Result<Runtime>;
  /** Grows the memory in one step so that nBytes more can be allocated; OutOfMemory where it cannot grow so far. */
  reserve(nBytes: number): Result<null>;
  /** What this machine allows in this module (src/kernels/limits.h); allocates readBytes for the time of the call. */
  measureLimits(
    runtime: Runtime,
    readBytes: number,
    budgetMs: number,
  ): Result<{ readGBs: number; dotGops: number; fmaGflops: number }>;
  /**
   * One attention layer on given rows: q [nTokens, nQHeads, dQk], k [nKv, nKvHeads, dQk], v [nKv, nKvHeads, dV],
   * positions already applied. out [nTokens, nQHeads, dV]; `milliseconds` is the kernel alone.
   */
  attend(
    runtime: Runtime,
    spec: AttendSpecWire,
    q: Float32Array,
    k: Float32Array,
    v: Float32Array,
  ): Result<{
    out: Float32Array;
    kvCacheBytes: number;
    milliseconds: number;
    kernel: string;
    /** [nQHeads, nTokens, nKv] and [nQHeads, nTokens], where `capture` asks for it. */
    captured?: CapturedArrayWire;
    sinkMass?: CapturedArrayWire;
  }>;
  // From here on in the modules of one thread only.
  /** rows [n, width >= nRot] rotated in their positions, which are below nCtx; no rows: the frequencies alone. */
  rope(
    options: RopeWire,
    rows: Float32Array,
    positions: Uint32Array,
  ): Result<{
    /** [nRot / 2], radians a position. */
    frequencies: Float64Array;
    rows: Float32Array;
    /** What cosines and sines are multiplied by. */
    magnitude: number;
  }>;
  /** rows [n, width] + the sinusoids of their positions. */
  sinusoids(rows: Float32Array, positions: Uint32Array): Result<Float32Array>;
  /** [nHeads] */
  alibiSlopes(nHeads: number): Result<Float32Array>;
}

export interface ModuleArguments {
  locateFile?: (path: string) => string;
  mainScriptUrlOrBlob?: string;
  wasmMemory?: WebAssembly.Memory;
  wasmBinary?: ArrayBuffer | Uint8Array;
  /** Pool workers to start (threads builds): threads - 1. */
  headlightThreads?: number;
  print?: (text: string) => void;
  printErr?: (text: string) => void;
  /** Called when the module is compiled and instantiated, before the pool workers are waited for. */
  preRun?: () => void;
  onAbort?: (what: unknown) => void;
}

declare const createHeadlight: (args?: ModuleArguments) => Promise<HeadlightModule>;
export default createHeadlight;
