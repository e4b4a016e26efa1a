// `npm run fuzz -- [TARGET...] [--runs N] [--seconds N] [--seed N]`: builds the libFuzzer targets (Clang), makes their seeds and
// runs them: 60 seconds each unless told. The corpus grows in build/fuzz from run to run. A finding is left there as a file
// and ends with exit code 1; it becomes a test of its own (tests/cpp/gguf/gguf_hostile_test.cc and its like).
import { mkdirSync, readdirSync } from 'node:fs';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { buildPreset } from '../../wasm/toolchain/build.mjs';
import { exitCodeOf, inProject, isOnPath, run } from '../../wasm/toolchain/run.mjs';

/** Name to the options of libFuzzer that fit it. */
export const targets = {
  gguf: ['-max_len=8192', `-dict=${inProject('tests/fuzz/gguf.dict')}`],
  metadata: ['-max_len=4096', `-dict=${inProject('tests/fuzz/gguf.dict')}`],
  options: ['-max_len=1024'],
  packing: ['-max_len=4096'],
  session: ['-max_len=65536'],
};
const folder = inProject('build/fuzz');
// Twice as many runs in the same time as with what the sanitiser does unless told.
const sanitizer = 'detect_stack_use_after_return=0:malloc_context_size=3:quarantine_size_mb=8';

export const canFuzz = () => isOnPath('clang++-19');

export async function buildFuzzers() {
  await buildPreset('native-fuzz', [
    'make_corpus',
    ...Object.keys(targets).map((t) => `${t}_fuzz`),
  ]);
  for (const name of Object.keys(targets)) {
    mkdirSync(`${folder}/${name}`, { recursive: true });
    mkdirSync(`${folder}/found/${name}`, { recursive: true });
    mkdirSync(`${folder}/seeds/${name}`, { recursive: true });
  }
  await run(inProject('build/native-fuzz/tests/fuzz/make_corpus'), [`${folder}/seeds`]);
}

/** @returns {Promise<{runs: number, good: boolean}>} */
export async function fuzz(name, { runs, seconds, seed }) {
  let done = 0;
  const options = [
    ...targets[name],
    '-malloc_limit_mb=512',
    '-print_final_stats=1',
    `-artifact_prefix=${folder}/found/${name}/`,
    ...(runs === undefined ? [] : [`-runs=${runs}`]),
    ...(seconds === undefined ? [] : [`-max_total_time=${seconds}`]),
    ...(seed === undefined ? [] : [`-seed=${seed}`]),
  ];
  // libFuzzer speaks on its error output.
  const command = `"$0" "$@" 2>&1 | grep -v -E '^#[0-9]+.(NEW|REDUCE|pulse)' ; exit \${PIPESTATUS[0]}`;
  const code = await exitCodeOf(
    'bash',
    [
      '-c',
      command,
      inProject(`build/native-fuzz/tests/fuzz/${name}_fuzz`),
      ...options,
      `${folder}/${name}`,
      `${folder}/seeds/${name}`,
    ],
    {
      env: { ASAN_OPTIONS: sanitizer },
      onLine: (line) => {
        const match = /stat::number_of_executed_units:\s*(\d+)/.exec(line);
        if (match) done = Number(match[1]);
      },
    },
  );
  return { runs: done, good: code === 0 };
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      runs: { type: 'string' },
      seconds: { type: 'string' },
      seed: { type: 'string' },
    },
  });
  const unknown = positionals.filter((name) => !(name in targets));
  if (unknown.length > 0 || !canFuzz()) {
    console.error(
      unknown.length > 0
        ? `Unknown target: ${unknown}. There are ${Object.keys(targets).join(', ')}.`
        : 'The fuzz targets need clang++-19: npm run setup',
    );
    return 2;
  }
  await buildFuzzers();
  const names = positionals.length > 0 ? positionals : Object.keys(targets);
  const limits = { ...values, ...(values.runs || values.seconds ? {} : { seconds: '60' }) };
  let isGood = true;
  for (const name of names) {
    const { runs, good } = await fuzz(name, limits);
    const found = readdirSync(`${folder}/found/${name}`).length;
    console.log(`fuzz ${name}: ${runs} runs, ${found} files in build/fuzz/found/${name}`);
    isGood &&= good;
  }
  return isGood ? 0 : 1;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.exitCode = await main();
}
