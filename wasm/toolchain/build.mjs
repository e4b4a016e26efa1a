// Builds the C++ presets, the npm package with its modules, the pages and the command line.
// CMake, tsc and Vite know what is up to date; this file knows the order and where things go.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { inProject, note, run, step, TaskError } from './run.mjs';

export const nativePresets = ['native-debug', 'native-release'];
export const wasmPresets = [
  'wasm-simd',
  'wasm-simd-threads',
  'wasm-relaxed',
  'wasm-relaxed-threads',
];

// The promise of the package: a module is a small download. MB and kB are 1e6 and 1e3.
export const maxModuleBytes = 500_000;

const moduleDir = 'web/runtime/dist/wasm';

export function buildPreset(preset, targets = ['all']) {
  return step(`build ${preset}`, async () => {
    const remedy = 'The message above says why; `npm run setup` gets what a Debian machine lacks.';
    await run('cmake', ['--preset', preset], { quiet: true, remedy });
    await run('cmake', ['--build', '--preset', preset, '--target', ...targets], { quiet: true });
  });
}

/** The four modules of the package, and for the tests also their doctest binaries. */
export async function buildModules(targets = ['headlight_modules']) {
  for (const preset of wasmPresets) await buildPreset(preset, targets);
  await step(`modules into ${moduleDir}`, async () => installModules());
}

function installModules() {
  mkdirSync(inProject(moduleDir), { recursive: true });
  for (const preset of wasmPresets) {
    const from = inProject('build', preset, 'module');
    if (!existsSync(from)) continue;
    for (const name of readdirSync(from).filter((file) => !file.endsWith('.node.wasm'))) {
      let bytes = readFileSync(path.join(from, name));
      if (name.endsWith('.wasm')) checkModuleSize(name, bytes.length);
      if (name.endsWith('.node.mjs')) bytes = loadingTheSharedWasm(name, bytes.toString());
      writeIfChanged(inProject(moduleDir, name), bytes);
    }
  }
}

/** The build has asserted that x.node.wasm equals x.wasm: the Node glue is made to name the latter by default. */
export function loadingTheSharedWasm(name, glue) {
  const ownName = name.replace(/\.mjs$/, '.wasm');
  if (!glue.includes(`"${ownName}"`)) {
    throw new TaskError(
      `${name} does not name ${ownName}: this Emscripten's glue has another form.`,
    );
  }
  return Buffer.from(glue.replaceAll(`"${ownName}"`, `"${ownName.replace('.node', '')}"`));
}

export function checkModuleSize(name, bytes) {
  if (bytes > maxModuleBytes) {
    throw new TaskError(
      `${name} has ${bytes} bytes, over the limit of ${maxModuleBytes}: find what grew (\`wasm-objdump -h\`, twiggy).`,
    );
  }
  note(`${name}: ${(bytes / 1000).toFixed(1)} kB`);
}

function writeIfChanged(to, bytes) {
  if (existsSync(to) && readFileSync(to).equals(bytes)) return;
  writeFileSync(to, bytes);
}

/** Packages, pages and the command line; the modules must have been built. */
export async function buildWeb() {
  await step('npm package', () => run('npm', ['run', '--silent', 'build', '-w', 'headlight-wasm']));
  if (existsSync(inProject('web/pages/vite.config.ts'))) {
    await step('pages', () =>
      run('node', [...vite, 'build', '--config', 'web/pages/vite.config.ts']),
    );
  }
  if (existsSync(inProject('web/cli/tsconfig.json'))) {
    await step('command line', () => run('node', [...tsc, '--project', 'web/cli/tsconfig.json']));
  }
}

export const tsc = [inProject('node_modules/typescript/bin/tsc')];
export const vite = [inProject('node_modules/vite/bin/vite.js')];
