// A loaded model in the worker: its sessions, each with a queue of its own, and its text tools. Sessions come into being
// with the first request that names them.
import type { HeadlightModule, Model, Session } from '../../../../wasm/headlight.js';
import { AbortedError, asHeadlightError, BadOptionError, OutOfMemoryError } from '../errors.js';
import type { LoadedModel, SessionOptionsWire } from '../protocol.js';
import type { EngineStats, Timings } from '../types.js';
import { DropMemory } from './chat_prompt.js';
import { SerialQueue } from './queue.js';
import type { TextTools } from './text_tools.js';
import { unwrap } from './unwrap.js';

export class SessionHost {
  readonly wasm: Session;
  readonly nCtx: number;
  readonly queue = new SerialQueue();
  drops = new DropMemory();
  /** Of every request on the session, under way or waiting. */
  readonly aborts = new Set<AbortController>();
  lastTimings: Timings | undefined;

  constructor(wasm: Session) {
    this.wasm = wasm;
    this.nCtx = wasm.plan().nCtx;
  }

  contextTokens(): number {
    return this.wasm.history().length;
  }

  stats(): Omit<EngineStats, 'wasmBytes'> {
    const run = this.wasm.stats();
    const stages = {
      promptTokens: run.nPrompt - run.nPromptReused,
      prefill: run.prefillStages,
      decodeSteps: run.nDecodeSteps,
      decode: run.decodeStages,
    };
    return {
      contextTokens: this.contextTokens(),
      nCtx: this.nCtx,
      ...(run.nPrompt === 0 ? {} : { stages }),
      ...(this.lastTimings === undefined ? {} : { last: this.lastTimings }),
    };
  }
}

const DEFAULT_SESSION = 0;

export class ModelHost {
  readonly module: HeadlightModule;
  readonly text: TextTools;
  readonly model: Model;
  readonly options: SessionOptionsWire;
  readonly #sessions = new Map<number, SessionHost>();

  /** Makes the default session, so that what it takes is taken while loading. Throws OutOfMemoryError. */
  constructor(module: HeadlightModule, model: Model, text: TextTools, options: SessionOptionsWire) {
    this.module = module;
    this.text = text;
    this.model = model;
    this.options = options;
    this.session(DEFAULT_SESSION);
  }

  /** Of every session. */
  get nCtx(): number {
    return this.session(DEFAULT_SESSION).nCtx;
  }

  session(id: number): SessionHost {
    let session = this.#sessions.get(id);
    if (session === undefined) {
      session = new SessionHost(this.#create());
      this.#sessions.set(id, session);
    }
    return session;
  }

  #create(): Session {
    try {
      return unwrap(this.model.createSession(this.options));
    } catch (thrown) {
      const error = asHeadlightError(thrown);
      const plan = this.#sessions.get(DEFAULT_SESSION)?.wasm.plan();
      if (error.code !== 'OutOfMemory' || plan === undefined) throw error;
      const neededBytes = plan.kvCacheBytes + plan.workspaceBytes;
      const hadBytes = this.module.wasmBytes();
      throw new OutOfMemoryError(
        `One more session of ${plan.nCtx} tokens needs ${mib(neededBytes)} beside the ${mib(hadBytes)} that are in use, ` +
          'which the device does not give. Close another session, or load with a smaller nCtx or ' +
          "kvCache: {k: 'int8', v: 'int8'}.",
        { neededBytes, hadBytes },
        { cause: error },
      );
    }
  }

  /** Makes session `to` when the earlier requests of session `id` are done. */
  fork(id: number, to: number, abort: AbortController): Promise<null> {
    const copy = async (from: SessionHost) => {
      const session = this.session(to);
      try {
        unwrap(session.wasm.copyFrom(from.wasm));
        session.drops = from.drops.copy();
      } catch (error) {
        await this.close(to);
        throw error;
      }
      return null;
    };
    return this.inTurn(id, abort, copy, aborted);
  }

  /** A session that comes into being for it does not stay when that fails. */
  async restore(id: number, bytes: Uint8Array, abort: AbortController): Promise<null> {
    const isNew = !this.#sessions.has(id);
    const read = async ({ wasm }: SessionHost) => unwrap(wasm.restore(bytes));
    try {
      return await this.inTurn(id, abort, read, aborted);
    } catch (error) {
      if (isNew) await this.close(id);
      throw error;
    }
  }

  /** A session that was made elsewhere, under a number of its own. */
  adopt(id: number, wasm: Session): void {
    this.#sessions.set(id, new SessionHost(wasm));
  }

  /** Runs `task` when the session's earlier requests are done. Closing the session aborts it. */
  async inTurn<T>(
    id: number,
    abort: AbortController,
    task: (session: SessionHost) => Promise<T>,
    left: () => T,
  ): Promise<T> {
    const session = this.session(id);
    session.aborts.add(abort);
    try {
      return await session.queue.run(() => task(session), abort.signal, left);
    } finally {
      session.aborts.delete(abort);
    }
  }

  async close(id: number): Promise<void> {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    this.#sessions.delete(id);
    for (const abort of session.aborts) abort.abort();
    const deleteIt = async () => session.wasm.delete();
    await session.queue.run(deleteIt, new AbortController().signal, () => {});
  }

  loaded(): LoadedModel {
    const { weightsBytes, ...model } = this.model.info();
    const plan = this.session(DEFAULT_SESSION).wasm.plan();
    return {
      model: {
        ...model,
        hasTokenizer: this.text.hasTokenizer,
        hasChatTemplate: this.text.hasChatTemplate,
      },
      memory: {
        weightsBytes,
        kvCacheBytes: plan.kvCacheBytes,
        kvBytesPerToken: plan.kvBytesPerToken,
        workspaceBytes: plan.workspaceBytes,
        wasmBytes: this.module.wasmBytes(),
      },
      nCtx: plan.nCtx,
    };
  }

  checkTokens(tokens: Uint32Array): Uint32Array {
    if (tokens.length === 0)
      throw new BadOptionError('The prompt is empty: there is no token to continue');
    return tokens;
  }
}

function mib(bytes: number): string {
  return `${Math.ceil(bytes / 2 ** 20)} MiB`;
}

export function aborted(): never {
  throw new AbortedError();
}
