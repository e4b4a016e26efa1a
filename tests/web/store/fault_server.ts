// A local server that does to a download what networks and servers do: it cuts, stalls, lies about lengths, changes the
// file between two requests, answers with errors or pages, knows ranges or does not. It counts the bytes it sends.
import { createHash } from 'node:crypto';
import {
  createServer,
  request as forward,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Served {
  bytes: Uint8Array;
  /** Default: a strong one, made of the bytes. null: none. */
  etag?: string | null;
  lastModified?: string;
  /** Default true. */
  ranges?: boolean;
  /** Default true: Content-Length is sent. */
  tellsLength?: boolean;
  /** Sent one by one with a pause (1 ms unless told), so that they arrive as chunks of their own. */
  pieceBytes?: number;
  pauseMs?: number;
  /** Further headers, e.g. what other origins may read. */
  headers?: Record<string, string>;
}

/** What happens to one request. */
export type Fault =
  | { kind: 'cut'; afterBytes: number }
  | { kind: 'stall'; afterBytes: number }
  /** No answer at all. */
  | { kind: 'silence' }
  | { kind: 'drop' }
  | { kind: 'status'; status: number }
  | { kind: 'html' }
  /** Announces other lengths than it sends. */
  | { kind: 'length'; announced: number }
  /** Another answer to a range than the one asked for. */
  | { kind: 'wrong-part'; start: number }
  | { kind: 'redirect'; to: string }
  /** From now on another file. */
  | { kind: 'change'; to: Served };

export interface SeenRequest {
  path: string;
  method: string;
  range: string | undefined;
  ifRange: string | undefined;
  /** Of the body. */
  sentBytes: number;
}

const PIECE_BYTES = 16384;

export class FaultServer {
  readonly files = new Map<string, Served>();
  readonly requests: SeenRequest[] = [];
  /** Per path; each request takes the first that is left. */
  readonly faults = new Map<string, Fault[]>();
  readonly #server: Server;
  readonly #behind: string | undefined;
  url = '';
  /** The most bodies that were being sent at the same time. */
  peak = 0;
  /** Requests with Range get no permission for another origin, as from a server that refuses their preflight. */
  refusesRanges = false;
  #active = 0;

  /** @param behind address of the server that has everything else */
  constructor(behind?: string) {
    this.#behind = behind;
    this.#server = createServer({ maxHeaderSize: 1 << 16 }, (request, response) => {
      void this.#answer(request, response);
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  serve(path: string, file: Served, ...faults: Fault[]): string {
    this.files.set(path, file);
    this.faults.set(path, faults);
    return this.url + path;
  }

  seen(path: string): SeenRequest[] {
    return this.requests.filter((request) => request.path === path);
  }

  sentBytes(path: string): number {
    return this.seen(path).reduce((sum, { sentBytes }) => sum + sentBytes, 0);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    if (this.#behind !== undefined && !this.faults.has(path)) {
      passOn(request, response, this.#behind);
      return;
    }
    const seen: SeenRequest = {
      path,
      method: request.method ?? '',
      range: request.headers.range,
      ifRange: request.headers['if-range'] as string | undefined,
      sentBytes: 0,
    };
    this.requests.push(seen);
    if (request.method === 'OPTIONS') {
      response.writeHead(403).end();
      return;
    }
    if (this.refusesRanges && seen.range !== undefined) {
      response.writeHead(403).end();
      return;
    }
    let fault = this.faults.get(path)?.shift();
    if (fault?.kind === 'change') {
      this.files.set(path, fault.to);
      fault = undefined;
    }
    if (fault?.kind === 'redirect') {
      response.writeHead(302, { location: fault.to }).end();
      return;
    }
    if (fault?.kind === 'silence') return;
    if (fault?.kind === 'drop') {
      request.socket.destroy();
      return;
    }
    if (fault?.kind === 'html') {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><p>Log in</p>');
      return;
    }
    const file = this.files.get(path);
    if (fault?.kind === 'status' || file === undefined) {
      response.writeHead(fault?.kind === 'status' ? fault.status : 404).end('no');
      return;
    }
    this.#active += 1;
    this.peak = Math.max(this.peak, this.#active);
    await send(file, request, response, fault, seen);
    this.#active -= 1;
  }
}

function passOn(request: IncomingMessage, response: ServerResponse, to: string): void {
  const { method = 'GET', headers } = request;
  const forwarded = forward(new URL(request.url ?? '/', to), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(response);
  });
  forwarded.on('error', () => response.destroy());
  forwarded.end();
}

function etagOf({ bytes, etag }: Served): string | undefined {
  if (etag === null) return undefined;
  return etag ?? `"${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}"`;
}

async function send(
  file: Served,
  request: IncomingMessage,
  response: ServerResponse,
  fault: Fault | undefined,
  seen: SeenRequest,
): Promise<void> {
  const total = file.bytes.length;
  for (const [name, value] of Object.entries(file.headers ?? {})) response.setHeader(name, value);
  const etag = etagOf(file);
  if (etag !== undefined) response.setHeader('etag', etag);
  // Asked by a browser's own cache for what it has; it comes before Range (RFC 9110, 13.2.2).
  if (etag !== undefined && request.headers['if-none-match'] === etag) {
    response.writeHead(304).end();
    return;
  }
  if (file.lastModified !== undefined) response.setHeader('last-modified', file.lastModified);
  const { start, end, partial } = rangeOf(file, request, etag);
  if (start >= total && partial) {
    response.writeHead(416, { 'content-range': `bytes */${total}` }).end();
    return;
  }
  const from = fault?.kind === 'wrong-part' ? fault.start : start;
  if (partial) response.setHeader('content-range', `bytes ${from}-${end - 1}/${total}`);
  const announced = fault?.kind === 'length' ? fault.announced : end - from;
  if (file.tellsLength !== false) response.setHeader('content-length', announced);
  response.writeHead(partial ? 206 : 200);
  const limit = fault?.kind === 'cut' || fault?.kind === 'stall' ? fault.afterBytes : Infinity;
  const body = file.bytes.subarray(from, Math.min(end, from + limit));
  const sendable = fault?.kind === 'length' ? body.subarray(0, announced) : body;
  const pieceBytes = file.pieceBytes ?? PIECE_BYTES;
  for (let at = 0; at < sendable.length; at += pieceBytes) {
    if (file.pieceBytes !== undefined)
      await new Promise((resolve) => setTimeout(resolve, file.pauseMs ?? 1));
    if (response.destroyed) return;
    const piece = sendable.subarray(at, at + pieceBytes);
    seen.sentBytes += piece.length;
    if (!response.write(piece)) await drained(response);
  }
  if (sendable.length === 0) response.flushHeaders();
  if (fault?.kind === 'stall') return;
  if (fault?.kind !== 'cut' && sendable.length === announced) {
    response.end();
    return;
  }
  // What a browser has not yet read when a connection breaks is lost with it.
  if (file.pauseMs !== undefined) await new Promise((resolve) => setTimeout(resolve, 100));
  // The bytes before the cut arrive; the connection then ends without the rest.
  response.socket?.destroySoon();
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}

function rangeOf(file: Served, request: IncomingMessage, etag: string | undefined) {
  const match = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
  const ifRange = request.headers['if-range'];
  const same = ifRange === undefined || ifRange === etag || ifRange === file.lastModified;
  const partial = match !== null && file.ranges !== false && same;
  const total = file.bytes.length;
  if (!partial) return { start: 0, end: total, partial };
  const last = match[2] === '' ? total - 1 : Number(match[2]);
  return { start: Number(match[1]), end: Math.min(total, last + 1), partial };
}
