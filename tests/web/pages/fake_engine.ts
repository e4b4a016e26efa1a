// Stands in for headlight-wasm while the chat page itself is looked at or tested: same shapes, scripted answers, and
// states that a real engine rarely shows (slow loads, a full context, each error). Used through
// fake.vite.config.ts only; nothing built for users contains it. The page's address chooses: ?load=slow|fail|none.

import {
  AbortedError,
  BadModelError,
  InternalError,
  OutOfMemoryError,
} from '../../../web/runtime/src/errors.js';
import type {
  ChatMessage,
  ChatOptions,
  EngineInfo,
  EngineStats,
  GenerateChunk,
  GenerateResult,
  LoadOptions,
  ModelSource,
  PrefillProgress,
  Run,
  StorageUse,
  StoredModel,
} from '../../../web/runtime/src/types.js';

export * from '../../../web/runtime/src/errors.js';

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const modelBytes = 3_042_400;

const thought = '<think>\nThe user wants a *short* overview.\n\n1. Code\n2. A table\n</think>\n\n';
const showcase = `Here is a **small tour** of what an answer may hold, with \`inline code\` and a [link](https://example.com).

## A list

1. First the *easy* part.
2. Then the harder one:
   - with a nested item,
   - and another.

\`\`\`js
// Whether a word reads the same from both ends.
export function isPalindrome(word) {
  const letters = [...word.toLowerCase()].filter((letter) => /\\p{L}/u.test(letter));
  return letters.join('') === letters.reverse().join('');
}
\`\`\`

| Drink  | Caffeine (mg) | Note |
|:-------|--------------:|------|
| Coffee | 95 | brewed |
| Tea    | 47 | black, three minutes |
| Cocoa  | 12 | with milk |

> A quotation, to see how it stands out.

![A cat](https://example.com/cat.png) and <b>raw tags</b> are shown as text.`;

const long = Array.from(
  { length: 60 },
  (_, i) =>
    `Sentence ${i + 1} of a long answer, which fills the page and makes it scroll. It has a second part.`,
).join('\n\n');

function scripted(prompt: string): string {
  if (/kite\?/.test(prompt)) return 'Your kite is green.';
  if (/tour|code|table/i.test(prompt)) return showcase;
  if (/think/i.test(prompt)) return thought + showcase;
  if (/ponder/i.test(prompt)) return `<think>\n${long}`;
  if (/long/i.test(prompt)) return long;
  if (/^echo /i.test(prompt)) return prompt.slice(5);
  return `Nice to meet you! You said: ${prompt}`;
}

const fakeInfo: EngineInfo = {
  model: {
    architecture: 'llama',
    name: 'headlight-default',
    dModel: 192,
    vocabSize: 2048,
    nCtxTrain: 512,
    tiedHead: true,
    layers: Array.from({ length: 6 }, () => ({
      ...{ nQHeads: 8, nKvHeads: 2, dQk: 24, dV: 32, dFf: 512, window: 0 },
      ...{ ropeStyle: 'interleaved' as const, nRot: 24, ropeFreqBase: 10_000 },
    })),
    parametersUsed: 2_810_304,
    hasTokenizer: true,
    hasChatTemplate: true,
  },
  runtime: {
    module: 'relaxed-threads',
    threads: 2,
    dotForm: 'unsigned',
    crossOriginIsolated: true,
    reasons: ['threads: 2, half of 4 cores and at most 8', 'module: relaxed SIMD is available'],
  },
  memory: {
    ...{ weightsBytes: 2_990_000, kvCacheBytes: 1_376_256, kvBytesPerToken: 2688 },
    ...{ workspaceBytes: 640_000, wasmBytes: 8_388_608 },
  },
  nCtx: 512,
  loadMs: 84,
};

class FakeRun implements Run {
  #text: string;
  #options: ChatOptions;
  #promptTokens: number;
  #dropped: number;
  #aborted = false;
  #said = '';
  #tokens = 0;
  #listener: ((progress: PrefillProgress) => void) | undefined;
  #start = performance.now();
  #done!: (result: GenerateResult) => void;
  #failed!: (error: Error) => void;
  #result: Promise<GenerateResult>;

  constructor(messages: readonly ChatMessage[], options: ChatOptions) {
    const prompt = messages.at(-1)?.content ?? '';
    this.#text = scripted(prompt);
    this.#options = options;
    const words = messages.map(({ content }) => Math.ceil(content.length / 4) + 5);
    const total = words.reduce((a, b) => a + b, 0);
    this.#dropped = total > fakeInfo.nCtx / 2 ? Math.max(0, messages.length - 1) : 0;
    this.#promptTokens = Math.min(total, fakeInfo.nCtx / 2);
    this.#result = new Promise((resolve, reject) => {
      this.#done = resolve;
      this.#failed = reject;
    });
    this.#result.catch(() => {});
    options.signal?.addEventListener('abort', () => this.abort());
  }
  result(): Promise<GenerateResult> {
    return this.#result;
  }
  abort(): void {
    this.#aborted = true;
  }
  onPrefill(listener: (progress: PrefillProgress) => void): this {
    this.#listener = listener;
    return this;
  }
  async *[Symbol.asyncIterator](): AsyncIterator<GenerateChunk> {
    for (let done = 0; done <= this.#promptTokens && !this.#aborted; done += 16) {
      this.#listener?.({ doneTokens: done, totalTokens: this.#promptTokens });
      await wait(10);
    }
    if (this.#text.includes('You said: fail')) {
      const error = new OutOfMemoryError(
        'The KV cache needs 12 MB more than the 300 MB that are left',
        {
          neededBytes: 312_000_000,
          availableBytes: 300_000_000,
        },
      );
      this.#failed(error);
      throw error;
    }
    for (const piece of this.#text.match(/\s*\S{1,6}|\s+$/g) ?? []) {
      const limit = this.#options.maxTokens ?? Number.POSITIVE_INFINITY;
      if (this.#aborted || this.#tokens >= limit) break;
      this.#said += piece;
      this.#tokens += 1;
      yield { text: piece, tokens: [this.#tokens] };
      await wait(12);
    }
    this.#finish();
  }
  #finish(): void {
    const cut = this.#said !== this.#text;
    const ms = performance.now() - this.#start;
    const contextTokens = Math.min(fakeInfo.nCtx, this.#promptTokens + this.#tokens);
    this.#done({
      text: this.#said,
      tokens: Array.from({ length: this.#tokens }, (_, i) => i),
      finishReason: this.#aborted ? 'aborted' : cut ? 'length' : 'stop',
      seed: this.#options.seed ?? 42,
      usage: {
        ...{ promptTokens: this.#promptTokens, reusedTokens: 0, completionTokens: this.#tokens },
        ...{ contextTokens, nCtx: fakeInfo.nCtx },
      },
      timings: {
        ...{ prefillMs: 24, prefillTokensPerSecond: 1800, decodeMs: ms },
        decodeTokensPerSecond: (this.#tokens * 1000) / ms,
      },
      droppedMessages: this.#dropped,
    });
  }
}

export const modelStore = {
  list: async (): Promise<StoredModel[]> => [],
  use: async (): Promise<StorageUse> => ({ modelsBytes: 0, isPersistent: false }),
  file: async (): Promise<Blob | undefined> => undefined,
  delete: async (): Promise<boolean> => false,
};

export class Engine {
  readonly info: EngineInfo;

  private constructor(info: EngineInfo) {
    this.info = info;
  }

  static async load(source: ModelSource, options: LoadOptions = {}): Promise<Engine> {
    const mode = new URLSearchParams(location.search).get('load');
    if (mode === 'fail') throw new InternalError('The engine did not start');
    const isFile = source instanceof Blob;
    if (isFile && (await source.slice(0, 4).text()) !== 'GGUF') {
      throw new BadModelError(
        "The file does not begin with 'GGUF' but with 'This' (byte 0). It is no GGUF file.",
        {
          offset: 0,
        },
      );
    }
    const steps = mode === 'slow' ? 400 : 8;
    for (let step = 0; step <= steps; step += 1) {
      if (options.signal?.aborted) throw new AbortedError();
      const loadedBytes = Math.round((modelBytes * step) / steps);
      options.onProgress?.({ phase: 'weights', loadedBytes, totalBytes: modelBytes });
      await wait(20);
    }
    const name = isFile ? (source as File).name : fakeInfo.model.name;
    return new Engine({
      ...fakeInfo,
      model: { ...fakeInfo.model, name, hasChatTemplate: !name.includes('plain') },
    });
  }
  static async preflight() {
    return { fits: true, neededBytes: modelBytes, speed: { decodeTokensPerSecond: 100 } };
  }
  chat(messages: readonly ChatMessage[], options: ChatOptions = {}): Run {
    return new FakeRun(messages, options);
  }
  complete(text: string, options: ChatOptions = {}): Run {
    return new FakeRun([{ role: 'user', content: text }], options);
  }
  async stats(): Promise<EngineStats> {
    return { contextTokens: 100, nCtx: this.info.nCtx, wasmBytes: 2 ** 24 };
  }
  async dispose(): Promise<void> {}
}
