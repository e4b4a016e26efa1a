// Three lines of use, in Node: load a model, ask, print the answer as it comes.
//   node examples/node/chat.mjs [MODEL.gguf] [QUESTION]
import { fileURLToPath } from 'node:url';
import { Engine } from 'headlight-wasm';

const defaultModel = fileURLToPath(new URL('../models/default-q8_0.gguf', import.meta.url));
const [model = defaultModel, question = 'Who are you?'] = process.argv.slice(2);

const engine = await Engine.load(model);
const run = engine.chat([{ role: 'user', content: question }], { temperature: 0, maxTokens: 100 });
for await (const { text } of run) process.stdout.write(text);

const { usage, timings } = await run.result();
console.log(
  `\n(${usage.completionTokens} tokens, ${timings.decodeTokensPerSecond.toFixed(0)} tokens/s, ` +
    `module ${engine.info.runtime.module})`,
);
await engine.dispose();
