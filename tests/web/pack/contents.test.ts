// What is in the package, and whether its declarations compile in users' programs.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PackedApp, packApp, write } from './packed_app.js';

const MODULES = ['simd', 'simd-threads', 'relaxed', 'relaxed-threads'];
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');

/** Uses every public name in the way of the documentation. */
const PROGRAM = `
import {
  attend, Engine, type EngineSession, type GenerateResult, HeadlightError, inspectModel, type ModelPlan, modelStore,
  type Run, type StorageUse, type StoredModel,
} from 'headlight-wasm';
import { HeadLab, layoutCost, layoutPreset, type ModelShape } from 'headlight-wasm/lab';

export async function lab(shape: ModelShape): Promise<number> {
  const running: HeadLab = await HeadLab.start({ threads: 1 });
  const weights = await running.weights({ nQHeads: 1, nKvHeads: 1, dQk: 1, q: Float32Array.of(1), k: Float32Array.of(1) });
  await running.dispose();
  return weights.length + layoutCost({ ...shape, dV: 3 }, { cacheK: 'int8' }).fileBytes + layoutPreset('seedA1').rows.length;
}

export async function main(file: Blob, signal: AbortSignal): Promise<string> {
  const plan: ModelPlan = await inspectModel(file, { nCtx: 512 });
  const engine: Engine = await Engine.load([file], {
    nCtx: plan.nCtx,
    kvCache: { k: 'f16' },
    onProgress: ({ phase, totalBytes }) => [phase, (totalBytes ?? 0) + 1],
    signal,
  });
  const run: Run = engine.chat([{ role: 'user', content: 'a' }], { stop: ['x'], logprobs: 2, signal });
  run.onPrefill(({ doneTokens, totalTokens }) => doneTokens / totalTokens);
  for await (const { text, tokens, logprobs } of run) if (text === '' && tokens.length > (logprobs?.length ?? 0)) run.abort();
  const { finishReason, usage }: GenerateResult = await run.result();
  const session: EngineSession = engine.session();
  await session.complete(new Uint32Array([1, 2]), { maxTokens: usage.nCtx }).result();
  await session.close();
  const { logits } = await engine.forward([1, 2], { logits: 'all' });
  const { out } = await attend({
    nQHeads: 1, nKvHeads: 1, dQk: 1, dV: 1, q: logits, k: logits, v: logits,
  });
  try {
    await engine.tokenize('a', { parseSpecial: true });
  } catch (error) {
    if (error instanceof HeadlightError && error.code === 'WorkerLost') return String(error.details.url);
  }
  const stored: StoredModel[] = await modelStore.list();
  const use: StorageUse = await modelStore.use();
  const kept = await Engine.load('/a.gguf', { store: 'require', sha256: [stored[0]?.sha256 ?? ''], retries: 2 });
  const { notices = [] } = kept.info.download ?? {};
  const blob: Blob | undefined = await modelStore.file('/a.gguf');
  if (notices.length + use.modelsBytes + (blob?.size ?? 0) > 0) await modelStore.delete('/a.gguf');
  await engine.dispose();
  return finishReason + out.length + engine.info.runtime.module;
}
// @ts-expect-error an option that is not there
export const wrong = (engine: Engine) => engine.chat([], { temprature: 1 });
`;

const STRICT = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  skipLibCheck: false,
  noEmit: true,
  target: 'ES2022',
  types: [],
};

let app: PackedApp;
beforeAll(() => {
  app = packApp();
});
afterAll(() => app?.remove());

describe('the packed package', () => {
  it('holds the four modules with both kinds of glue, the workers, declarations, licences; no sources', () => {
    const files = app.files.map(({ path: name }) => name);
    for (const name of MODULES) {
      for (const kind of ['mjs', 'node.mjs', 'wasm'])
        expect(files).toContain(`dist/wasm/headlight-${name}.${kind}`);
    }
    for (const name of [
      'index.js',
      'index.d.ts',
      'node.js',
      'lab/index.js',
      'lab/index.d.ts',
      'lab/node.js',
      'worker.js',
      'worker-node.js',
      'THIRD_PARTY_LICENSES.txt',
    ]) {
      expect(files).toContain(`dist/${name}`);
    }
    expect(files).toEqual(expect.arrayContaining(['README.md', 'LICENSE', 'package.json']));
    const strange = files.filter(
      (name) =>
        !/^(dist\/.*\.(js|mjs|wasm|d\.ts|txt)|README\.md|LICENSE|package\.json)$/.test(name),
    );
    expect(strange).toEqual([]);
  });

  it('is clean for publint, suggestions included', async () => {
    const pkgDir = path.resolve(import.meta.dirname, '../../../web/runtime');
    const { messages, pkg } = await publint({ pkgDir, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
  });

  it('browsers and Node get the same names', async () => {
    const dist = path.join(app.root, 'node_modules/headlight-wasm/dist');
    const names = async (file: string) => Object.keys(await import(path.join(dist, file))).sort();
    expect(await names('index.js')).toEqual(await names('node.js'));
    expect(await names('lab/index.js')).toEqual(await names('lab/node.js'));
  });

  it.each([
    [
      'a bundler',
      {
        module: 'ESNext',
        moduleResolution: 'bundler',
        lib: ['ES2022', 'DOM', 'DOM.AsyncIterable'],
      },
    ],
    [
      'Node resolution',
      { module: 'NodeNext', moduleResolution: 'NodeNext', lib: ['ES2022', 'DOM'] },
    ],
    [
      'a worker of the app’s own',
      { module: 'ESNext', moduleResolution: 'bundler', lib: ['ES2022', 'WebWorker'] },
    ],
  ])('its declarations compile under strict in a program for %s', (_, options) => {
    write(app.root, 'user/program.ts', PROGRAM);
    write(
      app.root,
      'user/tsconfig.json',
      JSON.stringify({ compilerOptions: { ...STRICT, ...options }, include: ['.'] }),
    );
    const run = () =>
      execFileSync(process.execPath, [tsc, '-p', path.join(app.root, 'user')], {
        encoding: 'utf8',
      });
    expect(outputOf(run)).toBe('');
  });
});

function outputOf(run: () => string): string {
  try {
    return run();
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}
