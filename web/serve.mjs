// The static server of `npm start` and of the browser tests: ranges and types by sirv, and on every response, workers
// and errors included, the headers that the pages are written for: a strict content security policy (a <meta> policy
// would not govern workers) and, unless told otherwise, cross-origin isolation (threads need it).
import { createServer } from 'node:http';
import sirv from 'sirv';

// 'wasm-unsafe-eval' allows compiling WebAssembly and nothing else. connect-src is open to any http(s) address for one
// reason: the user may open a model by its URL; the pages fetch nothing else from elsewhere.
const pagePolicy = [
  "default-src 'self'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self' https: http:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const isolationHeaders = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

/**
 * @param {boolean} isolation whether pages may share memory between threads
 * @param {string | false} [contentSecurityPolicy] another policy, or none
 */
export function responseHeaders(isolation, contentSecurityPolicy = pagePolicy) {
  return {
    ...(contentSecurityPolicy ? { 'Content-Security-Policy': contentSecurityPolicy } : {}),
    'Cross-Origin-Resource-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-cache',
    ...(isolation ? isolationHeaders : {}),
  };
}

// How many ports after the wanted one are tried when it is taken.
const portTries = 20;

/**
 * Serves folders on the loopback interface.
 * @param {object} options
 * @param {Record<string, string>} options.mounts URL prefix, ending in '/', to folder; the longest prefix wins
 * @param {number} [options.port] first port to try; 0 (default): any free one
 * @param {boolean} [options.isolation] send COOP and COEP (default true)
 * @param {string | false} [options.contentSecurityPolicy] another policy than the pages', or none
 * @returns {Promise<{url: string, port: number, close: () => Promise<void>}>}
 */
export async function serve({ mounts, port = 0, isolation = true, contentSecurityPolicy }) {
  const headers = responseHeaders(isolation, contentSecurityPolicy);
  const server = createServer(requestHandler(mounts, headers));
  const bound = await listen(server, port);
  const close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${bound}/`, port: bound, close };
}

function requestHandler(mounts, headers) {
  const routes = Object.entries(mounts)
    .sort(([a], [b]) => b.length - a.length)
    // `dev`: look at the folder on each request, since it may be built anew while the server runs.
    .map(([prefix, folder]) => ({ prefix, files: sirv(folder, { dev: true, etag: true }) }));
  return (request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    const refuse = (status, text) => response.writeHead(status).end(text);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      refuse(405, 'Only GET and HEAD');
      return;
    }
    const route = routes.find(({ prefix }) => request.url?.startsWith(prefix));
    if (route === undefined) {
      refuse(404, 'Not found');
      return;
    }
    request.url = request.url.slice(route.prefix.length - 1);
    route.files(request, response, () => refuse(404, 'Not found'));
  };
}

/** Binds the first free port from `port` on, and resolves to it. */
async function listen(server, port) {
  for (let tried = 0; ; ++tried) {
    try {
      await new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port === 0 ? 0 : port + tried, '127.0.0.1', () => {
          server.off('error', reject);
          resolve();
        });
      });
      return server.address().port;
    } catch (error) {
      if (error.code !== 'EADDRINUSE' || port === 0 || tried + 1 >= portTries) throw error;
    }
  }
}
