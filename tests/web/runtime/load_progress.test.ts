// The one progress of a load over several files.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { LoadProgress } from '../../../web/runtime/src/types.js';
import { ProgressCounter } from '../../../web/runtime/src/worker/load_progress.js';

function counter(nFiles: number) {
  const seen: LoadProgress[] = [];
  const progress = new ProgressCounter(nFiles, (one) => seen.push(one));
  return { progress, seen, last: () => seen.at(-1) };
}

describe('progress', () => {
  it('counts what came ahead, and does not go back when that file is then read', () => {
    const { progress, last } = counter(2);
    progress.begin(0, 100);
    progress.bytes(0, 10, 'weights');
    progress.ahead(1, 50, 80);
    progress.end(0, 100);
    expect(last()).toEqual({ phase: 'weights', loadedBytes: 150, totalBytes: 180 });
    progress.begin(1, 80);
    progress.bytes(1, 20, 'weights');
    expect(last()).toMatchObject({ loadedBytes: 150, totalBytes: 180 });
    progress.bytes(1, 60, 'header');
    expect(last()).toMatchObject({ loadedBytes: 160 });
  });

  it('has no total while the length of any file is unknown', () => {
    const { progress, last } = counter(2);
    progress.begin(0, 100);
    expect(last()).toEqual({ phase: 'header', loadedBytes: 0 });
    progress.ahead(1, 5, undefined);
    progress.phase('tokenizer');
    expect(last()).toEqual({ phase: 'tokenizer', loadedBytes: 5 });
    progress.knowBytes(1, 70);
    progress.phase('weights');
    expect(last()).toEqual({ phase: 'weights', loadedBytes: 5, totalBytes: 170 });
  });

  it('counts no more than a file needs', () => {
    const { progress, last } = counter(1);
    progress.begin(0, undefined);
    progress.knowBytes(0, 100);
    progress.bytes(0, 250, 'weights');
    progress.end(0, 250);
    expect(last()).toEqual({ phase: 'weights', loadedBytes: 100, totalBytes: 100 });
  });
});

describe('progress in time', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('of a burst is told a little later, once, also where nothing follows', () => {
    const { progress, seen, last } = counter(1);
    progress.begin(0, 100);
    progress.bytes(0, 1, 'weights');
    for (let bytes = 2; bytes <= 50; bytes++) progress.bytes(0, bytes, 'weights');
    expect(last()).toMatchObject({ loadedBytes: 1 });
    const nSeen = seen.length;
    vi.advanceTimersByTime(1000);
    expect(last()).toMatchObject({ loadedBytes: 50 });
    expect(seen).toHaveLength(nSeen + 1);
  });

  it('ends with the load', () => {
    const { progress, seen } = counter(1);
    progress.begin(0, 100);
    progress.bytes(0, 1, 'weights');
    progress.bytes(0, 2, 'weights');
    const nSeen = seen.length;
    progress.close();
    vi.advanceTimersByTime(1000);
    expect(seen).toHaveLength(nSeen);
  });
});
