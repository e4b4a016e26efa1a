// A model from its files: header first, then the plan, the memory, the tokenizer, then the weights as they arrive.
// inspect stops after the header. What was made is freed again when any step fails.
import type { HeadlightModule, Loader, Model, Runtime } from '../../../../wasm/headlight.js';
import { AbortedError, BadModelError, HeadlightError, OutOfMemoryError } from '../errors.js';
import type { SessionOptionsWire, SourceWire } from '../protocol.js';
import type { DownloadReport } from '../store/stored_source.js';
import { StartAnew } from '../store/transfer.js';
import type { DownloadInfo, LoadProgress, ModelPlan } from '../types.js';
import { loaderMetadata } from './metadata.js';
import { type FeedHooks, feedShard } from './shard_feeder.js';
import { type OpenedSource, openSource, type SourceContext } from './sources.js';
import { MAX_WASM_PAGES, WASM_PAGE_BYTES } from './start_module.js';
import { TextTools } from './text_tools.js';
import { unwrap } from './unwrap.js';

export interface LoadContext extends Omit<SourceContext, 'onWait'> {
  module: HeadlightModule;
  runtime: Runtime;
  onProgress(progress: LoadProgress): void;
}

export interface LoadedParts {
  model: Model;
  text: TextTools;
  /** File bytes taken. */
  loadedBytes: number;
  download: DownloadInfo | undefined;
}

/** A server whose file changes during each download, or breaks off without a way to go on. */
const MAX_RESTARTS = 3;
const WAITING_MS = 200;
/** For allocator headers, alignment of some hundred matrices, token histories and what a request needs besides. */
const MARGIN_BYTES = 4 << 20;
/** People do not see more steps than this. */
const PROGRESS_INTERVAL_MS = 100;

export async function loadModel(
  context: LoadContext,
  sources: readonly SourceWire[],
  session: SessionOptionsWire,
): Promise<LoadedParts> {
  return startingAnew((notices) => loadOnce(context, sources, session, notices));
}

/** A download or a stored file may turn out to be of no use when a part of it is loaded already. */
async function startingAnew<T>(work: (notices: readonly string[]) => Promise<T>): Promise<T> {
  const notices: string[] = [];
  for (;;) {
    try {
      return await work(notices);
    } catch (error) {
      if (!(error instanceof StartAnew)) throw error;
      if (notices.length === MAX_RESTARTS) throw error.failure;
      notices.push(`begun anew: ${error.message}`);
    }
  }
}

async function loadOnce(
  context: LoadContext,
  sources: readonly SourceWire[],
  session: SessionOptionsWire,
  notices: readonly string[],
): Promise<LoadedParts> {
  const loader = unwrap(context.runtime.createLoader());
  const reports: DownloadReport[] = [];
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
        { source: sources[i] as SourceWire, index: i, reports },
        progress,
        onHeader,
      );
    }
    const model = unwrap(loader.finish());
    return {
      model,
      text: text ?? readText(loader, progress),
      loadedBytes: progress.loadedBytes,
      download: downloadInfo(reports, notices),
    };
  } finally {
    loader.delete();
  }
}

function downloadInfo(
  reports: readonly DownloadReport[],
  notices: readonly string[],
): DownloadInfo | undefined {
  if (reports.length === 0) return undefined;
  const sum = (bytes: 'fromNetworkBytes' | 'fromStoreBytes') =>
    reports.reduce((total, report) => total + report[bytes], 0);
  return {
    fromNetworkBytes: sum('fromNetworkBytes'),
    fromStoreBytes: sum('fromStoreBytes'),
    kept: reports.every(({ kept }) => kept),
    sha256: reports.map(({ sha256 }) => sha256),
    notices: [...notices, ...reports.flatMap((report) => report.notices)],
  };
}

interface Shard {
  source: SourceWire;
  index: number;
  /** Of each file that comes by URL. */
  reports: DownloadReport[];
}

async function feed(
  context: LoadContext,
  loader: Loader,
  { source, index, reports }: Shard,
  progress: Progress,
  onHeader: () => Promise<boolean>,
): Promise<void> {
  const opened = await openAfterWaiting(source, index, context, progress);
  if (opened.report !== undefined) reports.push(opened.report);
  progress.beginShard(opened.totalBytes);
  const hooks: FeedHooks = {
    async onHeader() {
      checkLength(opened, loader.shardBytes());
      progress.knowShardBytes(loader.shardBytes());
      return onHeader();
    },
    onBytes(n) {
      if (context.signal.aborted) throw new AbortedError();
      progress.bytes(n, loader.state() === 'header' ? 'header' : 'weights');
    },
  };
  try {
    progress.endShard(await feedShard(context.module, loader, opened, hooks));
  } catch (error) {
    throw await afterFault(opened, error);
  }
}

/** Workers that look into the store at the same moment wait for each other too short to be told. */
async function openAfterWaiting(
  source: SourceWire,
  index: number,
  context: LoadContext,
  progress: Progress,
): Promise<OpenedSource> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onWait = () => {
    timer ??= setTimeout(() => progress.phase('waiting'), WAITING_MS);
  };
  try {
    return await openSource(source, index, { ...context, onWait });
  } finally {
    clearTimeout(timer);
  }
}

/** What is no good must not stay in the store. What came from there gets one more chance, from the network. */
async function afterFault(opened: OpenedSource, error: unknown): Promise<unknown> {
  if (!(error instanceof HeadlightError)) return error;
  const isBroken = error.code === 'BadModel' || error.code === 'Integrity';
  if (isBroken || (error.code === 'Unsupported' && !opened.fromStore)) await opened.forget?.();
  return isBroken && opened.fromStore ? new StartAnew(error) : error;
}

/** A damaged or hostile header may ask for gigabytes that no bytes would ever fill: seen before memory is taken. */
function checkLength(source: OpenedSource, neededBytes: number): void {
  const { label, totalBytes, lengthIsExact } = source;
  if (totalBytes === undefined || !lengthIsExact || totalBytes >= neededBytes) return;
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
  return startingAnew(() => inspectOnce(context, sources, session));
}

async function inspectOnce(
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
      const shard = { source: sources[i] as SourceWire, index: i, reports: [] };
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
