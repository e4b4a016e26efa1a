// Patience that a sleep of the thread does not use up: what came meanwhile is seen before it ends.
import { afterEach, describe, expect, it } from 'vitest';
import { StartWatch } from '../../../web/runtime/src/start_watch.js';
import { TRANSFER_DEFAULTS, Transfer } from '../../../web/runtime/src/store/transfer.js';
import { afterWakingTime } from '../../../web/runtime/src/waking_timer.js';
import { FaultServer } from '../store/fault_server.js';
import { expectBytes, modelBytes } from '../store/loading.js';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
/** The thread can do nothing, as when its machine sleeps. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

let end: (() => void) | undefined;
afterEach(() => end?.());

describe('a timer of waking time', () => {
  it('ends after its time', async () => {
    const begun = performance.now();
    await new Promise<void>((resolve) => {
      end = afterWakingTime(200, resolve);
    });
    expect(performance.now() - begun).toBeGreaterThanOrEqual(190);
  });

  it('is not ended by a sleep that is longer', async () => {
    let ended = false;
    end = afterWakingTime(400, () => {
      ended = true;
    });
    standStill(600);
    await pause(100);
    expect(ended).toBe(false);
    await expect.poll(() => ended, { timeout: 5000 }).toBe(true);
  });

  it('does not end once it was ended', async () => {
    let ended = false;
    afterWakingTime(40, () => {
      ended = true;
    })();
    await pause(200);
    expect(ended).toBe(false);
  });
});

describe('a sleep', () => {
  it('while a thread pool starts is not taken for a hang', async () => {
    const errors: Error[] = [];
    const watch = new StartWatch(2, (error) => errors.push(error));
    end = () => watch.end();
    watch.reached('creating threads');
    standStill(4500);
    await pause(300);
    expect(errors).toEqual([]);
    // The pool's workers answer a moment later.
    watch.end();
    await pause(200);
    expect(errors).toEqual([]);
  });

  it('within a download is not taken for a silence, not even where nothing may be tried again', async () => {
    const server = new FaultServer();
    await server.start();
    end = () => void server.stop();
    const bytes = modelBytes(60_000);
    const url = server.serve('/model', { bytes, pieceBytes: 10_000, pauseMs: 60 });
    const context = { signal: new AbortController().signal, hashDecides: false };
    const options = { ...TRANSFER_DEFAULTS, retries: 0, stallMs: 300 };
    const transfer = await Transfer.open(url, undefined, context, options);
    const chunks: Uint8Array[] = [];
    for await (const chunk of transfer.chunks()) {
      chunks.push(chunk.slice());
      // As soon as it waits for the next one.
      if (chunks.length === 2) setTimeout(() => standStill(900), 5);
    }
    expectBytes(new Uint8Array(Buffer.concat(chunks)), bytes);
    expect(server.seen('/model')).toHaveLength(1);
  });
});
