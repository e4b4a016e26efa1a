// A Vite app with the default configuration: put a model at public/model.gguf, then `npm run dev` or `npm run build`.
import { Engine, HeadlightError } from 'headlight-wasm';

function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element #${id}`);
  return found as T;
}

const ask = element<HTMLButtonElement>('ask');
const stop = element<HTMLButtonElement>('stop');
const status = element('status');
const answer = element('answer');

async function main(): Promise<void> {
  const engine = await Engine.load('/model.gguf', {
    onProgress: ({ phase, loadedBytes }) => {
      status.textContent = `${phase}: ${(loadedBytes / 1e6).toFixed(1)} MB`;
    },
  });
  status.textContent = `Ready: ${engine.info.runtime.module}, ${engine.info.runtime.threads} thread(s)`;
  ask.disabled = false;

  ask.addEventListener('click', async () => {
    answer.textContent = '';
    stop.disabled = false;
    const run = engine.chat([{ role: 'user', content: 'Who are you?' }], {
      temperature: 0,
      maxTokens: 100,
    });
    stop.onclick = () => run.abort();
    for await (const { text } of run) answer.textContent += text;
    stop.disabled = true;
  });
}

main().catch((error: unknown) => {
  status.textContent =
    error instanceof HeadlightError ? `${error.code}: ${error.message}` : String(error);
});
