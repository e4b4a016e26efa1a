// Asks llama.cpp for the probabilities of every family's tiny model and writes ../golden/families/NAME.json: the numbers that
// tests/web/families compares the engine with. Needs the peers of the benchmarks (tests/bench/package.json):
//   node tests/families/make_golden.mjs [NAME ...]
// Values are natural logarithms times 1e4, rounded; weights and activations are f32, caches f32 and f16.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { families } from './families.mjs';
import { makeFamily } from './make_family.mjs';
import { kContext, kDecoded, kPromptLengths, promptOf } from './prompts.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const peers = createRequire(join(here, '../bench/package.json'));
const { getLlama, LlamaLogLevel } = await import(
  pathToFileURL(peers.resolve('node-llama-cpp')).href
);

/** Below, a probability takes no part in a comparison. */
const kLeast = 1e-6;
const kScale = 1e4;

/** Rows of scaled log probabilities after the prompt and after each decoded token; null: below kLeast. */
async function rowsOf(sequence, tokens, vocabSize) {
  const wanted = { temperature: 1, topK: 0, topP: 1, minP: 0 };
  const next = { token: true, probabilities: true, options: wanted };
  await sequence.clearHistory();
  const rows = [];
  const first = tokens.length - kDecoded;
  for (const chunk of [tokens.slice(0, first), ...tokens.slice(first).map((t) => [t])]) {
    const input = chunk.map((t, i) => (i < chunk.length - 1 ? t : [t, { generateNext: next }]));
    const output = (await sequence.controlledEvaluate(input)).at(-1);
    const found = output.next.probabilities;
    rows.push(
      Array.from({ length: vocabSize }, (_, id) => {
        const p = found.get(id) ?? 0;
        return p < kLeast ? null : Math.round(Math.log(p) * kScale);
      }),
    );
  }
  return rows;
}

async function promptsWith(model, cache, vocab) {
  const context = await model.createContext({
    contextSize: kContext,
    batchSize: kContext,
    threads: 1,
    flashAttention: false,
    experimentalKvCacheKeyType: cache,
    experimentalKvCacheValueType: cache,
  });
  const sequence = context.getSequence();
  const prompts = [];
  for (const n of kPromptLengths) {
    const rows = await rowsOf(sequence, promptOf(n, vocab), vocab);
    prompts.push({ cache: cache.toLowerCase(), n, logProbabilities: rows });
  }
  await context.dispose();
  return prompts;
}

async function golden(llama, name) {
  const path = join(tmpdir(), `headlight-family-${name}.gguf`);
  writeFileSync(path, makeFamily(name));
  const model = await llama.loadModel({ modelPath: path, gpuLayers: 0 });
  const { vocab } = families[name];
  const prompts = [
    ...(await promptsWith(model, 'F32', vocab)),
    ...(await promptsWith(model, 'F16', vocab)),
  ];
  await model.dispose();
  rmSync(path);
  return prompts;
}

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(families);
mkdirSync(join(here, '../golden/families'), { recursive: true });
const llama = await getLlama({ gpu: false, build: 'never', logLevel: LlamaLogLevel.error });
for (const name of names) {
  const prompts = await golden(llama, name);
  const text = prompts.map((prompt) => JSON.stringify(prompt)).join(',\n');
  writeFileSync(join(here, '../golden/families', `${name}.json`), `[${text}]\n`);
  console.log(name);
}
