// The pages with the scripted engine of fake_engine.ts, for looking at them without a built module:
//   npx vite build --config tests/web/pages/fake.vite.config.ts --outDir <somewhere>
import { fileURLToPath } from 'node:url';
import { mergeConfig } from 'vite';
import pages from '../../../web/pages/vite.config.js';

export default mergeConfig(pages, {
  resolve: {
    alias: { 'headlight-wasm': fileURLToPath(new URL('fake_engine.ts', import.meta.url)) },
  },
});
