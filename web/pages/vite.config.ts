// Builds the pages into build/pages (the chat is the root one) and puts the default model beside them. Relative URLs throughout, so that the result can be served from any folder.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';
import { offline } from './offline_plugin.js';

const root = fileURLToPath(new URL('.', import.meta.url));
const modelFile = fileURLToPath(
  new URL('../../examples/models/default-q8_0.gguf', import.meta.url),
);
const modelUrl = 'models/default-q8_0.gguf';

interface SitePage {
  id: string;
  title: string;
  path: string;
}

// In the order of the navigation. Only those that exist are built and linked.
const knownPages: readonly SitePage[] = [
  { id: 'chat', title: 'Chat', path: '' },
  { id: 'lab', title: 'Lab', path: 'lab/' },
  { id: 'bench', title: 'Bench', path: 'bench/' },
];

const brandMark = `<svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
          <path
            class="logo-lens"
            d="M12.5 7C6.8 7 3.5 10.9 3.5 16s3.3 9 9 9c2.6 0 4.2-4 4.2-9s-1.6-9-4.2-9Z"
          />
          <path class="logo-beams" d="m21 10.3 7.3-2.3M21.6 16h8M21 21.7l7.3 2.3" />
        </svg>`;

/**
 * Fills `<!-- site-brand -->` and `<!-- site-nav -->`. With one page there is nothing to navigate, and no navigation is
 * shown.
 */
function siteHeader(pages: readonly SitePage[]): Plugin {
  return {
    name: 'headlight:site-header',
    transformIndexHtml(html, { path }) {
      const folder = path.replace(/^\//, '').replace(/index\.html$/, '');
      const up = folder === '' ? './' : '../';
      const brand = `<a class="brand" href="${up}" aria-label="Headlight">
        ${brandMark}
        <span class="brand-name">Headlight</span>
      </a>`;
      const links = pages.map((page) => {
        const current = page.path === folder ? ' aria-current="page"' : '';
        return `<li><a href="${up}${page.path}"${current}>${page.title}</a></li>`;
      });
      const nav =
        pages.length < 2
          ? ''
          : `<nav class="site-nav" aria-label="Pages"><ul>${links.join('')}</ul></nav>`;
      return html.replace('<!-- site-brand -->', brand).replace('<!-- site-nav -->', nav);
    },
  };
}

/** Fills `<!-- section NAME -->` with sections/NAME.html beside the page, so that no file of a long page is long. */
function pageSections(): Plugin {
  return {
    name: 'headlight:page-sections',
    transformIndexHtml: {
      // Before Vite looks for what the page names.
      order: 'pre',
      handler: (html, { filename }) =>
        html.replaceAll(/ *<!-- section ([a-z-]+) -->\n/g, (_, name: string) =>
          readFileSync(new URL(`sections/${name}.html`, `file://${filename}`), 'utf8'),
        ),
    },
  };
}

/** The default model: served as it lies in `vite dev`, copied by `vite build`. */
function defaultModel(): Plugin {
  return {
    name: 'headlight:default-model',
    configureServer(server) {
      server.middlewares.use(`/${modelUrl}`, (_request, response) => {
        response.setHeader('Content-Type', 'application/octet-stream');
        response.setHeader('Content-Length', statSync(modelFile).size);
        response.end(readFileSync(modelFile));
      });
    },
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: modelUrl, source: readFileSync(modelFile) });
    },
  };
}

/**
 * Of what the pages contain (Vite writes it) and of what the package's workers contain. Not Markdown: hosts that render that
 * have no such file any more, and the service worker would miss it.
 */
const licenses = ['THIRD_PARTY_LICENSES.pages.txt', 'THIRD_PARTY_LICENSES.workers.txt'] as const;

function licenseFiles(): Plugin {
  return {
    name: 'headlight:licenses',
    transformIndexHtml: (_html, { path }) =>
      licenses.map((name) => ({
        tag: 'link',
        attrs: { rel: 'license', href: /^\/?index\.html$/.test(path) ? `./${name}` : `../${name}` },
        injectTo: 'head',
      })),
    generateBundle() {
      const source = readFileSync(
        new URL('../runtime/dist/THIRD_PARTY_LICENSES.txt', import.meta.url),
      );
      this.emitFile({ type: 'asset', fileName: licenses[1], source });
    },
  };
}

const isolationHeaders = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

const pages = knownPages.filter(({ path }) => existsSync(`${root}${path}index.html`));

export default defineConfig({
  root,
  base: './',
  appType: 'mpa',
  plugins: [
    pageSections(),
    siteHeader(pages),
    defaultModel(),
    licenseFiles(),
    offline(`${root}service_worker.js`),
  ],
  // Threads need an isolated page, in development too.
  server: { headers: isolationHeaders },
  build: {
    target: 'es2022',
    outDir: fileURLToPath(new URL('../../build/pages', import.meta.url)),
    emptyOutDir: true,
    // The content security policy allows no data: scripts, and WASM must stay a file that can be streamed.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: licenses[0] },
    rolldownOptions: {
      input: Object.fromEntries(pages.map(({ id, path }) => [id, `${root}${path}index.html`])),
    },
  },
});
