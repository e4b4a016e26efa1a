// The worker's side of the protocol: takes requests, gives answers and events, keeps the order per session. What a request
// does is in the files beside this one.
import { asHeadlightError, InternalError, toWire } from '../errors.js';
import type {
  DownloadOptionsWire,
  FromWorker,
  Note,
  Replies,
  Requests,
  RequestType,
  ToWorker,
} from '../protocol.js';
import { DEFAULT_RETRIES } from '../store/transfer.js';
import type { WorkerEnvironment } from './environment.js';
import { computeForward } from './forward.js';
import { generate, neverStarted, type RunContext } from './generation.js';
import { LabHost } from './lab_host.js';
import { inspectModel, type LoadContext, loadModel } from './load_model.js';
import { aborted, ModelHost, type SessionHost } from './model_host.js';
import { preflight } from './preflight.js';
import { type RunningModule, startModule } from './start_module.js';
import { tokenText } from './token_text.js';
import { unwrap } from './unwrap.js';

/** A request under way. */
interface Job {
  id: number;
  /** Fires when the note 'cancel' has come, or when the session is closed. */
  abort: AbortController;
  /** Takes the next note 'bytes'. */
  takeBytes: ((bytes: Uint8Array) => void) | undefined;
}

/** A header is small, and its download is left once it is there. A model that is stored needs no network. */
const HEADER_ONLY: DownloadOptionsWire = {
  store: 'read',
  sha256: [],
  retries: DEFAULT_RETRIES,
  revalidate: false,
};

type Serve = { [K in RequestType]: (body: Requests[K], job: Job) => Promise<Replies[K]> };

export class WorkerHost {
  readonly #env: WorkerEnvironment;
  readonly #jobs = new Map<number, Job>();
  readonly #serve: Serve;
  #running: RunningModule | undefined;
  #model: ModelHost | undefined;
  #lab: LabHost | undefined;

  constructor(env: WorkerEnvironment) {
    this.#env = env;
    this.#serve = {
      start: (body, job) => this.#start(body, job),
      load: (body, job) => this.#load(body, job),
      inspect: (body, job) =>
        inspectModel(this.#loadContext(job, HEADER_ONLY), body.sources, body.session),
      preflight: (body, job) =>
        preflight(this.#loadContext(job, HEADER_ONLY), body.sources, body.session),
      generate: (body, job) => this.#generate(body, job),
      truncate: (body, job) => this.#truncate(body, job),
      fork: ({ session, to }, job) => this.#loaded().fork(session, to, job.abort),
      save: ({ session }, job) => {
        const save = async ({ wasm }: SessionHost) => unwrap(wasm.save());
        return this.#loaded().inTurn(session, job.abort, save, aborted);
      },
      restore: ({ session, bytes }, job) => this.#loaded().restore(session, bytes, job.abort),
      forward: (body, job) => this.#forward(body, job),
      closeSession: async ({ session }) => {
        await this.#loaded().close(session);
        return null;
      },
      tokenize: async ({ text, addSpecial, parseSpecial }) =>
        Array.from(this.#loaded().text.tokenizer.encode(text, { addSpecial, parseSpecial })),
      detokenize: async ({ tokens }) => this.#loaded().text.tokenizer.decode(tokens),
      tokenTexts: async ({ tokens }) => {
        const { tokenizer } = this.#loaded().text;
        return Array.from(tokens, (id) => tokenText(tokenizer, id));
      },
      stats: async ({ session }) => {
        const model = this.#loaded();
        return { ...model.session(session).stats(), wasmBytes: model.module.wasmBytes() };
      },
      attend: async ({ spec, q, k, v }) => {
        const { module, runtime } = this.#started();
        return unwrap(module.attend(runtime, spec, q, k, v));
      },
      limits: async ({ readBytes, budgetMs }) => {
        const { module, runtime } = this.#started();
        return unwrap(module.measureLimits(runtime, readBytes, budgetMs));
      },
      rope: async ({ options, rows, positions }) =>
        unwrap(this.#started().module.rope(options, rows, positions)),
      sinusoids: async ({ rows, positions }) =>
        unwrap(this.#started().module.sinusoids(rows, positions)),
      alibiSlopes: async ({ nHeads }) => unwrap(this.#started().module.alibiSlopes(nHeads)),
      lab: (call, job) => {
        this.#lab ??= new LabHost(this.#loaded());
        return this.#lab.call(call, {
          signal: job.abort.signal,
          nextTurn: () => this.#env.nextTurn(),
          onProgress: (progress) => this.#env.post({ type: 'lab', id: job.id, progress }),
        });
      },
    };
  }

  receive(message: ToWorker): void {
    if (message.type === 'cancel' || message.type === 'bytes') this.#note(message);
    else void this.#answer(message);
  }

  #note(note: Note): void {
    const job = this.#jobs.get(note.id);
    if (note.type === 'bytes') {
      job?.takeBytes?.(note.bytes);
      return;
    }
    job?.abort.abort();
  }

  async #answer<K extends RequestType>({
    type,
    id,
    body,
  }: {
    type: K;
    id: number;
    body: Requests[K];
  }): Promise<void> {
    const job: Job = {
      id,
      abort: new AbortController(),
      takeBytes: undefined,
    };
    this.#jobs.set(id, job);
    try {
      const value = await this.#serve[type](body, job);
      this.#env.post({ type: 'done', id, value } as FromWorker, buffersOf(value));
    } catch (error) {
      if (isTrap(error)) this.#die(error);
      else this.#env.post({ type: 'failed', id, error: toWire(error) });
    } finally {
      this.#jobs.delete(id);
    }
  }

  /** After a trap or an abort the module's memory is in no known state: nothing can be answered any more. */
  #die(cause: unknown): void {
    const why = `The WebAssembly module has failed: ${asHeadlightError(cause).message}`;
    this.#env.post({ type: 'fatal', why });
  }

  async #start(body: Requests['start'], job: Job): Promise<Replies['start']> {
    this.#running = await startModule(this.#env, body, {
      onStep: (step) => this.#env.post({ type: 'starting', id: job.id, step }),
      // Before it stands the start itself fails, and knows more.
      onAbort: (what) => this.#running && this.#die(what),
    });
    return this.#running.started;
  }

  async #load(body: Requests['load'], job: Job): Promise<Replies['load']> {
    const context = this.#loadContext(job, body.download);
    const { model, text, loadedBytes, download } = await loadModel(
      context,
      body.sources,
      body.session,
    );
    try {
      this.#model = new ModelHost(context.module, model, text, body.session);
    } catch (error) {
      model.delete();
      throw error;
    }
    context.onProgress({ phase: 'ready', loadedBytes, totalBytes: loadedBytes });
    return { ...this.#model.loaded(), ...(download === undefined ? {} : { download }) };
  }

  async #generate(body: Requests['generate'], job: Job): Promise<Replies['generate']> {
    const model = this.#loaded();
    const left = () => neverStarted(model.nCtx, body.options.seed);
    if (body.aborted) return left();
    const run = (session: SessionHost) => generate(model, session, body, this.#runContext(job));
    return model.inTurn(body.session, job.abort, run, left);
  }

  async #truncate(body: Requests['truncate'], job: Job): Promise<null> {
    const truncate = async ({ wasm }: SessionHost) => unwrap(wasm.truncate(body.nTokens));
    return this.#loaded().inTurn(body.session, job.abort, truncate, aborted);
  }

  #forward(body: Requests['forward'], job: Job): Promise<Replies['forward']> {
    const model = this.#loaded();
    return model.inTurn(
      body.session,
      job.abort,
      async ({ wasm }) => {
        const { tokens, allPositions } = body;
        const call = { tokens, allPositions, capture: body.capture ?? null };
        const { logits, capture } = await computeForward(wasm, call, this.#runContext(job));
        const nRows = allPositions ? tokens.length : 1;
        const trace = { vocabSize: logits.length / nRows, logits, nRows };
        return capture === null ? trace : { ...trace, capture };
      },
      aborted,
    );
  }

  #loadContext(job: Job, download: DownloadOptionsWire): LoadContext {
    const { module, runtime } = this.#started();
    const { id } = job;
    return {
      env: this.#env,
      module,
      runtime,
      signal: job.abort.signal,
      download,
      onProgress: (progress) => this.#env.post({ type: 'progress', id, progress }),
      wantBytes: (source, start, end) =>
        new Promise((resolve) => {
          job.takeBytes = resolve;
          this.#env.post({ type: 'wantBytes', id, source, start, end });
        }),
    };
  }

  #runContext(job: Job): RunContext {
    return {
      id: job.id,
      signal: job.abort.signal,
      emit: (event) =>
        this.#env.post(event, event.type === 'chunk' ? buffersOf(event.chunk.capture) : []),
      nextTurn: () => this.#env.nextTurn(),
    };
  }

  #started(): RunningModule {
    if (this.#running === undefined)
      throw new InternalError('The worker was asked to work before it was started');
    return this.#running;
  }

  #loaded(): ModelHost {
    if (this.#model === undefined)
      throw new InternalError('The worker was asked for a model before it was loaded');
    return this.#model;
  }
}

function isTrap(error: unknown): boolean {
  return error instanceof WebAssembly.RuntimeError;
}

/** Large arrays are moved, not copied; those of what was captured lie deeper. */
function buffersOf(value: unknown): ArrayBuffer[] {
  if (value instanceof Uint8Array) return value.buffer instanceof ArrayBuffer ? [value.buffer] : [];
  if (typeof value !== 'object' || value === null) return [];
  if (value instanceof Float32Array)
    return value.buffer instanceof ArrayBuffer ? [value.buffer] : [];
  if (ArrayBuffer.isView(value)) return [];
  return Object.values(value).flatMap(buffersOf);
}
