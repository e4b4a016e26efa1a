// Downloads the further files of a split model into the store while earlier ones are being loaded. When the turn of a file
// comes, the loader waits for its lock and then reads it from there. It never fails: what it could not do, the loader does
// when it comes to that file, and meets the same fault.
import { asHeadlightError } from '../errors.js';
import type { SourceWire } from '../protocol.js';
import { isStorable } from '../store/stored_copy.js';
import type { DownloadReport } from '../store/stored_source.js';
import { openSource, type SourceContext } from './sources.js';

/** Beside the file that is being loaded. More connections to one server bring little. */
const AT_ONCE = 2;

export interface PrefetchHooks {
  onBytes(index: number, received: number, totalBytes: number | undefined): void;
}

export class Prefetch {
  readonly #context: Omit<SourceContext, 'onWait'>;
  readonly #sources: readonly SourceWire[];
  readonly #hooks: PrefetchHooks;
  readonly #abort = new AbortController();
  readonly #running = new Map<number, Promise<void>>();
  readonly #reports = new Map<number, DownloadReport>();
  /** The first file is the loader's. */
  #next = 1;
  #current = 0;

  /** Without a store there is no place for what comes too early: undefined. */
  static async start(
    context: Omit<SourceContext, 'onWait'>,
    sources: readonly SourceWire[],
    hooks: PrefetchHooks,
  ): Promise<Prefetch | undefined> {
    if (context.download.store === 'off' || sources.length < 2) return undefined;
    const place = await context.env.openStore().catch(() => undefined);
    if (place === undefined) return undefined;
    const prefetch = new Prefetch(context, sources, hooks);
    prefetch.#fill();
    return prefetch;
  }

  private constructor(
    context: Omit<SourceContext, 'onWait'>,
    sources: readonly SourceWire[],
    hooks: PrefetchHooks,
  ) {
    this.#context = context;
    this.#sources = sources;
    this.#hooks = hooks;
  }

  /** The loader is about to open this file: it is not begun here any more. */
  reach(index: number): void {
    this.#current = index;
  }

  isRunning(index: number): boolean {
    return this.#running.has(index);
  }

  /** Of a file that was begun here. */
  report(index: number): DownloadReport | undefined {
    return this.#reports.get(index);
  }

  /** Ends what is under way; parts stay in the store. */
  async end(): Promise<void> {
    this.#next = this.#sources.length;
    this.#abort.abort();
    await Promise.all(this.#running.values());
  }

  #fill(): void {
    while (this.#running.size < AT_ONCE && this.#next < this.#sources.length) {
      const index = this.#next++;
      const source = this.#sources[index];
      if (index <= this.#current || source?.kind !== 'url' || !isStorable(source.url)) continue;
      const fetching = this.#fetch(source, index).finally(() => {
        this.#running.delete(index);
        this.#fill();
      });
      this.#running.set(index, fetching);
    }
  }

  async #fetch(source: SourceWire, index: number): Promise<void> {
    try {
      const opened = await openSource(source, index, {
        ...this.#context,
        signal: this.#abort.signal,
        // Bytes that cannot be kept are of no use yet.
        download: { ...this.#context.download, store: 'require' },
        onWait() {},
      });
      const { chunks, fromStore, totalBytes, lengthIsExact, report } = opened;
      if (report !== undefined) this.#reports.set(index, report);
      let received = 0;
      for await (const chunk of chunks) {
        if (fromStore) return;
        received += chunk.length;
        this.#hooks.onBytes(index, received, lengthIsExact ? totalBytes : undefined);
      }
    } catch (error) {
      // No space for this one: none for the others.
      if (asHeadlightError(error).code === 'Quota') this.#next = this.#sources.length;
    }
  }
}
