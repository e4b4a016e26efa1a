// Gets what the build and the tests need and is not there yet: npm packages, Debian packages, Emscripten.
// Every step looks first and does nothing where nothing is missing.
import { existsSync, readFileSync } from 'node:fs';
import process from 'node:process';
import { inProject, isOnPath, note, outputOf, run, step, TaskError } from './run.mjs';

const minimumNode = [20, 19];

// What a Debian machine needs beside Node. Emscripten 3.1.69 is made for LLVM 19.
const buildPackages = [
  ...['clang-19', 'lld-19', 'llvm-19', 'cmake', 'ninja-build', 'python3', 'nlohmann-json3-dev'],
];
const testPackages = [
  ...['libclang-rt-19-dev', 'g++', 'clang-format-19', 'clang-tidy-19'],
  ...['chromium', 'firefox-esr', 'webkit2gtk-driver', 'xvfb'],
];
const buildCommands = ['cmake', 'ninja', 'python3'];
const testCommands = ['c++', 'clang-format'];

/** forTests: also the browsers and the tools that only the tests and checks use. */
export async function setUp({ forTests }) {
  checkNode();
  await installNodeModules();
  await installSystemPackages(forTests);
  await installEmscripten();
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const [wantMajor, wantMinor] = minimumNode;
  if (major < wantMajor || (major === wantMajor && minor < wantMinor)) {
    throw new TaskError(
      `Node ${process.versions.node} is too old: install Node ${minimumNode.join('.')} or newer.`,
    );
  }
}

async function installNodeModules() {
  const lock = JSON.parse(readFileSync(inProject('package-lock.json'), 'utf8'));
  const installedPath = inProject('node_modules/.package-lock.json');
  const installed = existsSync(installedPath)
    ? JSON.parse(readFileSync(installedPath, 'utf8'))
    : undefined;
  if (installed !== undefined && sameModules(lock.packages, installed.packages)) return;
  await step('npm packages', () =>
    run('npm', ['ci', '--no-audit', '--no-fund'], {
      remedy: 'Check the network and `npm config list`, then run the command again.',
    }),
  );
}

/**
 * Whether node_modules (its own lock file) holds what package-lock.json asks for. Packages for other systems are
 * optional and not installed; the root and the workspaces' folders have no version to compare.
 */
export function sameModules(wanted, installed) {
  const inModules = (name) => name.startsWith('node_modules/');
  const wantedHold = Object.entries(wanted).every(([name, entry]) => {
    const found = installed[name];
    if (!inModules(name)) return true;
    if (found === undefined) return entry.optional === true;
    return found.version === entry.version && found.integrity === entry.integrity;
  });
  return wantedHold && Object.keys(installed).every((name) => !inModules(name) || name in wanted);
}

async function installSystemPackages(forTests) {
  if (!isOnPath('dpkg') || !isOnPath('apt-get')) {
    checkCommands(forTests ? [...buildCommands, ...testCommands] : buildCommands);
    return;
  }
  const wanted = forTests ? [...buildPackages, ...testPackages] : buildPackages;
  const missing = wanted.filter((name) => !isInstalled(name));
  if (missing.length === 0) return;
  const prefix = process.getuid() === 0 ? [] : ['sudo'];
  const remedy = `Install them as root: apt-get install --no-install-recommends ${missing.join(' ')}`;
  if (prefix.length > 0 && !isOnPath('sudo')) {
    throw new TaskError(`Debian packages are missing, and there is no sudo here. ${remedy}`);
  }
  await step(`Debian packages: ${missing.join(' ')}`, async () => {
    const aptGet = (...args) => {
      const [command, ...rest] = [
        ...prefix,
        ...['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq'],
        ...['-o', 'DPkg::Lock::Timeout=600', ...args],
      ];
      return run(command, rest, { remedy, quiet: true });
    };
    await aptGet('update');
    await aptGet('install', '-y', '--no-install-recommends', ...missing);
  });
}

function isInstalled(debianPackage) {
  return outputOf('dpkg', ['-s', debianPackage])?.includes('Status: install ok installed') === true;
}

function checkCommands(commands) {
  const missing = commands.filter((command) => !isOnPath(command));
  if (missing.length > 0) {
    throw new TaskError(`Not on PATH: ${missing.join(', ')}. Install them, then run this again.`);
  }
}

async function installEmscripten() {
  const version = /^emcc .* (\d+\.\d+\.\d+)/.exec(outputOf('emcc', ['--version']) ?? '')?.[1];
  if (version !== undefined && !isOlder(version, minimumEmscripten())) {
    note(`Emscripten ${version} from PATH`);
    return;
  }
  if (!isOnPath('apt-get')) {
    throw new TaskError(
      `Emscripten ${minimumEmscripten()} or newer is needed: activate a current emsdk so that emcc is on PATH.`,
    );
  }
  // Says what it does where there is something to do.
  await run('bash', ['wasm/toolchain/emscripten.sh'], {
    remedy: 'Or activate a current emsdk so that emcc is on PATH.',
  });
}

/** The one place that says the minimum is the CMake toolchain file. */
function minimumEmscripten() {
  const text = readFileSync(inProject('wasm/toolchain/emscripten.cmake'), 'utf8');
  return /HEADLIGHT_EMSCRIPTEN_MINIMUM (\d+\.\d+\.\d+)/.exec(text)[1];
}

export function isOlder(version, minimum) {
  const [a, b] = [version, minimum].map((text) => text.split('.').map(Number));
  const differing = a.findIndex((part, i) => part !== b[i]);
  return differing >= 0 && a[differing] < b[differing];
}
