// Loading: where bytes come from, what arrives where, what goes wrong on the way. Over a fake loader and a real HTTP server.
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inspectOn } from '../../../web/runtime/src/launch.js';
import { shardNames } from '../../../web/runtime/src/shards.js';
import { openSources } from '../../../web/runtime/src/source.js';
import type { LoadProgress } from '../../../web/runtime/src/types.js';
import type { FakeModule } from './fake_module.js';
import { FAKE_FILE, fakePlatform, loadFake } from './fake_platform.js';

const file = (nBytes: number, fill = 7) => {
  const bytes = new Uint8Array(nBytes).fill(fill);
  bytes.set(FAKE_FILE.subarray(0, 4));
  return bytes;
};

async function progressOf(source: Parameters<typeof loadFake>[2], fileBytes = 100, nShards = 1) {
  const seen: LoadProgress[] = [];
  const platform = fakePlatform({ fileBytes, nShards });
  await loadFake(platform, { onProgress: (progress) => seen.push(progress) }, source);
  return { seen, log: platform.module().log };
}

describe('sources of bytes', () => {
  const BIG = 3 * 2 ** 20 + 17;
  it.each([
    ['a Uint8Array', file(100)],
    ['an ArrayBuffer', file(100).buffer],
    ['a Blob', new Blob([file(100)])],
    ['a File', new File([file(100)], 'model.gguf')],
    ['bytes after the last tensor', file(150)],
  ])('%s', async (_, source) => {
    const { seen } = await progressOf(source as never);
    expect(seen[0]).toEqual({ phase: 'module', loadedBytes: 0 });
    expect(seen.at(-1)).toEqual({ phase: 'ready', loadedBytes: 100, totalBytes: 100 });
  });

  it.each([
    ['a Uint8Array', file(BIG)],
    ['a Buffer', Buffer.from(file(BIG))],
  ])('%s: bytes are asked for in pieces and the caller keeps them', async (_, bytes) => {
    const { seen } = await progressOf(bytes, BIG);
    expect(seen.at(-1)?.loadedBytes).toBe(BIG);
    expect(bytes.byteLength).toBe(BIG);
    expect(bytes.buffer.byteLength).toBeGreaterThanOrEqual(BIG);
  });

  it.each([
    ['a Uint8Array', (bytes: Uint8Array) => bytes],
    ['an ArrayBuffer', (bytes: Uint8Array) => bytes.buffer as ArrayBuffer],
  ])('%s whose memory is given away meanwhile ends as a typed error', async (_, sourceOf) => {
    const bytes = file(BIG);
    const loading = loadFake(fakePlatform({ fileBytes: BIG }), {}, sourceOf(bytes));
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    await expect(loading).rejects.toMatchObject({
      code: 'Integrity',
      message: expect.stringMatching(/byte 0: its memory was transferred/),
    });
  });

  it('shards are loaded in order and counted together', async () => {
    const { seen } = await progressOf([file(100), new Blob([file(100)])], 100, 2);
    expect(seen.at(-1)).toEqual({ phase: 'ready', loadedBytes: 200, totalBytes: 200 });
    const counts = seen.map(({ loadedBytes }) => loadedBytes);
    expect(counts).toEqual([...counts].sort((a, b) => a - b));
    for (const { totalBytes } of seen) expect([undefined, 200]).toContain(totalBytes);
  });

  it.each([[null], [5], [{}], [[]], [[null]]])('%j is refused', async (source) => {
    await expect(loadFake(fakePlatform(), {}, source as never)).rejects.toMatchObject({
      code: 'BadOption',
    });
  });
});

describe('what memory a load takes', () => {
  it('is reserved in one step before the weights: weights, cache, workspace and a margin', async () => {
    const platform = fakePlatform({ weightsBytes: 5000 });
    await loadFake(platform);
    expect(platform.module().log.reserved).toEqual([5000 + 200 + 300 + (4 << 20)]);
  });

  it('is refused with needed and had when it cannot be given', async () => {
    const error = { code: 'OutOfMemory', message: 'no', details: {} };
    const platform = fakePlatform({ errors: { reserve: error }, weightsBytes: 3 * 2 ** 30 });
    await expect(loadFake(platform)).rejects.toMatchObject({
      code: 'OutOfMemory',
      details: {
        weightsBytes: 3 * 2 ** 30,
        hadBytes: expect.any(Number),
        neededBytes: expect.any(Number),
      },
    });
    expect(platform.module().log.deleted).toContain('loader');
    expect(platform.workers[0]?.terminated).toBe(true);
  });

  it('that is not there beside threads is tried once more with one thread, which is said', async () => {
    const features = { sharedMemory: true, cores: 8 };
    const error = { code: 'OutOfMemory', message: 'no', details: {} };
    const threadsOnly = (module: FakeModule, args?: { preRun?: () => void }) => {
      module.script.errors = { reserve: error };
      args?.preRun?.();
      return Promise.resolve(module);
    };
    const options = { features, factories: { 'simd-threads': threadsOnly } };
    const { info } = await loadFake(fakePlatform({}, options));
    expect(info.runtime).toMatchObject({ module: 'simd', threads: 1 });
    expect(info.runtime.reasons.join()).toMatch(/one thread, because with more: The model needs/);
    const asked = loadFake(fakePlatform({}, options), { threads: 4 });
    await expect(asked).rejects.toMatchObject({ code: 'OutOfMemory' });
  });

  it('is refused without trying where 32 bits cannot address it', async () => {
    const platform = fakePlatform({ weightsBytes: 5 * 2 ** 30 });
    await expect(loadFake(platform)).rejects.toThrow(/5125 MiB .*32-bit module/);
    expect(platform.module().log.reserved).toEqual([]);
  });
});

describe('a header that asks for more than its file can hold', () => {
  const GREEDY = { fileBytes: 3e9, weightsBytes: 3e9 };

  it.each([
    ['bytes', FAKE_FILE],
    ['a Blob', new Blob([FAKE_FILE])],
  ])('%s: is refused with the numbers before any memory is taken', async (_, source) => {
    const platform = fakePlatform(GREEDY);
    await expect(loadFake(platform, {}, source)).rejects.toMatchObject({
      code: 'BadModel',
      details: { fileBytes: 100, neededBytes: 3e9 },
    });
    expect(platform.module().log.reserved).toEqual([]);
  });

  it('is refused by inspectModel too', async () => {
    await expect(inspectOn(fakePlatform(GREEDY), FAKE_FILE, {})).rejects.toMatchObject({
      code: 'BadModel',
    });
  });

  it('also in a further shard', async () => {
    const platform = fakePlatform({ nShards: 2 });
    const source = [FAKE_FILE, FAKE_FILE.subarray(0, 99)];
    await expect(loadFake(platform, {}, source)).rejects.toMatchObject({
      code: 'BadModel',
      details: { fileBytes: 99, neededBytes: 100 },
    });
  });
});

describe('the shards of a split model', () => {
  it('the first one’s name stands for all', () => {
    const name = (i: number) => `/m/x-0000${i}-of-00003.gguf`;
    expect(shardNames(name(1))).toEqual([name(1), name(2), name(3)]);
    expect(shardNames(`${name(1)}?download=true`)[2]).toBe(`${name(3)}?download=true`);
    for (const whole of [name(2), 'x.gguf', 'x-00001-of-00001.gguf', 'x-00001-of-99999.gguf']) {
      expect(shardNames(whole)).toEqual([whole]);
    }
    const platform = fakePlatform();
    platform.resolveString = (path) => ({ kind: 'path', path });
    const opened = openSources(name(1), platform).sources;
    expect(opened).toEqual([1, 2, 3].map((i) => ({ kind: 'path', path: name(i) })));
    const two = openSources([name(1), name(3)], platform).sources;
    expect(two).toHaveLength(2);
  });

  it('inspectModel adds up their bytes, and does not take a part for the whole', async () => {
    const shards = [file(100), file(100), file(100)];
    const plan = await inspectOn(fakePlatform({ nShards: 3 }), shards, {});
    expect(plan.fileBytes).toBe(300);
    await expect(inspectOn(fakePlatform({ nShards: 3 }), file(100), {})).rejects.toMatchObject({
      code: 'BadModel',
      message: expect.stringMatching(/split in 3 files and 1 were given/),
    });
  });
});

describe('files that are no models', () => {
  it.each([
    ['a cut off header', file(30), 'Integrity', /ends after 30 bytes.*not even its header/],
    ['cut off weights', file(70), 'BadModel', /has 70 bytes, but the tensors .* need 100/],
    ['an empty file', new Uint8Array(), 'Integrity', /ends after 0 bytes/],
    [
      'a saved web page',
      new TextEncoder().encode('\n<!DOCTYPE html><html>'),
      'BadModel',
      /web page/,
    ],
    [
      'a Git LFS pointer',
      new TextEncoder().encode('version https://git-lfs.github.com/spec/v1\n'),
      'BadModel',
      /git lfs pull/,
    ],
  ])('%s', async (_, bytes, code, message) => {
    const platform = fakePlatform();
    const error = await loadFake(platform, {}, bytes).catch((e: unknown) => e);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(platform.module().log.deleted).toEqual(['loader']);
    expect(platform.workers[0]?.terminated).toBe(true);
  });

  it("the loader's own errors keep their code and details", async () => {
    const append = {
      code: 'Unsupported',
      message: 'architecture x',
      details: { key: 'general.architecture' },
    };
    await expect(loadFake(fakePlatform({ errors: { append } }))).rejects.toMatchObject({
      name: 'UnsupportedError',
      details: { key: 'general.architecture' },
    });
  });
});

describe('over HTTP', () => {
  const handlers: Record<string, RequestListener> = {
    '/good': (_, response) => response.setHeader('content-length', 100).end(file(100)),
    '/chunked': (_, response) => {
      response.write(file(100).subarray(0, 50));
      response.end(file(100).subarray(50));
    },
    '/cut': (_, response) => {
      response.write(file(70).subarray(0, 50));
      response.end(file(70).subarray(50));
    },
    '/gzip': (_, response) =>
      response.setHeader('content-encoding', 'gzip').end(gzipSync(file(100))),
    '/missing': (_, response) =>
      response.writeHead(404, { 'content-type': 'text/html' }).end('<html>not here</html>'),
    '/html': (_, response) =>
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>Log in</title>'),
    '/broken': (_, response) => {
      response.setHeader('content-length', 100).write(file(60));
      setTimeout(() => response.destroy(), 20);
    },
    '/more': (_, response) => {
      const write = () => response.write(file(150), (error) => error || setTimeout(write, 1));
      write();
    },
    '/slow': (_, response) => {
      response.on('close', () => {
        nClosed += 1;
      });
      response.setHeader('content-length', 100).write(file(60));
    },
  };
  let server: Server;
  let base = '';
  /** Downloads that were left. */
  let nClosed = 0;
  beforeAll(async () => {
    server = createServer((request, response) => handlers[request.url ?? '']?.(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.closeAllConnections());

  it.each(['/good', '/chunked', '/gzip', '/more'])(
    '%s loads, and its total is right once the header is read',
    async (path) => {
      const { seen } = await progressOf(`${base}${path}`);
      expect(seen.at(-1)).toEqual({ phase: 'ready', loadedBytes: 100, totalBytes: 100 });
    },
  );

  it('a compressed body does not pass its length for the file’s', async () => {
    const { seen } = await progressOf(`${base}/gzip`);
    expect(seen.find(({ phase }) => phase === 'header')).not.toHaveProperty('totalBytes');
  });

  it.each([
    ['/missing', 'Network', { status: 404 }, /answered 404/],
    ['/html', 'Network', { contentType: 'text/html' }, /web page/],
    ['/broken', 'Network', { receivedBytes: 60 }, /broke off after 60 bytes/],
  ])('%s fails as %s', async (path, code, details, message) => {
    const url = `${base}${path}`;
    const loading = loadFake(fakePlatform(), { retries: 0 }, new URL(url));
    const error = await loading.catch((e: unknown) => e);
    expect(error).toMatchObject({
      code,
      details: { url, ...details },
      message: expect.stringMatching(message),
    });
  });

  it('a server that is not there is a NetworkError', async () => {
    const url = 'http://127.0.0.1:9/model.gguf';
    const error = await loadFake(fakePlatform(), { retries: 0 }, url).catch((e: unknown) => e);
    expect(error).toMatchObject({
      code: 'Network',
      message: expect.stringMatching(/could not be fetched/),
    });
  });

  it('an abort during the download rejects with AbortError and ends the worker', async () => {
    const platform = fakePlatform();
    const abort = new AbortController();
    const onProgress = ({ phase }: LoadProgress) => phase === 'weights' && abort.abort();
    const loading = loadFake(platform, { signal: abort.signal, onProgress }, `${base}/slow`);
    await expect(loading).rejects.toMatchObject({ code: 'Aborted', name: 'AbortError' });
    expect(platform.workers[0]?.terminated).toBe(true);
  });

  it('a cut download of unknown length is seen at its end', async () => {
    const url = `${base}/cut`;
    await expect(loadFake(fakePlatform(), {}, url)).rejects.toMatchObject({
      code: 'Integrity',
      message: expect.stringMatching(/ends after 70 bytes, but the model needs 100 bytes/),
      details: { receivedBytes: 70, expectedBytes: 100 },
    });
  });

  it('inspectModel reads the header and leaves the rest of the download', async () => {
    const before = nClosed;
    const platform = fakePlatform({ weightsBytes: 777 });
    const plan = await inspectOn(platform, `${base}/slow`, {});
    expect(plan).toMatchObject({
      nCtx: 64,
      weightsBytes: 777,
      kvCacheBytes: 200,
      kvBytesPerToken: 4,
      workspaceBytes: 300,
    });
    expect(plan.model).toMatchObject({ architecture: 'fake' });
    expect(plan.model).not.toHaveProperty('weightsBytes');
    expect(platform.workers[0]?.terminated).toBe(true);
    await expect.poll(() => nClosed).toBe(before + 1);
  });
});
