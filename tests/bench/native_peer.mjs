// llama.cpp as node-llama-cpp ships it, in a process of its own: answers {start}, {run} and {stop} messages of run.mjs
// as page/bench.js does.
import { getLlama, LlamaLogLevel } from 'node-llama-cpp';

let model;
let context;
let sequence;

async function start({ modelPath, threads, nCtx }) {
  const llama = await getLlama({ gpu: false, build: 'never', logLevel: LlamaLogLevel.error });
  const begin = performance.now();
  model = await llama.loadModel({ modelPath, gpuLayers: 0 });
  context = await model.createContext({
    contextSize: nCtx,
    batchSize: 512,
    threads: { ideal: threads, min: threads },
  });
  sequence = context.getSequence();
  return { loadMs: performance.now() - begin, info: { threads: context.currentThreads } };
}

async function run({ prompt, gen, round }) {
  await sequence.clearHistory();
  // Ids of byte tokens: any ids do, the work is the same.
  const tokens = Array.from({ length: prompt }, (_, i) => 100 + ((i * 7 + round) % 26));
  const begin = performance.now();
  await sequence.evaluateWithoutGeneratingNewTokens(tokens.slice(0, -1));
  const prefillMs = performance.now() - begin;
  const startDecode = performance.now();
  let n = 0;
  for await (const _ of sequence.evaluate(tokens.slice(-1), {
    temperature: 0,
    yieldEogToken: true,
  })) {
    if (++n === gen) break;
  }
  const decodeMs = performance.now() - startDecode;
  return {
    promptTokens: prompt - 1,
    genTokens: n,
    prefillTokensPerSecond: ((prompt - 1) * 1000) / prefillMs,
    decodeTokensPerSecond: (n * 1000) / decodeMs,
  };
}

async function stop() {
  await context?.dispose();
  await model?.dispose();
  setTimeout(() => process.exit(0), 100);
  return {};
}

const handlers = { start, run, stop };
process.on('message', async ({ id, method, options }) => {
  try {
    process.send({ id, value: await handlers[method](options) });
  } catch (error) {
    process.send({ id, error: String(error?.stack ?? error) });
  }
});
process.send({ id: 'ready' });
