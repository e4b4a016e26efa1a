// `npm run build`: dist/ of the package. tsc emits what runs on the page's thread, file by file, with declarations; each
// worker is bundled into one file without imports, so that users' bundlers can take it as it is. The WASM modules in
// dist/wasm are the C++ build's.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { rolldown } from 'rolldown';

const here = import.meta.dirname;
const dist = path.join(here, 'dist');

/** Old files must not be packed; the modules are left alone. */
function clean() {
  if (!existsSync(dist)) return;
  for (const name of readdirSync(dist)) {
    if (name !== 'wasm') rmSync(path.join(dist, name), { recursive: true });
  }
}

function emit() {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const { status } = spawnSync(
    process.execPath,
    [tsc, '--project', path.join(here, 'tsconfig.build.json')],
    {
      stdio: 'inherit',
    },
  );
  if (status !== 0) throw new Error('tsc found errors');
}

/** Resolves to the folders of the npm packages that ended up in the bundle. */
async function bundle(entry, file, platform) {
  const build = await rolldown({
    input: path.join(here, 'src/worker', entry),
    platform,
    // `./x.js` in the sources means the x.ts beside it.
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    external: platform === 'node' ? [/^node:/] : [],
    onLog(level, log) {
      throw new Error(`${file}: ${level}: ${log.message}`);
    },
  });
  const { output } = await build.write({
    file: path.join(dist, file),
    format: platform === 'node' ? 'es' : 'iife',
    codeSplitting: false,
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: false } },
  });
  await build.close();
  if (output.length !== 1) throw new Error(`${file}: one file was expected, got ${output.length}`);
  checkWorker(file, platform, output[0]);
  return new Set(
    output[0].moduleIds.flatMap((id) => /.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []),
  );
}

/** What users' bundlers rely on. */
function checkWorker(file, platform, { code, imports, isEntry }) {
  const foreign = imports.filter((name) => !name.startsWith('node:'));
  if (!isEntry || foreign.length > 0) throw new Error(`${file} imports ${foreign}`);
  const marked = /import\(\s*\/\* @vite-ignore \*\/\s*\/\* webpackIgnore: true \*\//.test(code);
  if (platform === 'browser' && !marked) {
    throw new Error(`${file}: the marks that keep bundlers from following import(url) are gone`);
  }
}

/** The licences of what the workers contain, as these ask for. */
function writeNotices(folders) {
  const notices = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(path.join(folder, 'package.json'), 'utf8'),
    );
    const text = readFileSync(path.join(folder, 'LICENSE'), 'utf8').trim();
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  writeFileSync(
    path.join(dist, 'THIRD_PARTY_LICENSES.txt'),
    notices.join(`\n${'-'.repeat(72)}\n\n`),
  );
}

clean();
emit();
const bundled = await Promise.all([
  bundle('worker.ts', 'worker.js', 'browser'),
  bundle('worker_node.ts', 'worker-node.js', 'node'),
]);
writeNotices(new Set(bundled.flatMap((folders) => [...folders])));
