// Packages that only some tests need and that are too heavy for everybody's node_modules: each has a folder with a
// package.json and lock file of its own, and is installed when a test first asks for it.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { sameModules } from '../wasm/toolchain/setup.mjs';

const lockOf = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;

/** Does nothing where node_modules holds what the lock file asks for. Runs no package's scripts. */
export function installOnDemand(folder) {
  const installed = path.join(folder, 'node_modules/.package-lock.json');
  const wanted = path.join(folder, 'package-lock.json');
  if (existsSync(installed) && sameModules(lockOf(wanted), lockOf(installed))) return;
  console.log(`npm packages of ${folder}, once`);
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: folder,
    stdio: 'inherit',
  });
}
