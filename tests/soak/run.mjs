// `npm run soak -- [--minutes N] [--seed N] [--json]`: the soak tests for a long time (20 minutes unless told), with the sum of
// what they did: runs, faults injected, what was lost. Exit code 1 if anything was lost or a test failed. It needs what
// `npm run build` makes.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { exitCodeOf, inProject, projectDir } from '../../wasm/toolchain/run.mjs';

const DEFAULT_MINUTES = 20;

const FILES = [
  'tests/soak',
  'tests/web/runtime/abort.test.ts',
  'tests/web/runtime/abort_load.test.ts',
  'tests/web/runtime/preflight.test.ts',
  'tests/web/store/stored_source.test.ts',
  'tests/browser/offline.test.ts',
];

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: String(DEFAULT_MINUTES) },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    json: { type: 'boolean', default: false },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);
if (!(minutes > 0) || !Number.isSafeInteger(seed)) {
  console.error('usage: npm run soak -- [--minutes N] [--seed N] [--json]');
  process.exit(2);
}
const needed = ['web/runtime/dist/wasm/headlight-simd-threads.wasm', 'build/pages/index.html'];
if (!needed.every((file) => existsSync(inProject(file)))) {
  console.error('the package or its pages are not built: run `npm run build` first');
  process.exit(2);
}

const folder = mkdtempSync(path.join(tmpdir(), 'headlight-soak-'));
const file = path.join(folder, 'figures');
writeFileSync(file, '');
const started = performance.now();
if (!values.json) console.log(`Soak of ${minutes} minutes, seed ${seed}`);
const code = await exitCodeOf(
  'node',
  [
    inProject('node_modules/vitest/vitest.mjs'),
    ...['run', '--root', projectDir, '--project', 'web', '--project', 'browser'],
    ...FILES,
    // One after another: memory and latencies are measured.
    '--no-file-parallelism',
  ],
  {
    toStderr: values.json,
    env: {
      HEADLIGHT_SOAK_MINUTES: String(minutes),
      HEADLIGHT_SEED: String(seed),
      HEADLIGHT_SOAK_FIGURES: file,
    },
  },
);
const parts = readFileSync(file, 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line));
rmSync(folder, { recursive: true });

const sum = (key) => parts.reduce((total, part) => total + part[key], 0);
const total = { runs: sum('runs'), faults: sum('faults'), lost: sum('lost') };
const seconds = Math.round((performance.now() - started) / 1000);
const good = code === 0 && total.lost === 0 && parts.length > 0;
if (values.json)
  console.log(JSON.stringify({ minutes, seed, seconds, ...total, good, parts }, null, 2));
else {
  for (const part of parts) console.log(JSON.stringify(part));
  console.log(
    `seed ${seed}, ${seconds} s: ${total.runs} runs, ${total.faults} faults injected, ${total.lost} lost`,
  );
}
process.exitCode = good ? 0 : 1;
