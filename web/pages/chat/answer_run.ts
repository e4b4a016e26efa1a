// One answer being generated: starts the engine's run, gathers its text, counts its speed, and reports. Knows no DOM.
import type { ChatMessage, GenerateOptions, GenerateResult, Run } from 'headlight-wasm';
import type { LoadedModel } from './engine_host.js';

export interface RunProgress {
  text: string;
  tokens: number;
  /** Of what was generated so far; 0 until it can be told. */
  tokensPerSecond: number;
  /** Set while the prompt is computed. */
  prefill: { doneTokens: number; totalTokens: number } | undefined;
}

export interface RunRequest {
  model: LoadedModel;
  /** Plain models get the last message's text alone. */
  messages: ChatMessage[];
  options: GenerateOptions;
  onProgress: (progress: RunProgress) => void;
}

// Below this a speed is noise.
const measurableMs = 200;

function start({ model, messages, options }: RunRequest): Run {
  if (model.kind !== 'plain') {
    return model.engine.chat(messages, { ...options, onContextFull: 'drop-oldest' });
  }
  return model.engine.complete(messages.at(-1)?.content ?? '', options);
}

export class AnswerRun {
  readonly #request: RunRequest;
  readonly #progress: RunProgress = {
    text: '',
    tokens: 0,
    tokensPerSecond: 0,
    prefill: undefined,
  };
  #run: Run | undefined;
  #stopped = false;
  #firstChunkAt = 0;

  constructor(request: RunRequest) {
    this.#request = request;
  }

  /** Resolves also when the run was stopped; rejects with the package's errors. */
  async finish(): Promise<GenerateResult> {
    const run = start(this.#request);
    this.#run = run;
    if (this.#stopped) run.abort();
    run.onPrefill((prefill) => {
      this.#progress.prefill = { ...prefill };
      this.#report();
    });
    for await (const chunk of run) {
      this.#count(chunk.tokens.length);
      this.#progress.text += chunk.text;
      this.#progress.prefill = undefined;
      this.#report();
    }
    return run.result();
  }

  stop(): void {
    this.#stopped = true;
    this.#run?.abort();
  }

  #count(tokens: number): void {
    const now = performance.now();
    if (this.#firstChunkAt === 0) this.#firstChunkAt = now;
    // The first chunk's tokens were computed before the clock started.
    else this.#progress.tokens += tokens;
    const ms = now - this.#firstChunkAt;
    if (ms >= measurableMs) this.#progress.tokensPerSecond = (this.#progress.tokens * 1000) / ms;
  }

  #report(): void {
    this.#request.onProgress({ ...this.#progress });
  }
}
