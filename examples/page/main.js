// A page without any build step. Serve this folder with the package's dist folder as ./headlight-wasm/ and a model as
// ./model.gguf; no special headers are needed.
import { Engine } from './headlight-wasm/index.js';

const byId = (id) => document.getElementById(id);
const show = (error) => {
  byId('status').textContent = `${error.code ?? error.name}: ${error.message}`;
};

try {
  const engine = await Engine.load('./model.gguf', {
    onProgress: ({ loadedBytes }) => {
      byId('status').textContent = `Loading… ${(loadedBytes / 1e6).toFixed(1)} MB`;
    },
  });
  byId('status').textContent = `Ready (${engine.info.runtime.module})`;

  byId('form').addEventListener('submit', async (event) => {
    event.preventDefault();
    byId('answer').textContent = '';
    try {
      const messages = [{ role: 'user', content: byId('question').value }];
      for await (const { text } of engine.chat(messages, { temperature: 0, maxTokens: 100 })) {
        byId('answer').textContent += text;
      }
    } catch (error) {
      show(error);
    }
  });
} catch (error) {
  show(error);
}
