// What may be named as a model and is none, in Node: refused by name, at once, and never waited for.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelSource } from '../../../web/runtime/src/types.js';
import { headlight } from '../built_package.js';
import { randomModel, SMALL } from './random_model.js';

const { inspectModel } = headlight;
const isWindows = process.platform === 'win32';

let folder: string;
let path: string;
let bytes: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headlight-'));
  path = await randomModel('odd-sources', SMALL);
  bytes = new Uint8Array(readFileSync(path));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
  rmSync(path);
});

const refused = (source: unknown) =>
  inspectModel(source as ModelSource).then(
    () => expect.unreachable('it was taken'),
    (error) => error,
  );

describe('model sources', () => {
  it.skipIf(isWindows)('a pipe that nobody writes to is no file', async () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    expect(await refused(pipe)).toMatchObject({
      code: 'BadOption',
      message: `${pipe} could not be opened: it is not a file`,
    });
  });

  it.skipIf(process.platform !== 'linux')('a disk that fails names file and place', async () => {
    expect(await refused('/proc/self/mem')).toMatchObject({
      code: 'Integrity',
      message: expect.stringMatching(/^\/proc\/self\/mem could not be read at byte 0: EIO/),
      details: { offset: 0 },
    });
  });

  it('an address with a password is refused at once, and not repeated', async () => {
    const error = await refused('https://user:secret@example.test/m.gguf');
    expect(error).toMatchObject({ code: 'BadOption', message: expect.stringMatching(/fetch\(\)/) });
    expect(JSON.stringify([error.message, error.details])).not.toMatch(/secret/);
  });

  it('data: and blob: addresses are taken, as strings too', async () => {
    const data = `data:application/octet-stream;base64,${Buffer.from(bytes).toString('base64')}`;
    const blob = URL.createObjectURL(new Blob([bytes]));
    for (const source of [data, new URL(data), blob, new URL(blob)])
      expect((await inspectModel(source)).fileBytes).toBe(bytes.length);
    URL.revokeObjectURL(blob);
    expect(await refused(blob)).toMatchObject({ message: expect.stringMatching(/revoked/) });
  });

  it('addresses that Node cannot fetch are refused by their scheme', async () => {
    for (const source of ['ftp://x/y.gguf', new URL('about:blank'), new URL('file://host/x')])
      expect(await refused(source)).toMatchObject({
        code: 'BadOption',
        message: expect.stringMatching(/ftp:|about:|localhost/),
      });
  });

  it('what is no source is called what it is', async () => {
    const stream = new Blob([bytes]).stream();
    expect((await refused(stream)).message).toMatch(/a ReadableStream .*new Response\(stream\)/);
    expect((await refused(new Response(bytes))).message).toMatch(/a Response .*response\.blob/);
    expect((await refused(Promise.resolve(bytes))).message).toMatch(/of type Promise/);
    expect((await refused(undefined)).message).toMatch(/is undefined/);
  });
});
