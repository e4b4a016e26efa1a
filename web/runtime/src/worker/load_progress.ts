// How far a load is, over all files of a model: those being loaded and those that are downloaded ahead count together.
import type { LoadProgress } from '../types.js';

interface FileProgress {
  bytes: number;
  /** Undefined while unknown. */
  totalBytes: number | undefined;
}

/** People do not see more steps than this. */
const PROGRESS_INTERVAL_MS = 100;

/**
 * Reports not too often, and never less than before. What comes between two reports is told when the time for the next has
 * come, also where nothing follows it: a download that stalls shows all that had come.
 */
export class ProgressCounter {
  readonly #report: (progress: LoadProgress) => void;
  readonly #files: FileProgress[];
  #lastMs = 0;
  #later: ReturnType<typeof setTimeout> | undefined;
  #phase: LoadProgress['phase'] = 'header';

  constructor(nFiles: number, report: (progress: LoadProgress) => void) {
    this.#report = report;
    this.#files = Array.from({ length: nFiles }, () => ({ bytes: 0, totalBytes: undefined }));
  }

  get loadedBytes(): number {
    return this.#files.reduce((sum, file) => sum + loaded(file), 0);
  }

  begin(index: number, totalBytes: number | undefined): void {
    this.#file(index).totalBytes ??= totalBytes;
    this.phase('header');
  }

  /** What the header says is needed; it holds even where a server tells no length, or more than is needed. */
  knowBytes(index: number, bytes: number): void {
    this.#file(index).totalBytes = bytes;
  }

  bytes(index: number, received: number, phase: 'header' | 'weights'): void {
    this.#advance(index, received);
    if (phase !== this.#phase) this.phase(phase);
    else this.#reportSometimes();
  }

  /** Of a file whose turn has not come. */
  ahead(index: number, received: number, totalBytes: number | undefined): void {
    this.#file(index).totalBytes ??= totalBytes;
    this.#advance(index, received);
    this.#reportSometimes();
  }

  end(index: number, received: number): void {
    this.#advance(index, received);
    this.#file(index).totalBytes = loaded(this.#file(index));
    this.#reportNow();
  }

  phase(phase: LoadProgress['phase']): void {
    this.#phase = phase;
    this.#reportNow();
  }

  /** Says nothing from here on. */
  close(): void {
    clearTimeout(this.#later);
  }

  #file(index: number): FileProgress {
    return this.#files[index] as FileProgress;
  }

  #advance(index: number, received: number): void {
    const file = this.#file(index);
    file.bytes = Math.max(file.bytes, received);
  }

  #reportSometimes(): void {
    const leftMs = this.#lastMs + PROGRESS_INTERVAL_MS - performance.now();
    if (leftMs <= 0) this.#reportNow();
    else this.#later ??= setTimeout(() => this.#reportNow(), leftMs);
  }

  #reportNow(): void {
    clearTimeout(this.#later);
    this.#later = undefined;
    this.#lastMs = performance.now();
    let totalBytes: number | undefined = 0;
    for (const file of this.#files) {
      if (file.totalBytes === undefined) totalBytes = undefined;
      else if (totalBytes !== undefined) totalBytes += file.totalBytes;
    }
    this.#report({
      phase: this.#phase,
      loadedBytes: this.loadedBytes,
      ...(totalBytes === undefined ? {} : { totalBytes }),
    });
  }
}

function loaded({ bytes, totalBytes }: FileProgress): number {
  return Math.min(bytes, totalBytes ?? bytes);
}
