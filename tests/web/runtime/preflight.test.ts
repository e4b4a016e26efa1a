// Engine.preflight: its bytes are those that loading then takes, and what does not fit is refused with what would.
import { readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { report } from '../../soak/plan.js';
import { headlight } from '../built_package.js';
import { FaultServer } from '../store/fault_server.js';
import { randomModel, SMALL } from './random_model.js';

const model = fileURLToPath(new URL('../../../examples/models/default-q8_0.gguf', import.meta.url));
const { Engine } = headlight;

/** 64 KiB of cache a token: 1 GiB for its context, 4 GiB and more with longer keys. */
const WIDE = { ...SMALL, layers: 4, kv: 32, heads: 32, dqk: 256, dv: 256 };

describe('preflight', () => {
  it.each([
    ['f32', {}],
    ['int8', { kvCache: { k: 'int8', v: 'int8' } }],
    ['two threads', { threads: 2 }],
  ] as const)('tells what loading takes: %s', async (_, more) => {
    const options = { module: 'simd', threads: 1, nCtx: 300, ...more } as const;
    const { plan, neededBytes, fits, error, alternatives } = await Engine.preflight(model, options);
    const engine = await Engine.load(model, options);
    const { weightsBytes, kvCacheBytes, kvBytesPerToken, workspaceBytes } = engine.info.memory;
    expect(plan).toMatchObject({ weightsBytes, kvCacheBytes, kvBytesPerToken, workspaceBytes });
    expect(neededBytes).toBe(weightsBytes + kvCacheBytes + workspaceBytes);
    expect([fits, error, alternatives]).toEqual([true, undefined, []]);
    await engine.dispose();
  });

  it('cache and workspace are within 1 % of what the allocator then takes', async () => {
    const path = await randomModel('preflight', { ...SMALL, ctx: 65536 });
    const options = { module: 'simd', threads: 1, nCtx: 65536 } as const;
    const { plan } = await Engine.preflight(path, options);
    const engine = await Engine.load(path, options);
    const before = engine.info.memory.wasmBytes;
    // What loading has reserved holds the first session; each of these grows the memory by what it takes.
    const n = 4;
    for (let i = 0; i < n; i++) await engine.session().complete([1, 5], { maxTokens: 1 }).result();
    const grown = ((await engine.stats()).wasmBytes - before) / n;
    const planned = plan.kvCacheBytes + plan.workspaceBytes;
    expect(planned).toBeGreaterThan(60e6);
    // The margin of loading holds a part of the first.
    const spareBytes = planned * 0.01 + (4 << 20) / n;
    const lost = Math.abs(grown - planned) < spareBytes ? 0 : 1;
    const bytes = { plannedBytes: planned, takenBytes: grown };
    report('preflight, a session', { runs: n, faults: 0, lost, ...bytes });
    expect(Math.abs(grown - planned)).toBeLessThan(spareBytes);
    await engine.dispose();
    rmSync(path);
  });

  it('the memory of a whole load is within 1 % of it, but for what every module has', async () => {
    const path = await randomModel('preflight-large', {
      ...SMALL,
      d: 1024,
      ffn: 4096,
      layers: 8,
      heads: 8,
      kv: 2,
      dqk: 128,
      dv: 128,
    });
    const options = { module: 'simd', threads: 1, nCtx: 4096 } as const;
    const { neededBytes } = await Engine.preflight(path, options);
    const bare = (await Engine.load(model, { module: 'simd', threads: 1, nCtx: 1 })).info.memory;
    const engine = await Engine.load(path, options);
    const taken = engine.info.memory.wasmBytes;
    expect(neededBytes).toBeGreaterThan(150e6);
    const spareBytes = neededBytes * 0.01 + bare.wasmBytes;
    const lost = taken > neededBytes && taken - neededBytes < spareBytes ? 0 : 1;
    const bytes = { plannedBytes: neededBytes, takenBytes: taken, bareModuleBytes: bare.wasmBytes };
    report('preflight, a load', { runs: 1, faults: 0, lost, ...bytes });
    expect(taken - neededBytes).toBeLessThan(spareBytes);
    expect(taken).toBeGreaterThan(neededBytes);
    // It lasts for a run over the whole context.
    await engine.complete(new Array(600).fill(5), { maxTokens: 3 }).result();
    expect((await engine.stats()).wasmBytes).toBe(taken);
    await engine.dispose();
    rmSync(path);
  });

  it('measures what the machine gives, and expects a speed of it', async () => {
    const { speed, plan } = await Engine.preflight(model, { module: 'simd', threads: 1 });
    const { limits, decodeTokensPerSecond, prefillTokensPerSecond } = speed;
    expect(limits.readGBs).toBeGreaterThan(0.1);
    expect(decodeTokensPerSecond).toBeLessThan((limits.readGBs * 1e9) / plan.weightsBytes);
    expect(decodeTokensPerSecond).toBeGreaterThan(1);
    expect(prefillTokensPerSecond).toBeGreaterThan(1);
  });

  it('what does not fit is told with the numbers and with what would fit', async () => {
    const path = await randomModel('wide', WIDE);
    const refused = await Engine.preflight(path, { module: 'simd', threads: 1, nCtx: 16384 });
    expect(refused.fits).toBe(false);
    expect(refused.error).toMatchObject({
      code: 'OutOfMemory',
      details: { neededBytes: refused.neededBytes, nCtx: 16384 },
    });
    expect(refused.neededBytes).toBeGreaterThan(4 * 2 ** 30);
    const [first] = refused.alternatives;
    expect(first).toMatchObject({ nCtx: 16384, kvCache: { k: 'int8', v: 'int8' } });
    expect(refused.error?.message).toContain('nCtx: 16384');
    await expect(
      Engine.load(path, { module: 'simd', threads: 1, nCtx: 16384 }),
    ).rejects.toMatchObject({ code: 'OutOfMemory' });
    const { nCtx, kvCache } = refused.alternatives.at(-1) ?? { nCtx: 0, kvCache: {} };
    const fitting = await Engine.preflight(path, { module: 'simd', threads: 1, nCtx, kvCache });
    expect(fitting).toMatchObject({ fits: true });
    rmSync(path);
  });

  it('reads the header of an address and leaves the rest', async () => {
    const server = new FaultServer();
    await server.start();
    const bytes = new Uint8Array(readFileSync(model));
    const url = server.serve('/m.gguf', { bytes, pieceBytes: 32_768, pauseMs: 5 });
    const { plan } = await Engine.preflight(url, { module: 'simd', threads: 1 });
    expect(plan.fileBytes).toBe(bytes.length);
    expect(server.seen('/m.gguf')).toMatchObject([{ range: 'bytes=0-1048575' }]);
    expect(server.sentBytes('/m.gguf')).toBeLessThan(bytes.length / 2);
    server.serve('/no.gguf', { bytes }, { kind: 'status', status: 404 });
    await expect(Engine.preflight(`${server.url}/no.gguf`)).rejects.toMatchObject({
      code: 'Network',
    });
    await server.stop();
  });

  it('checks its options', async () => {
    await expect(Engine.preflight(model, { nCtx: 0 })).rejects.toMatchObject({ code: 'BadOption' });
    await expect(Engine.preflight(model, { store: true } as never)).rejects.toMatchObject({
      code: 'BadOption',
    });
  });
});
