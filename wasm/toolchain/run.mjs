// Small helpers that the tasks share: run a program, say what is done, fail with a remedy.
// Node built-ins only: the tasks run before `npm ci` has.
import { spawn, spawnSync } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';

export const projectDir = path.resolve(import.meta.dirname, '../..');

/** A failure that is reported by its message alone, which names the remedy. */
export class TaskError extends Error {}

export function inProject(...parts) {
  return path.join(projectDir, ...parts);
}

export function note(text) {
  console.log(`   ${text}`);
}

/** Runs `work` under a printed heading and tells how long it took. */
export async function step(title, work) {
  const start = performance.now();
  console.log(`== ${title}`);
  const result = await work();
  console.log(`   done in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  return result;
}

/** The output of a short program, or undefined where it is missing or fails. */
export function outputOf(command, args) {
  const run = spawnSync(command, args, { encoding: 'utf8', cwd: projectDir });
  return run.status === 0 ? run.stdout : undefined;
}

export function isOnPath(command) {
  return outputOf('sh', ['-c', 'command -v "$1"', 'sh', command]) !== undefined;
}

/**
 * Runs a program in the project's folder and resolves to its exit code.
 * options.quiet: keep the output back unless the program fails.
 * options.toStderr: its output goes to standard error; standard output is for the caller's own.
 * options.onLine: sees each line of standard output, which is printed all the same.
 */
export function exitCodeOf(command, args, options = {}) {
  const { quiet = false, toStderr = false, onLine, env = {} } = options;
  return new Promise((resolve, reject) => {
    const piped = quiet || onLine !== undefined;
    const child = spawn(command, args, {
      cwd: projectDir,
      env: { ...process.env, ...env },
      stdio: piped ? ['ignore', 'pipe', 'pipe'] : ['ignore', toStderr ? 2 : 'inherit', 'inherit'],
    });
    const kept = [];
    if (piped) {
      child.stdout.on('data', (chunk) => (quiet ? kept.push(chunk) : process.stdout.write(chunk)));
      child.stderr.on('data', (chunk) => (quiet ? kept.push(chunk) : process.stderr.write(chunk)));
      if (onLine !== undefined) forEachLine(child.stdout, onLine);
    }
    child.on('error', (error) =>
      reject(new TaskError(`${command} could not be started: ${error.message}`)),
    );
    child.on('close', (code) => {
      if (code !== 0) for (const chunk of kept) process.stderr.write(chunk);
      resolve(code ?? 1);
    });
  });
}

function forEachLine(stream, onLine) {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    lines.forEach(onLine);
  });
  stream.on('end', () => rest !== '' && onLine(rest));
}

/** Like exitCodeOf, but a failure throws a TaskError with `options.remedy`. */
export async function run(command, args, options = {}) {
  const code = await exitCodeOf(command, args, options);
  if (code !== 0) {
    const what = `${path.basename(command)} ${args.slice(0, 3).join(' ')} ended with code ${code}.`;
    throw new TaskError(options.remedy === undefined ? what : `${what} ${options.remedy}`);
  }
}
