// The int8 cache through the built package: bytes as planned, the same bits from both kernels, the same answers.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { headlight } from '../built_package.js';

const model = fileURLToPath(new URL('../../../examples/models/default-q8_0.gguf', import.meta.url));
const QUESTION = [{ role: 'user', content: 'Who are you?' }];
const GREEDY = { temperature: 0, maxTokens: 12 };

const { Engine, inspectModel, attend } = headlight;

describe('the int8 cache', () => {
  it('has the planned bytes and answers as the f32 cache does', async () => {
    const options = { nCtx: 65, kvCache: { k: 'int8', v: 'int8' }, threads: 1 } as const;
    const plan = await inspectModel(model, { nCtx: 65, kvCache: options.kvCache });
    const engine = await Engine.load(model, options);
    // 6 layers of 2 KV heads: 24 codes in the room of 32, 32 codes, two scales of 2 bytes; whole groups of four rows.
    const kvBytesPerToken = 6 * 2 * (32 + 2 + 32 + 2);
    const memory = { kvBytesPerToken, kvCacheBytes: 68 * kvBytesPerToken };
    expect(engine.info).toMatchObject({ nCtx: 65, memory });
    expect(plan).toMatchObject(memory);
    const { workspaceBytes } = engine.info.memory;
    expect(plan).toMatchObject({ workspaceBytes });
    expect((await engine.chat(QUESTION, GREEDY).result()).text).toMatch(/^I am/);
    await engine.dispose();
  });

  it('attend gives the same bits by tiles and by decode, near the reference', async () => {
    const wave = (n: number, phase: number) =>
      Float32Array.from({ length: n }, (_, i) => Math.sin(phase + i * 0.37));
    const [nKv, nTokens] = [300, 3];
    const layout = { nQHeads: 6, nKvHeads: 2, dQk: 48, dV: 64 };
    const rows = { k: wave(nKv * 2 * 48, 1), v: wave(nKv * 2 * 64, 2) };
    const q = wave(nTokens * 6 * 48, 3);
    const options = { ...layout, ...rows, q, kvCache: { k: 'int8', v: 'int8' } } as const;
    const tiled = await attend(options);
    expect(tiled).toMatchObject({ kernel: 'tiled', kvCacheBytes: nKv * 2 * (48 + 2 + 64 + 2) });
    const last = await attend({ ...options, q: q.slice(2 * 6 * 48), kernel: 'decode' });
    expect(last.out).toEqual(tiled.out.slice(2 * 6 * 64));
    const reference = await attend({ ...options, kernel: 'reference' });
    const errors = tiled.out.map((x, i) => Math.abs(x - (reference.out[i] ?? Number.NaN)));
    expect(Math.max(...errors)).toBeLessThan(1e-3);
  });
});
