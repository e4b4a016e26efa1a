// A model from its files: header first, then the plan, the memory, the tokenizer, then the weights as they arrive.
// inspect stops after the header. What was made is freed again when any step fails.
import type { HeadlightModule, Loader, Model, Runtime } from '../../../../wasm/headlight.js';
import { AbortedError, BadModelError, OutOfMemoryError } from '../errors.js';
import type { SessionOptionsWire, SourceWire } from '../protocol.js';
import type { LoadProgress, ModelPlan } from '../types.js';
import { loaderMetadata } from './metadata.js';
import { feedShard } from './shard_feeder.js';
import { type OpenedSource, openSource, type SourceContext } from './sources.js';
import { MAX_WASM_PAGES, WASM_PAGE_BYTES } from './start_module.js';
import { TextTools } from './text_tools.js';
import { unwrap } from './unwrap.js';

export interface LoadContext extends SourceContext {
  module: HeadlightModule;
  runtime: Runtime;
  onProgress(progress: LoadProgress): void;
}

export interface LoadedParts {
  model: Model;
  text: TextTools;
  /** File bytes taken. */
  loadedBytes: number;
}

/** For allocator headers, alignment of some hundred matrices, token histories and what a request needs besides. */
const MARGIN_BYTES = 4 << 20;
/** People do not see more steps than this. */
const PROGRESS_INTERVAL_MS = 100;

export async function loadModel(
  context: LoadContext,
  sources: readonly SourceWire[],
  session: SessionOptionsWire,
): Promise<LoadedParts> {
  const loader = unwrap(context.runtime.createLoader());
  try {
    const progress = new Progress(context, sources.length);
    let text: TextTools | undefined;
    let allocatedBytes = 0;
    for (let i = 0; i < sources.length; i++) {
      if (i > 0) unwrap(loader.beginShard());
      const onHeader = async () => {
        text ??= readText(loader, progress);
        reserve(context.module, loader, session, allocatedBytes);
        unwrap(loader.allocate());
        allocatedBytes = unwrap(loader.modelInfo()).weightsBytes;
        // A shard without data is complete here and now.
        return loader.state() !== 'shardDone';
      };
      await feed(
        context,
        loader,
        { source: sources[i] as SourceWire, index: i },
        progress,
        onHeader,
      );
    }
    const model = unwrap(loader.finish());
    return { model, text: text ?? readText(loader, progress), loadedBytes: progress.loadedBytes };
  } finally {
    loader.delete();
  }
}

interface Shard {
  source: SourceWire;
  index: number;
}

async function feed(
  context: LoadContext,
  loader: Loader,
  { source, index }: Shard,
  progress: Progress,
  onHeader: () => Promise<boolean>,
): Promise<void> {
  const opened = await openSource(source, index, context);
  progress.beginShard(opened.totalBytes);
  const received = await feedShard(context.module, loader, opened, {
    async onHeader() {
      checkLength(opened, loader.shardBytes());
      progress.knowShardBytes(loader.shardBytes());
      return onHeader();
    },
    onBytes(n) {
      if (context.signal.aborted) throw new AbortedError();
      progress.bytes(n, loader.state() === 'header' ? 'header' : 'weights');
    },
  });
  progress.endShard(received);
}

/** A damaged or hostile header may ask for gigabytes that no bytes would ever fill: seen before memory is taken. */
function checkLength({ label, totalBytes }: OpenedSource, neededBytes: number): void {
  if (totalBytes === undefined || totalBytes >= neededBytes) return;
  throw new BadModelError(
    `${label} has ${totalBytes} bytes, but the tensors that its header lists need ${neededBytes}. The file is cut off or ` +
      'damaged; get it again.',
    { fileBytes: totalBytes, neededBytes },
  );
}

/** Tokenizer and template are built before the weights: a file that cannot be used is refused before its download. */
function readText(loader: Loader, progress: Progress): TextTools {
  progress.phase('tokenizer');
  const { vocabSize } = unwrap(loader.modelInfo());
  const text = TextTools.fromMetadata(loaderMetadata(loader), vocabSize);
  loader.dropMetadata();
  return text;
}

/**
 * Grows the memory in one step to what weights, cache and workspace will take. Throws OutOfMemoryError before anything is
 * downloaded but the header. With shards, the weights are those of the headers seen so far, `allocatedBytes` of them there.
 */
function reserve(
  module: HeadlightModule,
  loader: Loader,
  session: SessionOptionsWire,
  allocatedBytes: number,
): void {
  const { weightsBytes } = unwrap(loader.modelInfo());
  const { nCtx, kvCacheBytes, workspaceBytes } = unwrap(loader.planSession(session));
  const neededBytes = weightsBytes + kvCacheBytes + workspaceBytes + MARGIN_BYTES;
  const limitBytes = MAX_WASM_PAGES * WASM_PAGE_BYTES;
  const result =
    neededBytes > limitBytes ? undefined : module.reserve(neededBytes - allocatedBytes);
  if (result !== undefined && result.error === undefined) return;
  const mib = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`;
  throw new OutOfMemoryError(
    `The model needs ${mib(neededBytes)} (weights ${mib(weightsBytes)}, cache of ${nCtx} tokens ${mib(kvCacheBytes)}, ` +
      `workspace ${mib(workspaceBytes)}), which this ${neededBytes > limitBytes ? '32-bit module' : 'device'} does not ` +
      "give. Use a smaller nCtx, kvCache: {k: 'f16', v: 'f16'} or a smaller model.",
    { neededBytes, hadBytes: module.wasmBytes(), weightsBytes, kvCacheBytes, workspaceBytes, nCtx },
  );
}

/** The plan of a model from the headers of its shards; nothing else of them is read. */
export async function inspectModel(
  context: LoadContext,
  sources: readonly SourceWire[],
  session: SessionOptionsWire,
): Promise<ModelPlan> {
  const loader = unwrap(context.runtime.createLoader());
  try {
    const progress = new Progress(context, sources.length);
    let fileBytes = 0;
    for (let i = 0; i < sources.length; i++) {
      if (i > 0) unwrap(loader.beginShard());
      const shard = { source: sources[i] as SourceWire, index: i };
      await feed(context, loader, shard, progress, async () => false);
      fileBytes += loader.shardBytes();
      unwrap(loader.skipData());
    }
    const nFiles = loader.shardCount();
    if (nFiles > sources.length) {
      throw new BadModelError(
        `The model is split in ${nFiles} files and ${sources.length} were given; give all of them, in order`,
        { key: 'split.count', nFiles, nGiven: sources.length },
      );
    }
    const { weightsBytes, ...model } = unwrap(loader.modelInfo());
    return { model, fileBytes, weightsBytes, ...unwrap(loader.planSession(session)) };
  } finally {
    loader.delete();
  }
}

/** Counts over all shards and reports not too often. */
class Progress {
  readonly #context: LoadContext;
  #doneBytes = 0;
  #shardBytes: number | undefined;
  #shardsToCome: number;
  loadedBytes = 0;
  #lastMs = 0;
  #phase: LoadProgress['phase'] = 'header';

  constructor(context: LoadContext, nShards: number) {
    this.#context = context;
    this.#shardsToCome = nShards;
  }

  beginShard(totalBytes: number | undefined): void {
    this.#shardsToCome -= 1;
    this.#shardBytes = totalBytes;
    this.phase('header');
  }

  /** What the header says is needed; it holds even where a server tells no length, or more than is needed. */
  knowShardBytes(bytes: number): void {
    this.#shardBytes = bytes;
  }

  bytes(received: number, phase: 'header' | 'weights'): void {
    this.loadedBytes = this.#doneBytes + Math.min(received, this.#shardBytes ?? received);
    if (phase !== this.#phase) this.phase(phase);
    else if (performance.now() - this.#lastMs >= PROGRESS_INTERVAL_MS) this.#report();
  }

  endShard(received: number): void {
    this.#doneBytes += Math.min(received, this.#shardBytes ?? received);
    this.loadedBytes = this.#doneBytes;
    this.#shardBytes = 0;
    this.#report();
  }

  phase(phase: LoadProgress['phase']): void {
    this.#phase = phase;
    this.#report();
  }

  #report(): void {
    this.#lastMs = performance.now();
    const total = this.#shardsToCome === 0 && this.#shardBytes !== undefined;
    this.#context.onProgress({
      phase: this.#phase,
      loadedBytes: this.loadedBytes,
      ...(total ? { totalBytes: this.#doneBytes + (this.#shardBytes ?? 0) } : {}),
    });
  }
}
