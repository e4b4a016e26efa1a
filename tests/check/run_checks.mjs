// `npm run check`: formatting, lint, types and the project's own rules. Each is one check, passed or failed.
import { existsSync, readdirSync } from 'node:fs';
import { buildPreset, tsc } from '../../wasm/toolchain/build.mjs';
import {
  exitCodeOf,
  inProject,
  isOnPath,
  outputOf,
  projectDir,
} from '../../wasm/toolchain/run.mjs';
import { decoderNameFindings, forbiddenTextFindings } from './forbidden_text.mjs';
import { includeDirectionFindings } from './include_direction.mjs';
import { sizeFindings } from './size_limits.mjs';
import { isCpp, sourceFiles } from './source_files.mjs';

/** @returns {Promise<{passed: number, failed: number, skipped: number}>} */
export async function runChecks() {
  const files = sourceFiles(projectDir);
  const rule = (findings) => async () => {
    for (const finding of findings) console.error(finding);
    return findings.length === 0;
  };
  const checks = {
    'biome: format and lint': () => succeeds('node', [biome, 'check', '--error-on-warnings', '.']),
    'clang-format': () => clangFormat(files.filter(isCpp)),
    'tsc: types': typeCheck,
    'include direction': rule(includeDirectionFindings(files)),
    'size limits': rule(sizeFindings(files)),
    'decoder names no architecture': rule(decoderNameFindings(files)),
    'forbidden text': rule(forbiddenTextFindings(files)),
  };
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const [name, check] of Object.entries(checks)) {
    const passed = await check();
    console.log(`${passed ? 'ok    ' : 'FAILED'} ${name}`);
    counts[passed ? 'passed' : 'failed'] += 1;
  }
  return counts;
}

const biome = inProject('node_modules/@biomejs/biome/bin/biome');

async function succeeds(command, args) {
  return (await exitCodeOf(command, args, { quiet: true })) === 0;
}

// The releases format differently: 19, as the compiler, is the one that decides where it is present.
function clangFormatProgram() {
  return isOnPath('clang-format-19') ? 'clang-format-19' : 'clang-format';
}

function clangFormat(files) {
  const offending = files.filter(
    (file) => outputOf(clangFormatProgram(), ['--dry-run', '-Werror', file.path]) === undefined,
  );
  for (const file of offending)
    console.error(`${file.path}: not formatted; \`npm run format\` does it`);
  return offending.length === 0;
}

/** `npm run format`: rewrites what the first two checks would complain about, where that can be done by rule. */
export async function format() {
  const files = sourceFiles(projectDir).filter(isCpp);
  await exitCodeOf('node', [biome, 'check', '--write', '.']);
  await exitCodeOf(clangFormatProgram(), ['-i', ...files.map((file) => file.path)]);
}

async function typeCheck() {
  const webProjects = readdirSync(inProject('web'))
    .map((folder) => `web/${folder}/tsconfig.json`)
    .filter((file) => existsSync(inProject(file)));
  const results = [];
  for (const project of ['tsconfig.json', ...webProjects]) {
    results.push(await succeeds('node', [...tsc, '--noEmit', '--project', project]));
  }
  return results.every(Boolean);
}

/** `npm run tidy`: clang-tidy over the C++ side. Minutes, so it is no part of `npm test`. */
export async function tidy() {
  await buildPreset('native-debug', ['headlight', 'headlight_tests']);
  const program = isOnPath('run-clang-tidy-19') ? 'run-clang-tidy-19' : 'run-clang-tidy';
  return exitCodeOf(program, ['-quiet', '-p', 'build/native-debug', '/(src|tests/cpp)/']);
}
