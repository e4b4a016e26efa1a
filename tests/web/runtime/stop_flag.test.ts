// What a run shares with the page's thread: a flag of its own, and never the WASM memory.
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterEach, expect, it, vi } from 'vitest';
import { newStopFlag, raise } from '../../../web/runtime/src/stop_flag.js';
import { headlight, headlightLab } from '../built_package.js';

const model = fileURLToPath(new URL('../../../examples/models/default-q8_0.gguf', import.meta.url));

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

it('is raised once and for one run', () => {
  const [first, second] = [newStopFlag(), newStopFlag()];
  if (first === undefined || second === undefined) throw new Error('Node shares memory');
  raise(first);
  raise(first);
  expect([...first, ...second]).toEqual([1, 0]);
});

it('is not there where memory cannot be shared', () => {
  vi.stubGlobal('crossOriginIsolated', false);
  expect(newStopFlag()).toBeUndefined();
});

/** Bytes of all shared memory that a message gives away. */
function sharedBytes(value: unknown): number {
  if (value instanceof SharedArrayBuffer) return value.byteLength;
  if (ArrayBuffer.isView(value)) return sharedBytes(value.buffer);
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce((sum: number, part) => sum + sharedBytes(part), 0);
}

it('is all the shared memory that the page is given', async () => {
  const given: number[] = [];
  const emit = Worker.prototype.emit;
  vi.spyOn(Worker.prototype, 'emit').mockImplementation(function (this: Worker, event, ...args) {
    if (event === 'message') given.push(sharedBytes(args[0]));
    return emit.call(this, event as never, ...(args as never[]));
  });
  const engine = await headlight.Engine.load(model, { module: 'simd', threads: 2 });
  const session = engine.session();
  const capture = { headOutputs: true, residualNorms: true, logitLens: 'all' } as const;
  await session.complete([1, 5, 9], { maxTokens: 3, logprobs: 2, capture }).result();
  await engine.restore(await session.save());
  await engine.forward([1, 5], { logits: 'all', capture });
  await engine.dispose();
  const lab = await headlightLab.HeadLab.start({ module: 'simd', threads: 2 });
  const rows = (n: number) => new Float32Array(n).fill(0.5);
  const head = { nQHeads: 1, nKvHeads: 1, dQk: 16, dV: 16, q: rows(32), k: rows(32), v: rows(32) };
  await lab.attend({ ...head, capture: 'weights' });
  await lab.dispose();
  expect(Math.max(...given)).toBe(Int32Array.BYTES_PER_ELEMENT);
});
