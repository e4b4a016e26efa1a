// `npm test`: builds what each stage needs, runs every test and adds up what the runners counted. The last line it
// prints is `N passed, N failed, N skipped`. `npm test -- STAGE...` runs some of the stages.
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import process from 'node:process';
import { buildModules, buildPreset, buildWeb, wasmPresets } from '../../wasm/toolchain/build.mjs';
import { exitCodeOf, inProject, projectDir, TaskError } from '../../wasm/toolchain/run.mjs';
import { relaxedSimdFlags } from '../../wasm/toolchain/run_wasm.mjs';
import { runChecks } from './run_checks.mjs';

// Each stage resolves to {passed, failed, skipped}. native-release is left to `npm run build:native` and ctest: its
// optimiser is the WASM builds' own, and they all run here.
const stages = {
  check: runChecks,
  native: async () => {
    await buildPreset('native-debug');
    const counts = await doctest('build/native-debug/tests/cpp/headlight_tests', []);
    return sum(counts, await cppExamples('build/native-debug/examples'));
  },
  fuzz: async () => {
    const { buildFuzzers, canFuzz, fuzz, targets } = await import('../fuzz/run.mjs');
    const counts = { passed: 0, failed: 0, skipped: 0 };
    if (!canFuzz()) {
      console.log('Skipped: the fuzz targets need clang++-19 (npm run setup)');
      return { ...counts, skipped: Object.keys(targets).length };
    }
    await buildFuzzers();
    for (const name of Object.keys(targets)) {
      const { runs, good } = await fuzz(name, fuzzLimits);
      console.log(`fuzz ${name}: ${runs} runs`);
      counts[good && runs > 0 ? 'passed' : 'failed'] += 1;
    }
    return counts;
  },
  wasm: async () => {
    await buildModules(['headlight_modules', 'headlight_tests']);
    const counts = [];
    for (const preset of wasmPresets) {
      const program = `build/${preset}/tests/cpp/headlight_tests.js`;
      counts.push(await doctest('node', [...relaxedSimdFlags(), program]));
    }
    return counts.reduce(sum);
  },
  web: async () => {
    await buildWeb();
    return vitest('web');
  },
  browser: () => vitest('browser'),
};

// A short run: `npm run fuzz` says how a long one is started.
const fuzzLimits = { seconds: 15, runs: 200_000, seed: 1 };

/** @returns {Promise<number>} the exit code */
export async function runTests(args) {
  const unknown = args.filter((name) => !(name in stages));
  if (unknown.length > 0) {
    throw new TaskError(`Unknown stage: ${unknown}. There are ${Object.keys(stages).join(', ')}.`);
  }
  const names = args.length > 0 ? args : Object.keys(stages);
  const rows = [];
  for (const name of names) {
    const start = performance.now();
    console.log(`\n==== ${name}`);
    const { counts, broken } = await runStage(stages[name]);
    rows.push({ name, ...counts, seconds: ((performance.now() - start) / 1000).toFixed(0) });
    // What comes after a build that failed would only repeat it.
    if (broken) break;
  }
  return report(rows);
}

async function runStage(stage) {
  try {
    return { counts: await stage(), broken: false };
  } catch (error) {
    if (!(error instanceof TaskError)) throw error;
    console.error(`Failed: ${error.message}`);
    return { counts: { passed: 0, failed: 1, skipped: 0 }, broken: true };
  }
}

function report(rows) {
  console.log('');
  for (const { name, passed, failed, skipped, seconds } of rows) {
    console.log(`${name}: ${passed} passed, ${failed} failed, ${skipped} skipped (${seconds} s)`);
  }
  const total = rows.reduce(sum);
  const mayNotSkip = process.env.CI === 'true' && existsSync(inProject('../shared'));
  if (mayNotSkip && total.skipped > 0) {
    console.error(
      'Tests were skipped although ../shared is there: that counts as a failure in CI.',
    );
  }
  console.log(summaryLine(total));
  return isGood(total, mayNotSkip) ? 0 : 1;
}

/** Good: something ran, nothing failed, and nothing was skipped where nothing may be. */
export function isGood({ passed, failed, skipped }, mayNotSkip) {
  return passed > 0 && failed === 0 && !(mayNotSkip && skipped > 0);
}

export function summaryLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

function sum(a, b) {
  return {
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    skipped: a.skipped + b.skipped,
  };
}

async function doctest(command, args) {
  console.log(`-- ${args.at(-1) ?? command}`);
  let counts;
  const program = args.length === 0 ? inProject(command) : command;
  const code = await exitCodeOf(program, [...args, '--no-colors'], {
    onLine: (line) => {
      counts = doctestCounts(line) ?? counts;
    },
  });
  return withExitCode(counts, code);
}

/** Each C++ example counts as one test, passed when it exits with 0. */
async function cppExamples(folder) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const programs = existsSync(inProject(folder)) ? readdirSync(inProject(folder)) : [];
  for (const program of programs) {
    console.log(`-- ${program}`);
    const code = await exitCodeOf(inProject(folder, program), []);
    counts[code === 0 ? 'passed' : 'failed'] += 1;
  }
  return counts;
}

/** The counts in doctest's closing line, or undefined for any other line. */
export function doctestCounts(line) {
  const match = /test cases:\s*\d+ \|\s*(\d+) passed \|\s*(\d+) failed \|\s*(\d+) skipped/.exec(
    line,
  );
  if (match === null) return undefined;
  const [passed, failed, skipped] = match.slice(1).map(Number);
  return { passed, failed, skipped };
}

/** A runner that ended badly without counting a failure (a crash, a leak) has failed once. */
export function withExitCode(counts, code) {
  const known = counts ?? { passed: 0, failed: 0, skipped: 0 };
  const crashed = (code !== 0 && known.failed === 0) || counts === undefined;
  return crashed ? { ...known, failed: known.failed + 1 } : known;
}

async function vitest(project) {
  mkdirSync(inProject('build/test'), { recursive: true });
  const output = `build/test/${project}.json`;
  const code = await exitCodeOf('node', [
    inProject('node_modules/vitest/vitest.mjs'),
    ...['run', '--root', projectDir, '--project', project, '--passWithNoTests'],
    ...['--reporter=default', '--reporter=json', `--outputFile.json=${output}`],
  ]);
  return withExitCode(vitestCounts(JSON.parse(readFileSync(inProject(output), 'utf8'))), code);
}

/** The counts in vitest's JSON report. A file that failed to load has no tests: it counts as one failure. */
export function vitestCounts(report) {
  const unloaded = report.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  );
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + unloaded.length,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}
