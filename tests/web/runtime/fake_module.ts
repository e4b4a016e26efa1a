// A HeadlightModule without WASM, for tests of the protocol: its loader takes files of a fixed form, its sessions "sample"
// the tokens that the test has written down, one a call of advance().
import type {
  AdvanceResultWire,
  GenerateOptionsWire,
  HeadlightModule,
  Loader,
  LoaderState,
  Model,
  ModelInfoWire,
  Result,
  Runtime,
  Session,
  SessionOptionsWire,
} from '../../../wasm/headlight.js';

const N_BYTE_TOKENS = 256;
const FIRST_BYTE_TOKEN = 3;
/** <unk>, <s>, </s>, a token for each byte, and a few words. */
const WORDS = ['▁one', '▁two', '▁three', '▁stop', '<|im_start|>', '<|im_end|>'];
export const PIECES = [
  '<unk>',
  '<s>',
  '</s>',
  ...Array.from(
    { length: N_BYTE_TOKENS },
    (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`,
  ),
  ...WORDS,
];
export const EOS = 2;
export const byteToken = (byte: number): number => FIRST_BYTE_TOKEN + byte;
export const textTokens = (text: string): number[] =>
  [...new TextEncoder().encode(text)].map(byteToken);
export const wordToken = (word: string): number => PIECES.indexOf(word);

const NORMAL = 1;
const UNKNOWN = 2;
const CONTROL = 3;
const BYTE = 6;
const types = PIECES.map((piece, i) => {
  if (i === 0) return UNKNOWN;
  if (i < FIRST_BYTE_TOKEN || piece.startsWith('<|')) return CONTROL;
  return i < FIRST_BYTE_TOKEN + N_BYTE_TOKENS ? BYTE : NORMAL;
});

/** What a test says about the fake. */
export interface FakeScript {
  /** Header and whole length of the file that the loader takes. */
  headerBytes: number;
  fileBytes: number;
  nShards: number;
  /** Sampled by every run, then EOS. */
  tokens: number[];
  nCtx: number;
  relaxedOk: boolean;
  /** Errors to give instead of values, by method name. */
  errors: Record<string, Result<never>['error']>;
  /** Called at each advance(): may throw. */
  onAdvance(session: FakeSession): void;
  weightsBytes: number;
  /** Keys of the file to change; undefined removes one. */
  metadata: Record<string, string | number | boolean | undefined>;
}

export function script(changes: Partial<FakeScript> = {}): FakeScript {
  return {
    headerBytes: 40,
    fileBytes: 100,
    nShards: 1,
    tokens: textTokens('Hello'),
    nCtx: 64,
    relaxedOk: true,
    errors: {},
    onAdvance() {},
    weightsBytes: 1000,
    metadata: {},
    ...changes,
  };
}

/** What the tests look at afterwards. */
export interface FakeLog {
  deleted: string[];
  reserved: number[];
  begun: number[][];
  options: GenerateOptionsWire[];
}

const STAGE_BYTES = 32;

const STAGES = {
  embeddingMs: 0.1,
  normsMs: 0.1,
  projectionsMs: 0.1,
  positionsMs: 0.1,
  attentionMs: 0.1,
  feedForwardMs: 0.1,
  activationMs: 0.1,
  headMs: 0.1,
  samplingMs: 0.1,
};

export class FakeModule implements HeadlightModule {
  HEAPU8 = new Uint8Array(1024);
  readonly log: FakeLog = { deleted: [], reserved: [], begun: [], options: [] };
  readonly script: FakeScript;
  constructor(fakeScript: FakeScript) {
    this.script = fakeScript;
  }

  probe() {
    return {
      dotForm: 'wide',
      relaxedBuild: false,
      relaxedOk: this.script.relaxedOk,
      threadsBuild: false,
    } as const;
  }
  wasmBytes(): number {
    return this.HEAPU8.byteLength;
  }
  createRuntime(nThreads: number): Result<Runtime> {
    return this.give('createRuntime', {
      createLoader: () => this.give<Loader>('createLoader', new FakeLoader(this)),
      nThreads: () => nThreads,
      delete: () => {},
    });
  }
  reserve(nBytes: number): Result<null> {
    this.log.reserved.push(nBytes);
    // Growth ends the views that were taken before.
    this.HEAPU8 = new Uint8Array(this.HEAPU8.byteLength);
    return this.give('reserve', null);
  }
  measureLimits(): Result<never> {
    throw new Error('not part of these tests');
  }
  rope = this.measureLimits;
  sinusoids = this.measureLimits;
  alibiSlopes = this.measureLimits;
  attend(): Result<{
    out: Float32Array;
    kvCacheBytes: number;
    milliseconds: number;
    kernel: string;
  }> {
    return this.give('attend', {
      out: Float32Array.of(1, 2),
      kvCacheBytes: 64,
      milliseconds: 1,
      kernel: 'decode',
    });
  }

  give<T>(method: string, value: T): Result<T> {
    const error = this.script.errors[method];
    return error === undefined ? { value } : { error };
  }
}

class FakeLoader implements Loader {
  readonly #module: FakeModule;
  #state: LoaderState = 'header';
  #seen = 0;
  #shard = 0;
  constructor(module: FakeModule) {
    this.#module = module;
  }
  stage(): number {
    return 64;
  }
  stageBytes(): number {
    return STAGE_BYTES;
  }
  append(n: number): Result<{ taken: number; state: LoaderState }> {
    const { headerBytes, fileBytes } = this.#module.script;
    const end = this.#state === 'header' ? headerBytes : fileBytes;
    const taken = Math.min(n, end - this.#seen);
    this.#seen += taken;
    if (this.#seen === headerBytes) this.#state = 'planned';
    if (this.#seen === fileBytes) this.#state = 'shardDone';
    return this.#module.give('append', { taken, state: this.#state });
  }
  state(): LoaderState {
    return this.#state;
  }
  shardBytes(): number {
    return this.#module.script.fileBytes;
  }
  modelInfo(): Result<ModelInfoWire> {
    return this.#module.give('modelInfo', modelInfo(this.#module.script));
  }
  planSession(options: SessionOptionsWire) {
    return this.#module.give('planSession', plan(this.#module.script, options));
  }
  metadata(): Result<Record<string, string | number | boolean>> {
    const keys = {
      'tokenizer.ggml.model': 'llama',
      'tokenizer.ggml.bos_token_id': 1,
      'tokenizer.ggml.eos_token_id': EOS,
      'tokenizer.ggml.unknown_token_id': 0,
      'tokenizer.ggml.add_bos_token': true,
      'tokenizer.ggml.add_space_prefix': false,
      ...this.#module.script.metadata,
    };
    const there = Object.entries(keys).filter(([, value]) => value !== undefined);
    return { value: Object.fromEntries(there) as Record<string, string | number | boolean> };
  }
  strings(key: string): Result<{ bytes: Uint8Array; offsets: Uint32Array } | null> {
    if (key !== 'tokenizer.ggml.tokens') return { value: null };
    const encoded = PIECES.map((piece) => new TextEncoder().encode(piece));
    const offsets = new Uint32Array(PIECES.length + 1);
    encoded.forEach((bytes, i) => {
      offsets[i + 1] = (offsets[i] ?? 0) + bytes.length;
    });
    return { value: { bytes: Uint8Array.from(encoded.flatMap((bytes) => [...bytes])), offsets } };
  }
  numbers(key: string): Result<Float32Array | Int32Array | null> {
    if (key === 'tokenizer.ggml.scores') return { value: Float32Array.from(PIECES, () => 0) };
    if (key === 'tokenizer.ggml.token_type') return { value: Int32Array.from(types) };
    return { value: null };
  }
  dropMetadata(): void {}
  allocate(): Result<null> {
    this.#state = 'data';
    return this.#module.give('allocate', null);
  }
  skipData(): Result<null> {
    this.#state = 'shardDone';
    return this.#module.give('skipData', null);
  }
  shardCount(): number {
    return this.#module.script.nShards;
  }
  beginShard(): Result<null> {
    this.#shard += 1;
    this.#seen = 0;
    this.#state = 'header';
    return this.#module.give('beginShard', null);
  }
  finish(): Result<Model> {
    const module = this.#module;
    return module.give('finish', {
      info: () => modelInfo(module.script),
      createSession: (options: SessionOptionsWire) =>
        module.give<Session>('createSession', new FakeSession(module, options)),
      delete: () => module.log.deleted.push('model'),
      ...NO_LAB,
    });
  }
  delete(): void {
    this.#module.log.deleted.push('loader');
  }
}

function modelInfo(fake: FakeScript): ModelInfoWire {
  return {
    architecture: 'fake',
    name: 'Fake',
    dModel: 8,
    vocabSize: PIECES.length,
    nCtxTrain: fake.nCtx,
    tiedHead: true,
    layers: [],
    weightsBytes: fake.weightsBytes,
    parametersUsed: 10,
  };
}

function plan(fake: FakeScript, options: SessionOptionsWire) {
  return {
    nCtx: options.nCtx || fake.nCtx,
    kvCacheBytes: 200,
    kvBytesPerToken: 4,
    workspaceBytes: 300,
  };
}

/** The lab is tested with the real module. */
function noLab(): never {
  throw new Error('the fake module has no lab');
}
const NO_LAB = {
  ...{ edit: noLab, attentionTensor: noLab, singularValues: noLab },
  ...{ createCalibration: noLab, traceBlock: noLab },
};

export class FakeSession implements Session {
  readonly beginScores = noLab;
  readonly advanceScores = noLab;
  readonly module: FakeModule;
  readonly #options: SessionOptionsWire;
  #history: number[] = [];
  #left: number[] = [];
  #maxTokens = 0;
  #nPrompt = 0;
  #nForwardRows = 0;
  #generated = 0;
  #running = false;
  constructor(module: FakeModule, options: SessionOptionsWire) {
    this.module = module;
    this.#options = options;
  }
  begin(tokens: Uint32Array, options: GenerateOptionsWire): Result<null> {
    this.module.log.begun.push([...tokens]);
    this.module.log.options.push(options);
    this.#history = [...tokens];
    this.#nPrompt = tokens.length;
    this.#left = [...this.module.script.tokens];
    this.#maxTokens = options.maxTokens;
    this.#generated = 0;
    this.#running = true;
    return this.module.give('begin', null);
  }
  advance(): Result<AdvanceResultWire> {
    if (!this.#running) throw new Error('advance() without a run');
    this.module.script.onAdvance(this);
    const error = this.module.script.errors.advance;
    if (error !== undefined) return { error };
    const done = (finish: AdvanceResultWire['finish']) => {
      this.#running = false;
      return { value: { ...this.#progress(), done: true, finish, tokens: [], captures: [] } };
    };
    const id = this.#left.shift();
    if (id === undefined) return done('stop');
    this.#history.push(id);
    this.#generated += 1;
    const isLast = this.#generated === this.#maxTokens;
    if (isLast) this.#running = false;
    const tokens = [{ id, logprob: -0.5, top: [{ id, logprob: -0.5 }] }];
    return {
      value: {
        ...this.#progress(),
        done: isLast,
        finish: isLast ? 'length' : 'none',
        tokens,
        captures: [],
      },
    };
  }
  #progress() {
    return { nPromptDone: this.#nPrompt, nPrompt: this.#nPrompt };
  }
  cancel(): void {
    this.#running = false;
  }
  truncate(nTokens: number): Result<null> {
    this.#history.length = nTokens;
    return this.module.give('truncate', null);
  }
  copyFrom(other: FakeSession): Result<null> {
    this.#history = [...other.#history];
    return this.module.give('copyFrom', null);
  }
  save(): Result<Uint8Array> {
    return this.module.give('save', Uint8Array.from(this.#history));
  }
  restore(bytes: Uint8Array): Result<null> {
    this.#history = [...bytes];
    return this.module.give('restore', null);
  }
  beginForward(tokens: Uint32Array, allPositions: boolean): Result<null> {
    this.#nForwardRows = allPositions ? tokens.length : 1;
    return this.module.give('forward', null);
  }
  advanceForward(): Result<{ logits: Float32Array; capture: null }> {
    const logits = new Float32Array(this.#nForwardRows * PIECES.length);
    return { value: { logits, capture: null } };
  }
  history(): Uint32Array {
    return Uint32Array.from(this.#history);
  }
  stats() {
    return {
      nPrompt: this.#nPrompt,
      nPromptReused: 0,
      nGenerated: this.#generated,
      nDecodeSteps: Math.max(0, this.#generated - 1),
      prefillMs: 1,
      decodeMs: 2,
      prefillStages: STAGES,
      decodeStages: STAGES,
    };
  }
  plan() {
    return plan(this.module.script, this.#options);
  }
  delete(): void {
    this.module.log.deleted.push('session');
  }
}
