// The tasks behind the npm scripts: `node wasm/toolchain/tasks.mjs setup|start|test|build|check|format|tidy`.
// A fresh clone has no node_modules yet, so what needs a package is imported after the set-up.
import process from 'node:process';
import { parseArgs } from 'node:util';
import { buildModules, buildPreset, buildWeb, nativePresets } from './build.mjs';
import { inProject, TaskError } from './run.mjs';
import { setUp } from './setup.mjs';

const defaultPort = 8080;

const builds = {
  native: async () => {
    for (const preset of nativePresets) await buildPreset(preset);
  },
  wasm: () => buildModules(['all', 'headlight_modules']),
  web: buildWeb,
};

const tasks = {
  setup: () => setUp({ forTests: true }),
  start,
  async test(args) {
    await setUp({ forTests: true });
    const { runTests } = await import('../../tests/check/run_tests.mjs');
    return runTests(args);
  },
  async build(args) {
    const names = args.length > 0 ? args : Object.keys(builds);
    const unknown = names.filter((name) => !(name in builds));
    if (unknown.length > 0) {
      throw new TaskError(
        `Unknown build: ${unknown}. There are ${Object.keys(builds).join(', ')}.`,
      );
    }
    await setUp({ forTests: names.includes('native') });
    for (const name of names) await builds[name]();
  },
  async check() {
    await setUp({ forTests: true });
    const { runChecks } = await import('../../tests/check/run_checks.mjs');
    return (await runChecks()).failed === 0 ? 0 : 1;
  },
  async format() {
    await setUp({ forTests: true });
    const { format } = await import('../../tests/check/run_checks.mjs');
    return format();
  },
  async tidy() {
    await setUp({ forTests: true });
    const { tidy } = await import('../../tests/check/run_checks.mjs');
    return tidy();
  },
};

async function start(args) {
  const { port, isolation } = startOptions(args);
  await setUp({ forTests: false });
  await buildModules();
  await buildWeb();
  const { serve } = await import('../../web/serve.mjs');
  const server = await serve({ mounts: { '/': inProject('build/pages') }, port, isolation });
  console.log(`\nHeadlight runs at ${server.url} (Ctrl+C ends it)`);
  if (!isolation) console.log('Served without COOP and COEP: pages get the single-thread module.');
}

function startOptions(args) {
  let values;
  try {
    ({ values } = parseArgs({
      args,
      options: {
        port: { type: 'string', default: String(defaultPort) },
        'no-isolation': { type: 'boolean', default: false },
      },
    }));
  } catch (error) {
    throw new TaskError(`${error.message}. Known: --port N, --no-isolation.`);
  }
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new TaskError(`--port ${values.port}: a port is a whole number from 0 (any) to 65535.`);
  }
  return { port, isolation: !values['no-isolation'] };
}

try {
  const [name, ...args] = process.argv.slice(2);
  const task = tasks[name];
  if (task === undefined) {
    throw new TaskError(`Unknown task: ${name}. There are ${Object.keys(tasks).join(', ')}.`);
  }
  process.exitCode = (await task(args)) ?? 0;
} catch (error) {
  if (!(error instanceof TaskError)) throw error;
  console.error(`\nFailed: ${error.message}`);
  process.exitCode = 1;
}
