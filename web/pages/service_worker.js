// Keeps the demo's own files, so that a second visit starts without a network: pages, scripts, WASM modules, the default
// model. What belongs to one build is kept and given together, never mixed with another's: files are checked against the
// hashes of their build before they are kept, a new build waits until no page of the old one is open (a reload does
// not close a page), and a file that is not in the set is left to the network. It stores nothing else; models by address are the store's (OPFS).
//
// It never stands between a page and the network for good: a set with gaps is only used where the network fails, until it is
// whole again, and where the server has no service worker any more it goes.
//
// The build (offline_plugin.ts) puts the set in place of __SET__:
//   version  hash of all of it
//   files    [path from this file, SHA-256 in hex]
//   isolate  for hosts that cannot send headers: pages get COOP and COEP from here, so that threads can share memory. They
//            work from the second visit on.

const SET = /* __SET__ */ { version: 'development', files: [], isolate: false };
// With the folder: another build may lie in another folder of this origin, and has a service worker of its own.
const PREFIX = `headlight-pages ${new URL('.', self.location.href).pathname} `;
const NAME = PREFIX + SET.version;
const ISOLATION = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** Path in the set -> address. */
const addressOf = (path) => new URL(path, self.location.href).href;
const addresses = new Map(SET.files.map(([path, hash]) => [addressOf(path), hash]));

/** Of this folder: this build's, an earlier one's that is still in use, a later one's that waits. */
const cacheNames = async () => (await caches.keys()).filter((name) => name.startsWith(PREFIX));

/**
 * Not caches.open: a worker that still answers while the next one removes its cache would make an empty one again. A cache that
 * cannot be read is as one that has been cleared.
 */
const kept = (address, cacheName = NAME) =>
  caches.match(address, { cacheName }).catch(() => undefined);

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The same bytes from an earlier build's set: most files do not change. */
async function keptBytes(address, hash, names) {
  for (const name of names) {
    const bytes = await (await kept(address, name))?.arrayBuffer();
    if (bytes !== undefined && (await sha256(bytes)) === hash) return bytes;
  }
  return undefined;
}

async function bytesOf(response, address, hash) {
  const bytes = await response.arrayBuffer();
  if ((await sha256(bytes)) !== hash) throw new Error(`${address} is of another build`);
  return bytes;
}

/**
 * A file with the headers that the server sends today, also where its bytes are here: one build's pages and workers must come
 * under one policy. The response is made anew, since one that came by a redirect is refused for a page.
 */
async function fetched(address, hash, names) {
  const bytes = await keptBytes(address, hash, names);
  const response = await fetch(address, { cache: 'no-cache' });
  if (!response.ok) throw new Error(`${address} answered ${response.status}`);
  if (bytes !== undefined) await response.body?.cancel();
  const { headers } = response;
  return new Response(bytes ?? (await bytesOf(response, address, hash)), { headers });
}

async function take(files, names) {
  for (const [address, hash] of files) {
    const response = await fetched(address, hash, names);
    const cache = await caches.open(NAME);
    await cache.put(address, response);
  }
}

/** All or nothing: a failure leaves the earlier set as it is, and the browser tries again on a later visit. */
async function install() {
  try {
    await take(addresses, await cacheNames());
  } catch (error) {
    await caches.delete(NAME);
    throw error;
  }
}

async function activate() {
  const old = (await cacheNames()).filter((name) => name !== NAME);
  await Promise.all(old.map((name) => caches.delete(name)));
}

/** What the browser, its user or another site of this origin has removed from the set. */
async function gaps() {
  const found = await Promise.all([...addresses.keys()].map((address) => kept(address)));
  return [...addresses].filter((_, i) => found[i] === undefined);
}

/** The answer of gaps(), as it was when a page was last opened. */
let lost;

/** The server answers, and not with a script: it serves another site by now, or none. */
async function isAbandoned() {
  const response = await fetch(self.location.href, { cache: 'no-cache' });
  await response.body?.cancel();
  if (!response.ok) return response.status === 404 || response.status === 410;
  return !/javascript/.test(response.headers.get('Content-Type') ?? '');
}

/** With each page that is opened. Whatever fails here is tried again with the next one. */
async function tend() {
  if (await isAbandoned()) {
    await self.registration.unregister();
    return;
  }
  const files = await lost;
  // With another build on its way this one's files may be gone from the server.
  if (files.length === 0 || (await cacheNames()).some((name) => name !== NAME)) return;
  await take(files, []);
  lost = undefined;
}

/** The headers that the server sent, its content security policy among them, are kept with the file. */
async function answer(request, address) {
  if (request.mode === 'navigate') lost = undefined;
  lost ??= gaps();
  const isWhole = (await lost).length === 0;
  const fresh = isWhole ? undefined : await fetch(request).catch(() => undefined);
  if (fresh?.ok) return fresh;
  return (await kept(address)) ?? fresh ?? fetch(request);
}

async function isolated(answering) {
  const response = await answering;
  if (!SET.isolate || !response.ok) return response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(ISOLATION)) headers.set(name, value);
  return new Response(response.body, { status: response.status, headers });
}

/** Address in the set that a request is for, or undefined. Pages are asked for with and without index.html. */
function inSet(request) {
  if (request.method !== 'GET' || request.headers.has('range')) return undefined;
  const url = new URL(request.url);
  url.hash = '';
  if (request.mode === 'navigate') {
    url.search = '';
    if (url.pathname.endsWith('/')) url.pathname += 'index.html';
  }
  return addresses.has(url.href) ? url.href : undefined;
}

self.addEventListener('install', (event) => event.waitUntil(install()));
self.addEventListener('activate', (event) => event.waitUntil(activate()));
self.addEventListener('fetch', (event) => {
  const address = inSet(event.request);
  if (address === undefined) return;
  event.respondWith(isolated(answer(event.request, address)));
  if (event.request.mode === 'navigate') event.waitUntil(tend().catch(() => {}));
});
