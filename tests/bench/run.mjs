// npm run bench: Headlight and a peer in one browser process, alternately, next to what the machine allows.
// Prints rates, ratios and shares; --json prints one object (tests/bench/README.md names its fields).
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { cpus } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serve } from '../../web/serve.mjs';
import { openBenchPage } from './browser.mjs';
import { makeModel, tensorTypes } from './make_model.mjs';
import { readOptions } from './options.mjs';
import { printReport } from './report.mjs';
import { kvBytesPerToken, parametersUsed, shapes } from './shapes.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
const runtimeDist = join(root, 'web/runtime/dist');
const peers = join(here, 'node_modules');
const kLimitsReadBytes = 256e6; // far more than the last cache of any desktop machine
const kLimitsBudgetMs = 900;

function prepareModel({ model, shape, type }) {
  if (model) {
    if (!existsSync(model)) throw new Error(`no such file: ${model}`);
    return resolve(model);
  }
  const folder = join(root, 'build/bench');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${shape}-${type}.gguf`);
  if (!existsSync(path)) makeModel(path, shapes[shape], type);
  return path;
}

function installPeers() {
  if (existsSync(join(peers, '@wllama/wllama')) && existsSync(join(peers, 'node-llama-cpp')))
    return;
  console.error('installing the peers (700 MB, once) ...');
  // --ignore-scripts: nothing is built or downloaded beyond the packages themselves.
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts'], {
    cwd: here,
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0)
    throw new Error('npm ci in tests/bench failed; run with --peer none to measure without a peer');
}

/** The native peer in its own process, with the same start/run/finish as the page's engines. */
function nativePeer() {
  const child = spawn(process.execPath, [join(here, 'native_peer.mjs')], {
    stdio: ['ignore', 2, 2, 'ipc'],
  });
  const pending = new Map();
  let lastId = 0;
  const ready = new Promise((ok, failed) => {
    child.once('exit', (code) => failed(new Error(`the native peer ended with code ${code}`)));
    child.on('message', ({ id, value, error }) => {
      if (id === 'ready') return ok();
      const waiting = pending.get(id);
      pending.delete(id);
      return error ? waiting.failed(new Error(error)) : waiting.ok(value);
    });
  });
  const call = async (method, options) => {
    await ready;
    const id = ++lastId;
    return new Promise((ok, failed) => {
      pending.set(id, { ok, failed });
      child.send({ id, method, options });
    });
  };
  return {
    start: (options) => call('start', options),
    run: (options) => call('run', options),
    finish: () => call('stop', {}),
  };
}

function pageEngine(page, name) {
  return {
    start: (options) => page.call('start', name, options),
    run: (options) => page.call('run', name, options),
    finish: () => page.call('finish', name),
  };
}

/** Best and median of each rate over the rounds. */
function summarise(runs) {
  const of = (field) => {
    const sorted = runs.map((run) => run[field]).sort((a, b) => b - a);
    return { best: sorted[0], median: sorted[Math.floor(sorted.length / 2)] };
  };
  return { decode: of('decodeTokensPerSecond'), prefill: of('prefillTokensPerSecond') };
}

async function measure(options, modelPath, page) {
  const sides = { ours: pageEngine(page, 'ours') };
  if (['wllama', 'baseline'].includes(options.peer)) sides.peer = pageEngine(page, options.peer);
  if (options.peer === 'native') sides.peer = nativePeer();
  const { threads, module, prompt, gen } = options;
  const nCtx = options.ctx ?? Math.max(512, prompt + gen + 16);
  const modelUrl = `/model/${basename(modelPath)}`;
  const limits = await page.call('limits', {
    threads,
    module,
    readBytes: kLimitsReadBytes,
    budgetMs: kLimitsBudgetMs,
  });
  const started = {};
  for (const [side, engine] of Object.entries(sides)) {
    started[side] = await engine.start({
      modelUrl,
      modelPath,
      threads,
      module,
      nCtx,
      kvCache: { k: options.kv, v: options.kv },
    });
  }
  const runs = { ours: [], peer: [] };
  for (const engine of Object.values(sides)) await engine.run({ prompt: 16, gen: 4, round: 25 });
  for (let round = 0; round < options.rounds; ++round) {
    // Each in turn goes first: what the machine does meanwhile must not favour one.
    const order = Object.entries(sides);
    if (round % 2 === 1) order.reverse();
    for (const [side, engine] of order) runs[side].push(await engine.run({ prompt, gen, round }));
  }
  const finished = {};
  for (const [side, engine] of Object.entries(sides)) finished[side] = await engine.finish();
  return { limits, started, runs, finished };
}

/** Bytes that a decoded token reads: every matrix once as in the file, and the rows of the cache (their mean over the run). */
function bytesPerToken(options, fileBytes) {
  if (options.model) return fileBytes; // a foreign file: its size is the best figure at hand
  const shape = shapes[options.shape];
  const { bytes, elements } = tensorTypes[options.type];
  const rows = options.prompt + options.gen / 2;
  return (parametersUsed(shape) * bytes) / elements + kvBytesPerToken(shape, options.kv) * rows;
}

/** The median over the rounds of ours / the peer's. */
function roundRatio(runs, field) {
  const ratios = runs.ours.map((run, i) => run[field] / runs.peer[i][field]).sort((a, b) => a - b);
  return ratios[Math.floor(ratios.length / 2)];
}

function report(options, modelPath, version, measured) {
  const { limits, started, runs, finished } = measured;
  const ours = summarise(runs.ours);
  const peer = runs.peer.length > 0 ? summarise(runs.peer) : null;
  const fileBytes = statSync(modelPath).size;
  const parameters = options.model
    ? started.ours.info.model.parametersUsed
    : parametersUsed(shapes[options.shape]);
  const side = (rates, loadMs, memory) => ({
    decodeTokensPerSecond: rates.decode.median,
    decodeBest: rates.decode.best,
    prefillTokensPerSecond: rates.prefill.median,
    prefillBest: rates.prefill.best,
    loadMs,
    ...(memory ? { peakBytes: memory.wasmBytes, memory } : {}),
  });
  return {
    machine: `${cpus()[0]?.model.trim()}, ${cpus().length} cores, ${version}`,
    date: new Date().toISOString().slice(0, 10),
    shape: options.model ? basename(modelPath) : options.shape,
    type: options.model ? started.ours.info.model.name : options.type,
    threads: started.ours.info.runtime.threads,
    module: started.ours.info.runtime.module,
    dotForm: started.ours.info.runtime.dotForm,
    prompt: options.prompt,
    gen: options.gen,
    fileBytes,
    ours: side(ours, started.ours.loadMs, finished.ours.memory),
    peer: peer && { name: options.peer, ...side(peer, started.peer.loadMs, null) },
    limits,
    ratios: {
      decodeVsPeer: peer && roundRatio(runs, 'decodeTokensPerSecond'),
      prefillVsPeer: peer && roundRatio(runs, 'prefillTokensPerSecond'),
      decodeVsRead:
        (ours.decode.median * bytesPerToken(options, fileBytes)) / (limits.readGBs * 1e9),
      prefillVsDot: (2 * parameters * ours.prefill.median) / (limits.dotGops * 1e9),
    },
    rounds: runs,
    stats: finished.ours.stats,
    peerStats: finished.peer?.stats ?? null,
  };
}

async function main() {
  const options = readOptions(process.argv.slice(2));
  if (!existsSync(join(runtimeDist, 'index.js'))) {
    throw new Error('the package is not built: run `npm run build` first');
  }
  if (['wllama', 'native'].includes(options.peer)) installPeers();
  if (options.baseline && !existsSync(join(options.baseline, 'index.js'))) {
    throw new Error(
      `${options.baseline} has no index.js: --baseline takes a built web/runtime/dist`,
    );
  }
  const modelPath = prepareModel(options);
  const server = await serve({
    mounts: {
      '/runtime/': runtimeDist,
      '/peer/': join(peers, '@wllama/wllama'),
      ...(options.baseline ? { '/baseline/': resolve(options.baseline) } : {}),
      '/model/': dirname(modelPath),
      '/': join(here, 'page'),
    },
    isolation: options.isolation,
    contentSecurityPolicy: false, // wllama starts its workers from blobs
  });
  const page = await openBenchPage(options.browser, `${server.url}bench.html`);
  try {
    const result = report(
      options,
      modelPath,
      page.version,
      await measure(options, modelPath, page),
    );
    if (options.json) console.log(JSON.stringify(result));
    else printReport(result);
  } finally {
    await page.close();
    await server.close();
  }
}

main().catch((error) => {
  console.error(`bench: ${error.message}`);
  process.exitCode = 1;
});
