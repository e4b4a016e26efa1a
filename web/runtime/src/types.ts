// The public types of headlight-wasm. Everything an application can say or get is here, in capture_types.ts and in
// attend_types.ts; index.ts exports it.
import type { Captured, CaptureOptions } from './capture_types.js';

/**
 * A URL, a file, bytes, or the shards of a split model in order. Strings are URLs (in Node also file paths). The URL or
 * path of a first shard ("x-00001-of-00003.gguf") alone stands for all of them.
 */
export type ModelSource = string | URL | Blob | ArrayBuffer | Uint8Array | readonly ModelSource[];

/**
 * How keys or values are kept: 4, 2 or 1 bytes an element. 'int8' has a scale for each row of a head (2 bytes), and attention
 * multiplies 8-bit queries by 8-bit keys: the fastest, and within 0.5 % of the perplexity of f32 for the default model.
 */
export type CacheType = 'f32' | 'f16' | 'int8';

export interface LoadOptions {
  /** Context length in tokens. Default: min(the model's, 4096). */
  nCtx?: number;
  /** Threads, the calling one included. Default: half the cores where memory can be shared, else 1. */
  threads?: number;
  /** KV cache formats. Default f32 for both. */
  kvCache?: { k?: CacheType; v?: CacheType };
  /** Which keys are kept where not all are; by default all. With it nCtx may be more than the model's. */
  eviction?: Eviction;
  /** 'auto' (default) takes the fastest module that works here; the others throw where they cannot run. */
  module?: 'auto' | 'simd' | 'relaxed';
  /** 'int8' (default) is fast; 'f32' multiplies weights by unrounded activations: slow, for checking. */
  activations?: 'int8' | 'f32';
  /**
   * Keep what is downloaded in the browser's storage, go on where an earlier download broke off, and take it from there
   * the next time, without asking the server. Where that cannot be, `true` loads all the same and says why in
   * `engine.info.download`; 'require' throws QuotaError. Default false.
   */
  store?: boolean | 'require';
  /**
   * Expected SHA-256, 64 hex digits; of a split model one a file. Another file is an IntegrityError, and with it a
   * download can go on without help of the server.
   */
  sha256?: string | readonly string[];
  /**
   * Ask the server whether a stored file is still its version, and download it anew where it is not. Without a network, and
   * where the server does not tell, the stored one is used. Default false: an address names one file for ever.
   */
  revalidate?: boolean;
  /** How often in a row a broken download is tried again, after growing pauses. Default 5. */
  retries?: number;
  onProgress?: (progress: LoadProgress) => void;
  signal?: AbortSignal;
}

/**
 * 'sinks' keeps the first `sinks` keys (default 4, at most 32) and the last `window` (default 128) of each layer, and attends
 * as if what is between had never been (StreamingLLM): an endless conversation in bounded memory, which forgets. Together they
 * are at most the model's context. Layers with a smaller window of their own stay as they are.
 *
 * 'h2o' and 'snapkv' keep `budget` keys of each layer and KV head, by the attention they received: 'h2o' all along (heavy
 * hitters and the last `window`, default half the budget), 'snapkv' at the end of each prompt (what its last `window` queries,
 * default 32, look at; generated tokens stay). Keys keep their positions; layers with a window of their own stay as they are.
 * With these two, `capture`, save() and restore() are an UnsupportedError.
 */
export type Eviction =
  | { policy: 'none' }
  | { policy: 'sinks'; sinks?: number; window?: number }
  | { policy: 'h2o'; budget: number; window?: number }
  | { policy: 'snapkv'; budget: number; window?: number };

export interface LoadProgress {
  /**
   * 'module': the WebAssembly module is fetched and started. 'waiting': another tab is downloading the same file; what it stores
   * is then taken.
   */
  phase: 'module' | 'waiting' | 'header' | 'weights' | 'tokenizer' | 'ready';
  loadedBytes: number;
  /** Missing when the source does not tell its length. */
  totalBytes?: number;
}

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant' | 'tool' | (string & {});
  content: string;
}

export interface SamplingOptions {
  /** 0 is greedy. Default 0.8. */
  temperature?: number;
  /** 0 is off. Default 40. */
  topK?: number;
  /** (0, 1]. Default 0.95. */
  topP?: number;
  /** [0, 1). Default 0.05. */
  minP?: number;
  /** > 0; default 1 (off). */
  repetitionPenalty?: number;
  /** [-2, 2]; default 0. */
  frequencyPenalty?: number;
  /** [-2, 2]; default 0. */
  presencePenalty?: number;
  /** How many tokens back the penalties look; 0 is the whole history. Default 64. */
  penaltyLastN?: number;
  /** Integer in [0, 2^53). Same seed, same text. Default: random, and reported in the result. */
  seed?: number;
  /** Token id -> added to its logit. -Infinity bans it. */
  logitBias?: Readonly<Record<number, number>>;
}

export interface GenerateOptions extends SamplingOptions {
  /** Default: until the context is full. */
  maxTokens?: number;
  /** Generation ends before any of these strings; they are not part of the text. */
  stop?: string | readonly string[];
  /** Report the n most likely tokens of each position (0..20). */
  logprobs?: number;
  /** Go on past end-of-generation tokens (for measuring). Default false. */
  ignoreEndOfGeneration?: boolean;
  /** Look inside: the chunks bring what was captured of the prompt, then of each token. Default: nothing. */
  capture?: CaptureOptions;
  signal?: AbortSignal;
}

export interface ChatOptions extends GenerateOptions {
  /** Passed to the model's chat template. */
  tools?: readonly unknown[];
  /** When the conversation does not fit: throw ContextFullError (default) or drop the oldest turns whole. */
  onContextFull?: 'error' | 'drop-oldest';
}

export interface TokenLogprob {
  token: number;
  text: string;
  logprob: number;
}

export interface GenerateChunk {
  /** New text since the last chunk; never half a character, never part of a stop string. */
  text: string;
  /** Tokens sampled since the last chunk. */
  tokens: number[];
  /** One entry a token when `logprobs` was asked for. */
  logprobs?: { token: number; logprob: number; top: TokenLogprob[] }[];
  /**
   * When `capture` was asked for: first of the prompt's rows, then one a token, of the row that the token was sampled from
   * (the prompt's last row for the first token). An end-of-generation token brings its own too.
   */
  capture?: Captured[];
}

export type FinishReason = 'stop' | 'length' | 'aborted';

export interface GenerateResult {
  text: string;
  tokens: number[];
  finishReason: FinishReason;
  /** The stop string that ended it, if one did. */
  stopString?: string;
  seed: number;
  usage: {
    promptTokens: number;
    reusedTokens: number;
    completionTokens: number;
    /** As in EngineStats. */
    contextTokens: number;
    nCtx: number;
  };
  timings: Timings;
  /** How many of the oldest messages were left out ('drop-oldest'). */
  droppedMessages: number;
}

export interface Timings {
  prefillMs: number;
  prefillTokensPerSecond: number;
  decodeMs: number;
  decodeTokensPerSecond: number;
}

export interface PrefillProgress {
  doneTokens: number;
  totalTokens: number;
}

/** A generation under way: iterate it for chunks, or await result(). Dropping the iterator stops it. */
export interface Run extends AsyncIterable<GenerateChunk> {
  /** Rejects with the error of the run; an abort resolves with finishReason 'aborted' and the text so far. */
  result(): Promise<GenerateResult>;
  abort(): void;
  /** Called while the prompt is computed. */
  onPrefill(listener: (progress: PrefillProgress) => void): this;
}

export interface LayerInfo {
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

export interface ModelInfo {
  architecture: string;
  name: string;
  dModel: number;
  vocabSize: number;
  nCtxTrain: number;
  tiedHead: boolean;
  layers: LayerInfo[];
  parametersUsed: number;
  /** false: the file has none. Token ids can be used, texts cannot. */
  hasTokenizer: boolean;
  hasChatTemplate: boolean;
}

export interface RuntimeInfo {
  module: 'simd' | 'simd-threads' | 'relaxed' | 'relaxed-threads';
  threads: number;
  /** How 8-bit codes are multiplied: the probe's answer. */
  dotForm: 'wide' | 'unsigned' | 'signed' | 'split';
  crossOriginIsolated: boolean;
  /** Why this module and this many threads, in words. */
  reasons: string[];
}

export interface MemoryInfo {
  weightsBytes: number;
  kvCacheBytes: number;
  kvBytesPerToken: number;
  workspaceBytes: number;
  wasmBytes: number;
}

/** Where the files of a model came from. */
export interface DownloadInfo {
  fromNetworkBytes: number;
  fromStoreBytes: number;
  /** All of them are now in the browser's storage. */
  kept: boolean;
  /** Of each file; undefined where it was neither stored nor checked. */
  sha256: (string | undefined)[];
  /** What did not go as wished, in words. */
  notices: string[];
}

export interface EngineInfo {
  model: ModelInfo;
  /** Missing where no file came by URL. */
  download?: DownloadInfo;
  runtime: RuntimeInfo;
  memory: MemoryInfo;
  nCtx: number;
  loadMs: number;
}

export interface EngineStats {
  /**
   * Tokens of the conversation so far, prompts and answers: what truncate() counts. The last one sampled takes no room before
   * the next run, and with sinks the cache leaves rows behind: so it may be above nCtx.
   */
  contextTokens: number;
  nCtx: number;
  /** Of the whole engine, as it is now. */
  wasmBytes: number;
  last?: Timings;
  /** Where the last run's time went; absent before the first. */
  stages?: { promptTokens: number; prefill: StageTimes; decodeSteps: number; decode: StageTimes };
}

/**
 * Milliseconds by kind of work, all layers and tokens together. On a page that is not isolated clocks go in steps of 0.1 ms:
 * there only the sums over many tokens mean something.
 */
export interface StageTimes {
  /** Embedding rows of the tokens. */
  embeddingMs: number;
  /** Norms and residual sums. */
  normsMs: number;
  /** Q, K, V and output projections. */
  projectionsMs: number;
  /** Rotary positions, and writing keys and values into the cache. */
  positionsMs: number;
  /** Scores, softmax, blend. */
  attentionMs: number;
  /** Matrix products of the feed-forward. */
  feedForwardMs: number;
  /** SwiGLU. */
  activationMs: number;
  /** The output head. */
  headMs: number;
  /** From logits to a token. */
  samplingMs: number;
}

export interface ForwardOptions {
  logits?: 'last' | 'all';
  /** Look inside. Default: nothing is captured. */
  capture?: CaptureOptions;
  signal?: AbortSignal;
}
export interface ForwardTrace {
  vocabSize: number;
  /** [vocabSize] or [nTokens, vocabSize]. */
  logits: Float32Array;
  nRows: number;
  /** Where `capture` was asked for. */
  capture?: Captured;
}

export interface TokenizeOptions {
  /** Add BOS/EOS as the model asks for. Default false. */
  addSpecial?: boolean;
  /** Read control tokens such as <|im_end|> in the text as such. Default false. */
  parseSpecial?: boolean;
}

/** One file in the browser's storage; see modelStore. */
export interface StoredModel {
  url: string;
  /** false: a part, which the next load goes on with. */
  isWhole: boolean;
  bytes: number;
  /** Missing while unknown. */
  totalBytes?: number;
  /** Of a whole file. */
  sha256?: string;
  /** Milliseconds since 1970. */
  savedAt: number;
}

export interface StorageUse {
  modelsBytes: number;
  /** What the browser would still give to this site; missing where it does not tell. */
  freeBytes?: number;
  /** The browser has promised not to clear it by itself. */
  isPersistent: boolean;
}

/** What `info` of a file can tell before its weights are loaded. */
export interface ModelPlan {
  model: Omit<ModelInfo, 'hasTokenizer' | 'hasChatTemplate'>;
  /** Of all the model's files together. */
  fileBytes: number;
  nCtx: number;
  weightsBytes: number;
  kvCacheBytes: number;
  kvBytesPerToken: number;
  workspaceBytes: number;
}

/** What to measure limits with; see measureLimits(). */
export interface LimitsOptions {
  /** Bytes that are read over and over: far more than the caches hold. Default 128e6; they are allocated for it. */
  readBytes?: number;
  /** Time to spend, in milliseconds. Default 300. */
  budgetMs?: number;
  module?: 'auto' | 'simd' | 'relaxed';
  threads?: number;
  signal?: AbortSignal;
}
/** What this machine allows in the module that runs; every speed can be seen as a share of these. */
export interface SpeedLimits {
  /** Streaming reads, 1e9 bytes a second. */
  readGBs: number;
  /** The integer dot that the module's kernels use, 1e9 operations a second (a multiply-add is two). */
  dotGops: number;
  /** f32 multiply-adds, 1e9 operations a second. */
  fmaGflops: number;
}
