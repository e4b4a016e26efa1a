// Runs a program that Emscripten linked for Node: `node run_wasm.mjs program.js [arguments]`.
// It exists for the V8 flags that relaxed SIMD needs before the first WebAssembly compile.
import { spawnSync } from 'node:child_process';
import process from 'node:process';

// V8 of Node 20 hides relaxed SIMD behind a flag, and its baseline compiler computes the relaxed dot product wrongly
// until a function tiers up. Node 22 has the instructions without a flag and refuses to start with an unknown one.
const firstNodeWithRelaxedSimd = 22;

export function relaxedSimdFlags(nodeVersion = process.versions.node) {
  const major = Number.parseInt(nodeVersion, 10);
  return major < firstNodeWithRelaxedSimd
    ? ['--experimental-wasm-relaxed-simd', '--no-liftoff']
    : [];
}

if (process.argv[1] === import.meta.filename) {
  const run = spawnSync(process.execPath, [...relaxedSimdFlags(), ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
  if (run.error) throw run.error;
  process.exit(run.status ?? 1);
}
