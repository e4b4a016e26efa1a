// Moves the bytes of one file into the loader's staging buffer and on, chunk by chunk, with no copy of its own. Knows the
// loader's states, and what a file that is no model looks like; knows nothing about where the bytes come from.
import type { HeadlightModule, Loader } from '../../../../wasm/headlight.js';
import {
  BadModelError,
  type HeadlightError,
  IntegrityError,
  InternalError,
  NetworkError,
} from '../errors.js';
import type { OpenedSource } from './sources.js';
import { unwrap } from './unwrap.js';

export interface FeedHooks {
  /** The header is complete. Return false to stop there. */
  onHeader(): Promise<boolean>;
  onBytes(received: number): void;
}

/** Resolves to the bytes received when the shard is complete, or when onHeader wanted no more. */
export async function feedShard(
  module: HeadlightModule,
  loader: Loader,
  source: OpenedSource,
  hooks: FeedHooks,
): Promise<number> {
  let received = 0;
  let complete = false;
  let isGguf = true;
  for await (const chunk of source.chunks) {
    // More than the model needs.
    if (complete && !source.wantsAll) return received;
    if (complete) {
      hooks.onBytes(received);
      continue;
    }
    if (received === 0) isGguf = checkBeginning(chunk, source);
    received += chunk.byteLength;
    const wantsMore = await feedChunk(module, loader, chunk, hooks);
    hooks.onBytes(received);
    complete = loader.state() === 'shardDone';
    if (!wantsMore && !complete) return received;
    // A complete file is read to its end all the same: browsers do not cache a download that was left.
  }
  if (complete) return received;
  if (!isGguf) throw new BadModelError(`${source.label} is not a GGUF file`);
  throw endedEarly(loader, source, received);
}

/** False when the loader, or onHeader, wants no more of this shard. */
async function feedChunk(
  module: HeadlightModule,
  loader: Loader,
  chunk: Uint8Array,
  hooks: FeedHooks,
): Promise<boolean> {
  let offset = 0;
  while (offset < chunk.byteLength) {
    const n = Math.min(loader.stageBytes(), chunk.byteLength - offset);
    // The view is taken anew each time: it dies when the memory grows.
    module.HEAPU8.set(chunk.subarray(offset, offset + n), loader.stage());
    const { taken, state } = unwrap(loader.append(n));
    offset += taken;
    if (state === 'shardDone') return false;
    if (state === 'planned') {
      if (!(await hooks.onHeader())) return false;
    } else if (taken === 0) {
      throw new InternalError(`The loader took no bytes in state '${state}'`);
    }
  }
  return loader.state() !== 'shardDone';
}

const HTML_START = /^\s*<(?:!doctype|html|head|body|\?xml|!--)/i;
const LFS_START = 'version https://git-lfs.github.com/spec/';
/** Enough for the mark of any of them. */
const BEGINNING_BYTES = 256;

/** Whether it is GGUF. Throws for what people often get in a model's place; the loader knows other formats of models. */
function checkBeginning(chunk: Uint8Array, source: OpenedSource): boolean {
  const start = new TextDecoder('latin1').decode(chunk.subarray(0, BEGINNING_BYTES));
  if (start.startsWith('GGUF')) return true;
  const isUrl = /^https?:/.test(source.label);
  if (HTML_START.test(start) || (isUrl && /text\/html/.test(source.contentType))) {
    const message = `${source.label} is a web page, not a GGUF model`;
    throw isUrl
      ? new NetworkError(
          `${message}: the address leads to a page about the file, or to a login or error page`,
          {
            url: source.label,
            contentType: source.contentType,
          },
        )
      : new BadModelError(`${message}: it was saved from a browser in place of the file itself`);
  }
  if (start.startsWith(LFS_START)) {
    throw new BadModelError(
      `${source.label} is a Git LFS pointer, not the model itself: fetch the file with 'git lfs pull' or download it`,
    );
  }
  return false;
}

function endedEarly(loader: Loader, source: OpenedSource, received: number): HeadlightError {
  const expected = loader.state() === 'header' ? 0 : loader.shardBytes();
  const wanted = expected > 0 ? `${expected} bytes` : 'more: not even its header is complete';
  return new IntegrityError(
    `${source.label} ends after ${received} bytes, but the model needs ${wanted}. The file is cut off; get it again.`,
    { receivedBytes: received, ...(expected > 0 ? { expectedBytes: expected } : {}) },
  );
}
