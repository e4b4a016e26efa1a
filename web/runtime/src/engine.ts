// The engine and its sessions as users hold them. Calls are checked here and become requests to the worker; the worker
// puts them into order. Nothing here computes.
import { abortable } from './abortable.js';
import { captureWire } from './capture.js';
import type { Connection } from './connection.js';
import { AbortedError, BadOptionError, WorkerLostError } from './errors.js';
import type { Load, LoadedOn } from './launch.js';
import {
  abortSignal,
  boolean,
  checkChatOptions,
  checkGenerateOptions,
  checkLoadOptions,
  checkMessages,
  checkOptions,
  checkText,
  checkTokens,
  elsewhere,
  generateOptionsWire,
  integer,
  MAX_UINT32,
  oneOf,
  type Rules,
} from './options.js';
import type { PromptWire, Replies, Requests, RequestType } from './protocol.js';
import { RunHandle } from './run.js';
import type {
  ChatMessage,
  ChatOptions,
  EngineInfo,
  EngineStats,
  ForwardOptions,
  ForwardTrace,
  GenerateOptions,
  LoadOptions,
  Run,
  TokenizeOptions,
} from './types.js';

const FORWARD_RULES: Rules<ForwardOptions> = {
  logits: oneOf('last', 'all'),
  capture: elsewhere,
  signal: abortSignal,
};
const TOKENIZE_RULES: Rules<TokenizeOptions> = { addSpecial: boolean, parseSpecial: boolean };

/** Token ids in whatever array the caller has. */
export type TokenIds = readonly number[] | Uint32Array | Int32Array;

/**
 * A conversation with a KV cache of its own over the engine's weights. Its memory is taken with the first call and given
 * back by close(). Calls on one session run in the order in which they were made; those of several sessions take turns.
 */
export class EngineSession {
  readonly #link: EngineLink;
  readonly #session: number;
  #closed = false;

  /** @internal Made by engine.session(). */
  constructor(link: EngineLink, session: number) {
    this.#link = link;
    this.#session = session;
  }

  /**
   * Answers a conversation with the model's chat template. What the session has already computed of it is not computed
   * again, so pass the whole conversation each time. Room for an answer is kept by 'drop-oldest': maxTokens or 256 tokens,
   * at most a quarter of the context.
   * Throws BadOptionError at once; the run fails with ContextFullError, UnsupportedError (template), OutOfMemoryError.
   */
  chat(messages: readonly ChatMessage[], options: ChatOptions = {}): Run {
    checkMessages('chat', messages);
    checkChatOptions('chat', options);
    const prompt: PromptWire = {
      kind: 'chat',
      messages,
      tools: options.tools,
      onContextFull: options.onContextFull ?? 'error',
    };
    return this.#generate('chat', prompt, options);
  }

  /**
   * Continues a text or a sequence of tokens. A text gets BOS and leading space as the model's file says, and control
   * tokens written in it are read as plain text; for a prompt with control tokens pass
   * `await engine.tokenize(text, { parseSpecial: true })`.
   */
  complete(prompt: string | TokenIds, options: GenerateOptions = {}): Run {
    checkGenerateOptions('complete', options);
    return this.#generate('complete', this.#prompt(prompt), options);
  }

  /** Forgets all but the first nTokens tokens of the session's history. */
  async truncate(nTokens: number): Promise<void> {
    const rule = integer(0, MAX_UINT32);
    if (!rule.accepts(nTokens))
      throw new BadOptionError(`truncate: nTokens must be ${rule.range}, got ${nTokens}`);
    await this.#request('truncate', { session: this.#session, nTokens });
  }

  /**
   * A session that goes on from here by itself, when the calls before have ended. It takes the memory of a session
   * (info.memory: kvCacheBytes and workspaceBytes) and copies kvBytesPerToken for each token so far; nothing is shared but
   * the weights. Rejects with OutOfMemoryError.
   */
  async fork(): Promise<EngineSession> {
    const to = this.#link.nextSession++;
    await this.#request('fork', { session: this.#session, to });
    return new EngineSession(this.#link, to);
  }

  /**
   * Tokens and cache as bytes, for engine.restore(): about kvBytesPerToken for each token so far. They hold the conversation
   * in clear. Rejects with UnsupportedError under the evictions 'h2o' and 'snapkv'.
   */
  save(): Promise<Uint8Array> {
    return this.#request('save', { session: this.#session });
  }

  /** Ends the session's runs and gives its memory back to the engine. Nothing to do where the engine has no worker. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const { connection } = this.#link;
    try {
      await connection.request('closeSession', { session: this.#session });
    } catch (error) {
      // A worker that has ended has given all memory back.
      if (connection.closedBy === undefined) throw error;
    }
  }

  stats(): Promise<EngineStats> {
    return this.#request('stats', { session: this.#session });
  }

  #prompt(prompt: string | TokenIds): PromptWire {
    if (typeof prompt === 'string') return { kind: 'text', text: prompt };
    const tokens = checkTokens('complete', prompt, this.#link.info.model.vocabSize);
    if (tokens.length === 0) throw new BadOptionError('complete: there are no tokens to continue');
    return { kind: 'tokens', tokens };
  }

  #generate(where: string, prompt: PromptWire, options: GenerateOptions): Run {
    this.#checkOpen();
    const { vocabSize, layers } = this.#link.info.model;
    const capture = captureWire(where, options.capture, layers.length);
    const wire = {
      ...generateOptionsWire(where, options, vocabSize),
      ...(capture === undefined ? {} : { capture }),
    };
    const aborted = options.signal?.aborted === true;
    const body = { session: this.#session, prompt, options: wire, aborted };
    return new RunHandle(this.#link.connection, body, options.signal);
  }

  async #request<K extends RequestType>(type: K, body: Requests[K]): Promise<Replies[K]> {
    this.#checkOpen();
    return this.#link.connection.request(type, body);
  }

  #checkOpen(): void {
    if (this.#link.connection.closedBy !== undefined) throw this.#link.connection.closedBy;
    if (this.#closed)
      throw new BadOptionError('This session was closed. engine.session() makes a new one.');
  }
}

const DEFAULT_SESSION = 0;

/** What an engine and its sessions share: restart() puts another worker there. */
interface EngineLink {
  connection: Connection;
  info: EngineInfo;
  nextSession: number;
}

/** What `Engine.load` gives; see index.ts and node.ts for the loading itself. */
export class LoadedEngine {
  readonly #link: EngineLink;
  readonly #default: EngineSession;
  #again: LoadedOn['again'];
  #restarting: Promise<void> | undefined;
  /** Ends the restart that is under way. */
  #ending: AbortController | undefined;
  #disposed = false;

  /** @internal Made by Engine.load(). */
  constructor({ connection, info, again }: LoadedOn) {
    this.#link = { connection, info, nextSession: DEFAULT_SESSION + 1 };
    this.#again = again;
    this.#default = new EngineSession(this.#link, DEFAULT_SESSION);
  }

  /** What was loaded, what runs it and why, and the memory it takes. */
  get info(): EngineInfo {
    return this.#link.info;
  }

  /** The default session's chat; see EngineSession. */
  chat(messages: readonly ChatMessage[], options: ChatOptions = {}): Run {
    return this.#default.chat(messages, options);
  }

  /** The default session's complete; see EngineSession. */
  complete(prompt: string | TokenIds, options: GenerateOptions = {}): Run {
    return this.#default.complete(prompt, options);
  }

  /** A conversation of its own over the same weights. */
  session(): EngineSession {
    this.#checkOpen();
    return new EngineSession(this.#link, this.#link.nextSession++);
  }

  /**
   * A session from the bytes that session.save() gave, under this or another engine with the same model file, cache format
   * and activations. Rejects with BadOptionError or UnsupportedError whose details say what `differs`, IntegrityError for
   * bytes that are damaged or none of a session, ContextFullError, OutOfMemoryError.
   */
  async restore(bytes: Uint8Array | ArrayBuffer): Promise<EngineSession> {
    this.#checkOpen();
    const saved = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes;
    if (!(saved instanceof Uint8Array))
      throw new BadOptionError('restore: pass the Uint8Array that session.save() gave');
    const session = this.#link.nextSession++;
    await this.#link.connection.request('restore', { session, bytes: saved });
    return new EngineSession(this.#link, session);
  }

  /**
   * Loads the model again into a new worker: after a WorkerLostError, or to change options. Calls under way are rejected with
   * AbortedError. Sessions stay usable and begin empty: pass whole conversations, or restore() what was saved. Rejects with
   * BadOptionError for options, threads or bytes that cannot be had here, and goes on as it was; else as Engine.load() does:
   * the engine then stays without a worker, and restart() can be called again. A second call while one is under way joins
   * that, unless it has options, which would be lost: a BadOptionError.
   */
  restart(changes: LoadOptions = {}): Promise<void> {
    const named = Object.entries(changes ?? {}).find(([, value]) => value !== undefined);
    if (this.#restarting !== undefined && named !== undefined) {
      const why = 'another restart is under way, with options of its own; wait for it first';
      return Promise.reject(
        new BadOptionError(`engine.restart: ${named[0]} cannot be honoured: ${why}`, {
          option: named[0],
        }),
      );
    }
    this.#restarting ??= this.#restart(changes).finally(() => {
      this.#restarting = undefined;
    });
    return this.#restarting;
  }

  async #restart(changes: LoadOptions): Promise<void> {
    if (this.#disposed) this.#checkOpen();
    // Before the worker is ended: what cannot be had must not cost the conversations.
    checkLoadOptions(changes, 'engine.restart');
    const load = this.#again(changes);
    if (changes.signal?.aborted) throw new AbortedError();
    await this.#link.connection.close(
      new AbortedError('The engine was restarted while the call was under way'),
      new WorkerLostError('The engine has no worker: restart() has failed or is under way.'),
    );
    const { connection, info, again } = await this.#loadAgain(load, changes.signal);
    this.#link.connection = connection;
    this.#link.info = info;
    this.#again = again;
  }

  /** Ended by dispose() too. */
  async #loadAgain(load: Load, signal: AbortSignal | undefined): Promise<LoadedOn> {
    const ending = new AbortController();
    this.#ending = ending;
    const onAbort = () => ending.abort();
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted || this.#disposed) onAbort();
    try {
      const loaded = await load(ending.signal);
      if (!this.#disposed) return loaded;
      await loaded.connection.close(new AbortedError());
      throw new AbortedError();
    } catch (error) {
      if (this.#disposed) throw new AbortedError('The engine was disposed while it restarted');
      throw error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /**
   * Logits of given tokens without generation: [vocabSize] of the last position or, with `logits: 'all'`,
   * [nTokens, vocabSize]; with `capture` also what went on inside. It uses the default session, whose conversation is computed anew afterwards.
   */
  async forward(tokens: TokenIds, options: ForwardOptions = {}): Promise<ForwardTrace> {
    this.#checkOpen();
    checkOptions('forward', options, FORWARD_RULES);
    const ids = checkTokens('forward', tokens, this.info.model.vocabSize);
    if (ids.length === 0) throw new BadOptionError('forward: there are no tokens');
    const { id, reply } = this.#link.connection.call('forward', {
      session: DEFAULT_SESSION,
      tokens: ids,
      allPositions: options.logits === 'all',
      capture: captureWire('forward', options.capture, this.info.model.layers.length),
    });
    return abortable(reply, options.signal, () => this.#link.connection.cancel(id));
  }

  async tokenize(text: string, options: TokenizeOptions = {}): Promise<number[]> {
    checkText('tokenize', text);
    checkOptions('tokenize', options, TOKENIZE_RULES);
    this.#checkOpen();
    const { addSpecial = false, parseSpecial = false } = options;
    return this.#link.connection.request('tokenize', { text, addSpecial, parseSpecial });
  }

  async detokenize(tokens: TokenIds): Promise<string> {
    this.#checkOpen();
    const ids = checkTokens('detokenize', tokens, this.info.model.vocabSize);
    return this.#link.connection.request('detokenize', { tokens: ids });
  }

  /** Each token by itself, for labels: with its leading space, half characters as U+FFFD, control tokens by name. */
  async tokenTexts(tokens: TokenIds): Promise<string[]> {
    this.#checkOpen();
    const ids = checkTokens('tokenTexts', tokens, this.info.model.vocabSize);
    return this.#link.connection.request('tokenTexts', { tokens: ids });
  }

  /** @internal For headlight-wasm/lab. */
  get link(): EngineLink {
    this.#checkOpen();
    return this.#link;
  }

  /** Of the default session. */
  async stats(): Promise<EngineStats> {
    return this.#default.stats();
  }

  /**
   * Ends the worker, which frees all memory at once. Calls under way are rejected with AbortedError; later ones throw.
   */
  async dispose(): Promise<void> {
    this.#disposed = true;
    this.#ending?.abort();
    await this.#link.connection.close(
      new AbortedError('The engine was disposed while the call was under way'),
      new WorkerLostError('The engine was disposed. Load a new one with Engine.load().'),
    );
    await this.#restarting?.catch(() => {});
  }

  #checkOpen(): void {
    if (this.#link.connection.closedBy !== undefined) throw this.#link.connection.closedBy;
  }
}
