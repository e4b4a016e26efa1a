// A model from its files: header first, then the plan, the memory, the tokenizer, then the weights as they arrive.
// inspect stops after the header. What was made is freed again when any step fails.
import type { HeadlightModule, Loader, Model, Runtime } from '../../../../wasm/headlight.js';
import { AbortedError, BadModelError, OutOfMemoryError } from '../errors.js';
import type { SessionOptionsWire, SourceWire } from '../protocol.js';
import type { DownloadInfo, LoadProgress, ModelPlan } from '../types.js';
import {
  afterFault,
  downloadInfo,
  type FileReports,
  openAfterWaiting,
  startingAnew,
} from './downloads.js';
import { ProgressCounter } from './load_progress.js';
import { loaderMetadata } from './metadata.js';
import { Prefetch, type PrefetchHooks } from './prefetch.js';
import { type FeedHooks, feedShard } from './shard_feeder.js';
import type { OpenedSource, SourceContext } from './sources.js';
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

/** For allocator headers, alignment of some hundred matrices, token histories and what a request needs besides. */
export const MARGIN_BYTES = 4 << 20;

export async function loadModel(
  context: LoadContext,
  sources: readonly SourceWire[],
  session: SessionOptionsWire,
): Promise<LoadedParts> {
  return startingAnew((notices) => loadOnce(context, sources, session, notices));
}

async function loadOnce(
  context: LoadContext,
  sources: readonly SourceWire[],
  session: SessionOptionsWire,
  notices: readonly string[],
): Promise<LoadedParts> {
  const loader = unwrap(context.runtime.createLoader());
  const reports: FileReports[] = [];
  const progress = new ProgressCounter(sources.length, context.onProgress);
  let prefetch: Prefetch | undefined;
  try {
    const ahead: PrefetchHooks = {
      onBytes: (index, received, totalBytes) => progress.ahead(index, received, totalBytes),
    };
    let text: TextTools | undefined;
    let allocatedBytes = 0;
    for (let i = 0; i < sources.length; i++) {
      if (i > 0) unwrap(loader.beginShard());
      const onHeader = async () => {
        text ??= readText(loader, progress);
        reserve(context.module, loader, session, allocatedBytes);
        unwrap(loader.allocate());
        allocatedBytes = unwrap(loader.modelInfo()).weightsBytes;
        // Not before it is known that the model can be used and that there is memory.
        prefetch ??= await Prefetch.start(context, sources, ahead);
        // A shard without data is complete here and now.
        return loader.state() !== 'shardDone';
      };
      await feed(
        context,
        loader,
        { source: sources[i] as SourceWire, index: i, reports, prefetch },
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
    await prefetch?.end();
    progress.close();
    loader.delete();
  }
}

interface Shard {
  source: SourceWire;
  index: number;
  /** Of each file that comes by URL. */
  reports: FileReports[];
  prefetch: Prefetch | undefined;
}

async function feed(
  context: LoadContext,
  loader: Loader,
  { source, index, reports, prefetch }: Shard,
  progress: ProgressCounter,
  onHeader: () => Promise<boolean>,
): Promise<void> {
  prefetch?.reach(index);
  // Who waits for a download of its own need not be told.
  const onWait = () => prefetch?.isRunning(index) || progress.phase('waiting');
  const opened = await openAfterWaiting(source, index, context, onWait);
  if (opened.report !== undefined)
    reports.push({ main: opened.report, ahead: prefetch?.report(index) });
  progress.begin(index, opened.totalBytes);
  const hooks: FeedHooks = {
    async onHeader() {
      checkLength(opened, loader.shardBytes());
      progress.knowBytes(index, loader.shardBytes());
      return onHeader();
    },
    onBytes(n) {
      if (context.signal.aborted) throw new AbortedError();
      progress.bytes(index, n, loader.state() === 'header' ? 'header' : 'weights');
    },
  };
  try {
    progress.end(index, await feedShard(context.module, loader, opened, hooks));
  } catch (error) {
    throw await afterFault(opened, error);
  }
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
function readText(loader: Loader, progress: ProgressCounter): TextTools {
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
      "give. Use a smaller nCtx, kvCache: {k: 'int8', v: 'int8'} or a smaller model.",
    { neededBytes, hadBytes: module.wasmBytes(), weightsBytes, kvCacheBytes, workspaceBytes, nCtx },
  );
}

/**
 * The plan of a model from the headers of its shards; nothing else of them is read.
 * @param look may ask the loader for other plans
 */
export async function inspectModel(
  context: LoadContext,
  sources: readonly SourceWire[],
  session: SessionOptionsWire,
  look: (loader: Loader) => void = () => {},
): Promise<ModelPlan> {
  return startingAnew(() => inspectOnce(context, sources, session, look));
}

async function inspectOnce(
  context: LoadContext,
  sources: readonly SourceWire[],
  session: SessionOptionsWire,
  look: (loader: Loader) => void,
): Promise<ModelPlan> {
  const loader = unwrap(context.runtime.createLoader());
  const progress = new ProgressCounter(sources.length, context.onProgress);
  try {
    let fileBytes = 0;
    for (let i = 0; i < sources.length; i++) {
      if (i > 0) unwrap(loader.beginShard());
      const shard = {
        source: sources[i] as SourceWire,
        index: i,
        reports: [],
        prefetch: undefined,
      };
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
    look(loader);
    const { weightsBytes, ...model } = unwrap(loader.modelInfo());
    return { model, fileBytes, weightsBytes, ...unwrap(loader.planSession(session)) };
  } finally {
    progress.close();
    loader.delete();
  }
}
