// The package as its users get it: packed by `npm pack`, installed into a fresh folder with a small app around it.
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const project = path.resolve(import.meta.dirname, '../../..');
const packageDir = path.join(project, 'web/runtime');
const defaultModel = path.join(project, 'examples/models/default-q8_0.gguf');

export interface PackedFile {
  path: string;
  size: number;
}

export interface PackedApp {
  root: string;
  files: PackedFile[];
  remove(): void;
}

/** What both kinds of pages run: load, answer one question, tell the outcome by attributes of <body>. */
const MAIN = `
const { body } = document;
try {
  const engine = await Engine.load('/model.gguf', crossOriginIsolated ? { threads: 2 } : {});
  const run = engine.chat([{ role: 'user', content: 'Who are you?' }], { temperature: 0, maxTokens: 40 });
  const { text } = await run.result();
  body.dataset.runtime = JSON.stringify(engine.info.runtime);
  body.dataset.answer = text;
  await engine.dispose();
} catch (error) {
  body.dataset.error = String(error.stack ?? error) + ' ' + JSON.stringify(error.details ?? {});
}
body.dataset.done = 'true';
`;

const html = (script: string) => `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>App</title><link rel="icon" href="data:,"></head>
  <body><script type="module" src="${script}"></script></body>
</html>
`;

function npm(args: string[], cwd: string): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Folder `plain` is a page without a build step; `src` is an app for Vite, `webpack/src` one for webpack. */
export function packApp(): PackedApp {
  if (!existsSync(path.join(packageDir, 'dist/index.js'))) {
    throw new Error('the package is not built: run `npm run build`');
  }
  const root = mkdtempSync(path.join(tmpdir(), 'headlight-pack-'));
  const [packed] = JSON.parse(npm(['pack', '--json', '--pack-destination', root], packageDir)) as [
    { filename: string; files: PackedFile[] },
  ];
  write(root, 'package.json', JSON.stringify({ name: 'app', private: true, type: 'module' }));
  npm(['install', '--offline', '--no-audit', '--no-fund', `./${packed.filename}`], root);

  write(root, 'index.html', html('/src/main.ts'));
  write(root, 'src/main.ts', `import { Engine } from 'headlight-wasm';\n${MAIN}`);
  write(root, 'webpack/index.html', html('/dist/main.js'));
  write(root, 'webpack/src/index.js', `import { Engine } from 'headlight-wasm';\n${MAIN}`);
  write(root, 'plain/index.html', html('./main.js'));
  write(root, 'plain/main.js', `import { Engine } from './headlight-wasm/index.js';\n${MAIN}`);
  cpSync(
    path.join(root, 'node_modules/headlight-wasm/dist'),
    path.join(root, 'plain/headlight-wasm'),
    { recursive: true },
  );
  mkdirSync(path.join(root, 'public'));
  cpSync(defaultModel, path.join(root, 'public/model.gguf'));
  cpSync(defaultModel, path.join(root, 'plain/model.gguf'));
  cpSync(defaultModel, path.join(root, 'webpack/model.gguf'));
  return {
    root,
    files: packed.files,
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

export function write(root: string, name: string, text: string): void {
  mkdirSync(path.join(root, path.dirname(name)), { recursive: true });
  writeFileSync(path.join(root, name), text);
}

/** Every file under a folder, by its path in it. */
export function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' });
}
