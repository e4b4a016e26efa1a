// Keeps the demo's own files, so that a second visit starts without a network: pages, scripts, WASM modules, the default
// model. What belongs to one build is kept and given together, never mixed with another's: files are checked against the
// hashes of their build before they are kept, a new build waits until no page of the old one is open (a reload does
// not close a page), and a file that is not in the set is left to the network. It stores nothing else; models by address are the store's (OPFS).
//
// The build (offline_plugin.ts) puts the set in place of __SET__:
//   version  hash of all of it
//   files    [path from this file, SHA-256 in hex]
//   isolate  for hosts that cannot send headers: pages get COOP and COEP from here, so that threads can share memory. They
//            work from the second visit on.

const SET = /* __SET__ */ { version: 'development', files: [], isolate: false };
const PREFIX = 'headlight-pages-';
const NAME = PREFIX + SET.version;
const ISOLATION = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** Path in the set -> address. */
const addressOf = (path) => new URL(path, self.location.href).href;
const addresses = new Map(SET.files.map(([path, hash]) => [addressOf(path), hash]));

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The same bytes from an earlier build's set: most files do not change. */
async function kept(address, hash, names) {
  for (const name of names) {
    const response = await caches.match(address, { cacheName: name });
    if (response && (await sha256(await response.clone().arrayBuffer())) === hash) return response;
  }
  return undefined;
}

async function fetched(address, hash) {
  const response = await fetch(address, { cache: 'no-cache' });
  if (!response.ok) throw new Error(`${address} answered ${response.status}`);
  const found = await sha256(await response.clone().arrayBuffer());
  if (found !== hash) throw new Error(`${address} is of another build`);
  return response;
}

/** All or nothing: a failure leaves the earlier set as it is, and the browser tries again on a later visit. */
async function install() {
  const earlier = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== NAME);
  const cache = await caches.open(NAME);
  try {
    for (const [address, hash] of addresses) {
      const response = (await kept(address, hash, earlier)) ?? (await fetched(address, hash));
      await cache.put(address, response);
    }
  } catch (error) {
    await caches.delete(NAME);
    throw error;
  }
}

async function activate() {
  const names = await caches.keys();
  const old = names.filter((name) => name.startsWith(PREFIX) && name !== NAME);
  await Promise.all(old.map((name) => caches.delete(name)));
}

/** The headers that the server sent, its content security policy among them, are kept with the file. */
async function answer(request, address) {
  // Not caches.open: a worker that still answers while the next one removes its cache would make an empty one again.
  const response = await caches.match(address, { cacheName: NAME });
  // The browser has cleared what was kept.
  if (response === undefined) return fetch(request);
  if (!SET.isolate) return response;
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
  if (address !== undefined) event.respondWith(answer(event.request, address));
});
