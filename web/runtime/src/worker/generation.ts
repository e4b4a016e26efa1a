// One generation: prompt to tokens, then advance() until the end, turning tokens into text that is safe to show. It yields
// to the event loop between calls, so that other requests and a stop come through. Sampling is WASM's.
import type {
  AdvanceResultWire,
  SampledTokenWire,
  GenerateOptionsWire as WasmOptions,
} from '../../../../wasm/headlight.js';
import type { GenerateOptionsWire, PromptWire, RequestEvent, Requests } from '../protocol.js';
import { newStopFlag } from '../stop_flag.js';
import { StopStringFilter } from '../text/stream.js';
import type { FinishReason, GenerateChunk, GenerateResult, Timings } from '../types.js';
import { type Encoded, fitChat, fitting } from './chat_prompt.js';
import type { ModelHost, SessionHost } from './model_host.js';
import type { TextTools } from './text_tools.js';
import { unwrap } from './unwrap.js';

/** Two frames of a 60 Hz display less some margin: a page that waits for progress stays smooth. */
export const ADVANCE_BUDGET_MS = 25;

/** What a request under way can do besides computing. */
export interface RunContext {
  id: number;
  signal: AbortSignal;
  emit(event: RequestEvent): void;
  nextTurn(): Promise<void>;
}

interface Prompt {
  tokens: Uint32Array;
  droppedMessages: number;
  /** The text goes on from the prompt's: a leading space belongs to it. */
  continuation: boolean;
}

export async function generate(
  model: ModelHost,
  session: SessionHost,
  body: Requests['generate'],
  context: RunContext,
): Promise<GenerateResult> {
  // Stop strings need text to be found in.
  if (body.options.stop.length > 0) void model.text.tokenizer;
  const prompt = readPrompt(model, session, body.prompt, body.options);
  unwrap(session.wasm.begin(prompt.tokens, wasmOptions(body.options, model.text)));
  const run = new Generation(model, session, body.options, prompt, context);
  try {
    return await run.toEnd();
  } finally {
    if (!run.ended) session.wasm.cancel();
  }
}

/** Result of a run whose turn never came. */
export function neverStarted(nCtx: number, seed: number): GenerateResult {
  return {
    text: '',
    tokens: [],
    finishReason: 'aborted',
    seed,
    usage: { promptTokens: 0, reusedTokens: 0, completionTokens: 0, contextTokens: 0, nCtx },
    timings: { prefillMs: 0, prefillTokensPerSecond: 0, decodeMs: 0, decodeTokensPerSecond: 0 },
    droppedMessages: 0,
  };
}

function readPrompt(
  model: ModelHost,
  session: SessionHost,
  prompt: PromptWire,
  options: GenerateOptionsWire,
): Prompt {
  const { text } = model;
  const { nCtx } = session;
  /** What is far too long is not encoded. */
  const encodeShort = (nCharacters: number, encode: () => Int32Array): Encoded => {
    const fewestTokens = text.tokenizer.fewestTokens(nCharacters);
    return fewestTokens > nCtx ? { fewestTokens } : Uint32Array.from(encode());
  };
  if (prompt.kind === 'chat') {
    const { messages, tools, onContextFull } = prompt;
    const encode = (some: typeof messages) => {
      const segments = text.template.render(some, {
        addGenerationPrompt: true,
        ...(tools === undefined ? {} : { tools }),
      });
      const nCharacters = segments.reduce((n, part) => n + part.text.length, 0);
      return encodeShort(nCharacters, () => text.tokenizer.encodeSegments(segments));
    };
    const limits = { nCtx, maxTokens: options.maxTokens, onContextFull };
    return { ...fitChat(messages, limits, encode, session.drops), continuation: false };
  }
  const encoded =
    prompt.kind === 'tokens'
      ? prompt.tokens
      : encodeShort(prompt.text.length, () => text.tokenizer.encode(prompt.text));
  const tokens = fitting(encoded, nCtx, 'prompt');
  return { tokens: model.checkTokens(tokens), droppedMessages: 0, continuation: true };
}

function wasmOptions(options: GenerateOptionsWire, text: TextTools): WasmOptions {
  const { seed, stop: _, logprobs, ignoreEndOfGeneration, capture, ...rest } = options;
  return {
    ...rest,
    seedLow: seed % 2 ** 32,
    seedHigh: Math.floor(seed / 2 ** 32),
    nLogprobs: logprobs ?? 0,
    stopTokens: Uint32Array.from(text.endOfGenerationIds),
    ignoreStopTokens: ignoreEndOfGeneration,
    capture: capture ?? null,
  };
}

class Generation {
  /** WASM has ended the run by itself, or it was cancelled. */
  ended = false;
  readonly #model: ModelHost;
  readonly #session: SessionHost;
  readonly #options: GenerateOptionsWire;
  readonly #prompt: Prompt;
  readonly #context: RunContext;
  readonly #stream;
  readonly #filter: StopStringFilter;
  readonly #tokens: number[] = [];
  #text = '';
  readonly #stopFlag = newStopFlag();
  #promptDone = -1;

  constructor(
    model: ModelHost,
    session: SessionHost,
    options: GenerateOptionsWire,
    prompt: Prompt,
    context: RunContext,
  ) {
    this.#model = model;
    this.#session = session;
    this.#options = options;
    this.#prompt = prompt;
    this.#context = context;
    this.#stream = model.text.stream({ continuation: prompt.continuation });
    this.#filter = new StopStringFilter(options.stop);
  }

  async toEnd(): Promise<GenerateResult> {
    if (this.#stopFlag !== undefined)
      this.#context.emit({ type: 'stopFlag', id: this.#context.id, flag: this.#stopFlag });
    for (;;) {
      if (this.#context.signal.aborted) return this.#finish('aborted');
      const step = this.#advance();
      this.#reportPrefill(step);
      if (step.tokens.length > 0 || step.captures.length > 0) this.#take(step);
      if (this.#filter.stop !== undefined) return this.#finish('stop');
      if (step.done) {
        this.ended = true;
        return this.#finish(step.finish === 'none' ? 'aborted' : step.finish);
      }
      await this.#context.nextTurn();
    }
  }

  #advance(): AdvanceResultWire {
    const { module } = this.#model;
    module.stopFlag = this.#stopFlag;
    try {
      return unwrap(this.#session.wasm.advance(ADVANCE_BUDGET_MS));
    } finally {
      module.stopFlag = undefined;
    }
  }

  #reportPrefill({ nPromptDone, nPrompt }: AdvanceResultWire): void {
    if (nPromptDone === this.#promptDone) return;
    this.#promptDone = nPromptDone;
    const progress = { doneTokens: nPromptDone, totalTokens: nPrompt };
    this.#context.emit({ type: 'prefill', id: this.#context.id, progress });
  }

  #take({ tokens: sampled, captures }: AdvanceResultWire): void {
    const tokens = sampled.map(({ id }) => id);
    const { text } = this.#filter.push(this.#stream.push(tokens));
    this.#tokens.push(...tokens);
    this.#emit({
      text,
      tokens,
      ...(this.#options.logprobs === undefined
        ? {}
        : { logprobs: sampled.map((one) => this.#logprobs(one)) }),
      ...(captures.length === 0 ? {} : { capture: captures }),
    });
  }

  #logprobs({ id, logprob, top }: SampledTokenWire) {
    return {
      token: id,
      logprob,
      top: top.map((one) => ({
        token: one.id,
        text: this.#model.text.label(one.id),
        logprob: one.logprob,
      })),
    };
  }

  #emit(chunk: GenerateChunk): void {
    this.#text += chunk.text;
    this.#context.emit({ type: 'chunk', id: this.#context.id, chunk });
  }

  #finish(finishReason: FinishReason): GenerateResult {
    if (!this.ended) this.#session.wasm.cancel();
    this.ended = true;
    if (this.#filter.stop === undefined) {
      const rest = this.#filter.push(this.#stream.flush());
      const text = rest.text + this.#filter.flush();
      if (text !== '') this.#emit({ text, tokens: [] });
    }
    const { nPrompt, nPromptReused } = this.#session.wasm.stats();
    const timings = this.#timings();
    this.#session.lastTimings = timings;
    const stopString = this.#filter.stop;
    return {
      text: this.#text,
      tokens: this.#tokens,
      finishReason,
      ...(stopString === undefined ? {} : { stopString }),
      seed: this.#options.seed,
      usage: {
        promptTokens: nPrompt,
        reusedTokens: nPromptReused,
        completionTokens: this.#tokens.length,
        contextTokens: this.#session.contextTokens(),
        nCtx: this.#session.nCtx,
      },
      timings,
      droppedMessages: this.#prompt.droppedMessages,
    };
  }

  #timings(): Timings {
    const { nPrompt, nPromptReused, nDecodeSteps, prefillMs, decodeMs } =
      this.#session.wasm.stats();
    const rate = (n: number, ms: number) => (ms > 0 ? (n / ms) * 1000 : 0);
    return {
      prefillMs,
      prefillTokensPerSecond: rate(nPrompt - nPromptReused, prefillMs),
      decodeMs,
      decodeTokensPerSecond: rate(nDecodeSteps, decodeMs),
    };
  }
}
