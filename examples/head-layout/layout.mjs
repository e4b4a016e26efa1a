// One head layout, run from JavaScript with nothing but the package: 8 query heads on 2 KV heads, keys of width 48 and
// values of width 64, a window of 128 keys, an f16 cache. Prints what it costs and checks the fast kernel.
//   node examples/head-layout/layout.mjs [nKv]
import { attend } from 'headlight-wasm';

const layout = { nQHeads: 8, nKvHeads: 2, dQk: 48, dV: 64 };
const nKv = Number(process.argv[2] ?? 512);

// Any rows do; these are smooth and different for every head. A row is [heads, width], rotary positions already applied.
const rows = (nRows, nHeads, width, phase) =>
  Float32Array.from({ length: nRows * nHeads * width }, (_, i) => Math.sin(phase + i * 0.37) * 0.5);

const options = {
  ...layout,
  q: rows(1, layout.nQHeads, layout.dQk, 0.1), // one query: the newest token
  k: rows(nKv, layout.nKvHeads, layout.dQk, 0.2),
  v: rows(nKv, layout.nKvHeads, layout.dV, 0.3),
  window: 128,
  kvCache: { k: 'f16', v: 'f16' },
};

const fast = await attend(options);
const reference = await attend({ ...options, kernel: 'reference' });
const maxError = fast.out.reduce((m, x, i) => Math.max(m, Math.abs(x - reference.out[i])), 0);

const bytesPerToken = layout.nKvHeads * (layout.dQk + layout.dV) * 2;
console.log(`cache: ${bytesPerToken} bytes a token, ${fast.kvCacheBytes} bytes for ${nKv} tokens`);
console.log(`kernel: ${fast.kernel}, ${fast.milliseconds.toFixed(3)} ms`);
console.log(`largest difference from the reference: ${maxError.toExponential(2)}`);
if (!(maxError < 1e-4)) throw new Error('the kernel disagrees with the reference');
