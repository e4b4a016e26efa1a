// The page side of the benchmark: run.mjs calls window.bench.*; every engine answers the same questions in the same way.
// A prompt is a string of ASCII letters over a byte-fallback vocabulary: one token a letter.

/** Rates from counts and milliseconds. */
const perSecond = (n, ms) => (ms > 0 ? (n * 1000) / ms : 0);

function letters(count, round) {
  // Another first letter each round, so that no engine finds the prompt in its cache.
  let text = String.fromCharCode(97 + (round % 26));
  for (let i = 1; i < count; i++) text += String.fromCharCode(97 + ((i * 7 + round) % 26));
  return text;
}

/** The package at `folder`: this build's, or another one's. */
async function startHeadlight(folder, { modelUrl, threads, module, nCtx, kvCache }) {
  const { Engine } = await import(`${folder}index.js`);
  const start = performance.now();
  const engine = await Engine.load(new URL(modelUrl, location.href), {
    threads,
    module,
    nCtx,
    kvCache,
  });
  const loadMs = performance.now() - start;
  return {
    loadMs,
    info: engine.info,
    async run({ prompt, gen, round }) {
      const run = engine.complete(letters(prompt, round), {
        temperature: 0,
        maxTokens: gen,
        ignoreEndOfGeneration: true,
      });
      const { usage, timings, tokens } = await run.result();
      return {
        promptTokens: usage.promptTokens - usage.reusedTokens,
        genTokens: usage.completionTokens,
        prefillTokensPerSecond: timings.prefillTokensPerSecond,
        decodeTokensPerSecond: timings.decodeTokensPerSecond,
        tokens: tokens.slice(0, 8),
        stages: (await engine.stats()).stages,
      };
    },
    memory: () => engine.info.memory,
    stats: () => engine.stats(),
    stop: () => engine.dispose(),
  };
}

async function startWllama({ modelUrl, threads, nCtx }) {
  const { Wllama, LoggerWithoutDebug } = await import('/peer/esm/index.js');
  const quiet = { ...LoggerWithoutDebug, log() {}, warn() {} };
  const wllama = new Wllama(
    { default: '/peer/esm/wasm/wllama.wasm' },
    { logger: quiet, suppressNativeLog: true },
  );
  const blob = await (await fetch(modelUrl)).blob();
  const start = performance.now();
  await wllama.loadModel([blob], {
    n_ctx: nCtx,
    n_threads: threads,
    n_gpu_layers: 0,
    warmup: false,
  });
  const loadMs = performance.now() - start;
  return {
    loadMs,
    info: { threads: wllama.getNumThreads(), multithread: wllama.isMultithread() },
    async run({ prompt, gen, round }) {
      const { timings } = await wllama.createCompletion({
        prompt: letters(prompt, round),
        max_tokens: gen,
        temperature: 0,
        ignore_eos: true,
      });
      return {
        promptTokens: timings.prompt_n,
        genTokens: timings.predicted_n,
        prefillTokensPerSecond: perSecond(timings.prompt_n, timings.prompt_ms),
        decodeTokensPerSecond: perSecond(timings.predicted_n, timings.predicted_ms),
      };
    },
    memory: () => null,
    stats: () => null,
    stop: () => wllama.exit(),
  };
}

const engines = new Map();
const starters = {
  ours: (options) => startHeadlight('/runtime/', options),
  baseline: (options) => startHeadlight('/baseline/', options),
  wllama: startWllama,
};

globalThis.bench = {
  async start(name, options) {
    const engine = await starters[name](options);
    engines.set(name, engine);
    return { loadMs: engine.loadMs, info: engine.info };
  },
  run: (name, options) => engines.get(name).run(options),
  async finish(name) {
    const engine = engines.get(name);
    const result = { memory: engine.memory(), stats: await engine.stats() };
    await engine.stop();
    engines.delete(name);
    return result;
  },
  async limits({ threads, module, readBytes, budgetMs }) {
    const { measureLimits } = await import('/runtime/index.js');
    return measureLimits({ threads, module, readBytes, budgetMs });
  },
};
document.title = 'ready';
