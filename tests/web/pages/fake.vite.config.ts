// The chat page with the scripted engine of fake_engine.ts, for looking at it without a built module:
//   npx vite build --config tests/web/pages/fake.vite.config.ts --outDir <somewhere>
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';
import pages from '../../../web/pages/vite.config.js';

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  ...pages,
  resolve: { alias: { 'headlight-wasm': file('fake_engine.ts') } },
  build: {
    ...pages.build,
    // The other pages ask the engine for more than is scripted.
    rolldownOptions: { input: { chat: file('../../../web/pages/index.html') } },
  },
});
