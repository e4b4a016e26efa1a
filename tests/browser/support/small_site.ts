// Two pages, a script and a worker with the demo's service worker, in a folder of their own; a test changes the build, the
// server and the network. The title and <body data-ready> say which build a page and its script are of.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { serviceWorkerFor } from '../../../web/pages/offline_plugin.js';
import { workerSource } from './service_worker.js';

const types: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript' };

export interface BuildOptions {
  /** Default: the site's root. */
  folder?: string;
  isolate?: boolean;
  /** Code that goes before the service worker's own. */
  before?: string;
}

export class SmallSite {
  readonly #root = mkdtempSync(path.join(tmpdir(), 'headlight-small-'));
  readonly #server: Server;
  headers: Readonly<Record<string, string>> = {};
  /** The host wants its pages asked for without index.html. */
  redirectsToFolders = false;
  isDown = false;
  url = '';

  constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#root, { recursive: true });
  }

  /** Puts a build in the place of another, whose files go. */
  build(version: string, { folder = '', isolate = false, before = '' }: BuildOptions = {}): void {
    const at = path.join(this.#root, folder);
    rmSync(path.join(at, 'assets'), { recursive: true, force: true });
    mkdirSync(path.join(at, 'assets'), { recursive: true });
    mkdirSync(path.join(at, 'lab'), { recursive: true });
    const write = (name: string, text: string) => writeFileSync(path.join(at, name), text);
    const page = (up: string) =>
      `<!doctype html><title>${version}</title><link rel="icon" href="data:,"><body><script src="${up}assets/main-${version}.js"></script>`;
    write('index.html', page('./'));
    write('lab/index.html', page('../'));
    write(
      `assets/main-${version}.js`,
      `document.body.dataset.ready = '${version}';
      navigator.serviceWorker.register(new URL('../service_worker.js', document.currentScript.src));`,
    );
    write('assets/worker.js', "postMessage('started')");
    write('service_worker.js', serviceWorkerFor(at, before + workerSource, isolate));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (this.isDown) {
      request.socket.destroy();
      return;
    }
    const { pathname } = new URL(request.url ?? '/', this.url);
    for (const [name, value] of Object.entries(this.headers)) response.setHeader(name, value);
    response.setHeader('Cache-Control', 'no-cache');
    if (this.redirectsToFolders && pathname.endsWith('/index.html')) {
      response.writeHead(308, { Location: pathname.replace('index.html', '') }).end();
      return;
    }
    const file = path.join(this.#root, pathname, pathname.endsWith('/') ? 'index.html' : '');
    if (!existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end();
      return;
    }
    response.setHeader('Content-Type', types[path.extname(file)] ?? 'text/plain');
    response.end(readFileSync(file));
  }
}
