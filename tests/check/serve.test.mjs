// The server that the pages are shown with: headers on every response, ranges, types, ports.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serve } from '../../web/serve.mjs';

let folder;
let server;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'headlight serve '));
  for (const name of ['index.html', 'a.wasm', 'a.mjs', 'a.gguf']) {
    writeFileSync(path.join(folder, name), '0123456789');
  }
  server = await serve({ mounts: { '/': folder, '/models/': folder } });
});

afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

describe('serve', () => {
  it.each(['', 'a.mjs', 'a.wasm', 'models/a.gguf', 'missing'])(
    'sends the policy with /%s',
    async (name) => {
      const { headers } = await fetch(server.url + name);
      expect(headers.get('content-security-policy')).toContain(
        "script-src 'self' 'wasm-unsafe-eval';",
      );
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
      expect(headers.get('cross-origin-embedder-policy')).toBe('require-corp');
    },
  );

  it('leaves isolation out when told to, but not the policy', async () => {
    const plain = await serve({ mounts: { '/': folder }, isolation: false });
    const { headers } = await fetch(plain.url);
    await plain.close();
    expect(headers.get('content-security-policy')).not.toBeNull();
    expect(headers.get('cross-origin-embedder-policy')).toBeNull();
  });

  it.each([
    ['a.wasm', /^application\/wasm/],
    ['a.mjs', /^text\/javascript/],
    ['index.html', /^text\/html/],
  ])('gives %s its type', async (name, type) => {
    expect((await fetch(server.url + name)).headers.get('content-type')).toMatch(type);
  });

  it('answers a range with those bytes alone, and one past the end with 416', async () => {
    const range = (value) => fetch(`${server.url}a.gguf`, { headers: { Range: value } });
    const part = await range('bytes=2-4');
    expect(part.status).toBe(206);
    expect(await part.text()).toBe('234');
    expect(part.headers.get('content-range')).toBe('bytes 2-4/10');
    expect((await range('bytes=10-')).status).toBe(416);
  });

  it('does not leave its folder', async () => {
    const status = await new Promise((resolve) => {
      // fetch() would normalise the path before sending it.
      get(`${server.url}`, { path: '/../../etc/hostname' }, (response) =>
        resolve(response.statusCode),
      );
    });
    expect(status).toBe(404);
    expect((await fetch(`${server.url}..%2f..%2fetc%2fhostname`)).status).toBe(404);
  });

  it('refuses other methods', async () => {
    expect((await fetch(server.url, { method: 'POST' })).status).toBe(405);
  });

  it('takes the next port when the wanted one is taken', async () => {
    const next = await serve({ mounts: { '/': folder }, port: server.port });
    expect(next.port).toBeGreaterThan(server.port);
    await next.close();
  });
});
