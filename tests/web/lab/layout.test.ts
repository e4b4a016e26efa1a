// The byte calculator against everything that the articles print and that is published of the models, exactly.
import { readFileSync, statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  concurrency,
  expectedRates,
  layoutCost,
  layoutPreset,
  type ModelShape,
  PRESET_NAMES,
  weightItems,
} from '../../../web/runtime/src/lab/public.js';

const costs = (name: string) =>
  layoutPreset(name).rows.map(({ shape }) =>
    layoutCost(shape, { weights: layoutPreset(name).weights }),
  );
const megabytes = (name: string) => costs(name).map(({ fileBytes }) => fileBytes / 1e6);
const shapeOf = (name: string, row = 0): ModelShape => {
  const found = layoutPreset(name).rows[row];
  if (!found) throw new Error(`${name} has no row ${row}`);
  return found.shape;
};

describe('file sizes of the head-bytes article', () => {
  test('first table: all nine rows to the printed digit, and the exact formula', () => {
    expect(
      megabytes('seedA1')
        .map((mb) => mb.toFixed(1))
        .join(' '),
    ).toBe('71.0 65.5 60.0 54.5 65.5 60.0 65.3 59.5 53.8');
    expect(megabytes('seedA1').map((mb) => mb.toFixed(3))).toEqual(
      '70.995 65.489 59.982 54.475 65.490 59.984 65.261 59.527 53.792'.split(' '),
    );
    for (const [i, { printed }] of layoutPreset('seedA1').rows.entries())
      expect(Math.abs((megabytes('seedA1')[i] ?? 0) - Number(printed.megabytes))).toBeLessThan(
        0.05,
      );
  });

  test('first table: what was removed, to 0.1 %', () => {
    const [full = 0, ...cut] = megabytes('seedA1');
    expect(cut.map((mb) => (100 * (1 - mb / full)).toFixed(1)).join(' ')).toBe(
      '7.8 15.5 23.3 7.8 15.5 8.1 16.2 24.2',
    );
    expect(
      layoutPreset('seedA1')
        .rows.slice(1)
        .map(({ printed }) => printed.fileChange),
    ).toEqual('7.8 15.5 23.3 7.8 15.5 8.1 16.2 24.2'.split(' '));
  });

  test('a unit of d_qk and of d_v cost what 28 blocks of their matrices hold', () => {
    const bytes = (changes: Partial<ModelShape>) =>
      layoutCost({ ...shapeOf('seedA1'), ...changes }).fileBytes;
    // 28 x 512 x (8 + 4) and 28 x 512 x (2 x 8 + 4) numbers of two bytes; a wider d_qk has longer norms too.
    expect(bytes({ dQk: 65 }) - bytes({ dQk: 64 })).toBe(344_064 + 28 * 2 * 2);
    expect(bytes({ dV: 65 }) - bytes({ dV: 64 })).toBe(573_440);
  });

  test('the stated geometry cannot give the table: 168.3 MB instead of 71.0', () => {
    const stated = { nLayers: 20, dModel: 1024, nQHeads: 16, nKvHeads: 2 };
    expect((layoutCost({ ...shapeOf('seedA1'), ...stated }).fileBytes / 1e6).toFixed(1)).toBe(
      '168.3',
    );
  });

  test('second table: 185, 227, 270 MB, +23 % and +46 %', () => {
    expect(megabytes('seedA2').map((mb) => mb.toFixed(0))).toEqual(['185', '227', '270']);
    expect(megabytes('seedA2').map((mb) => mb.toFixed(3))).toEqual([
      '185.007',
      '227.343',
      '269.679',
    ]);
    const [first = 0, second = 0, third = 0] = megabytes('seedA2');
    expect([second / first, third / first].map((x) => (100 * (x - 1)).toFixed(2))).toEqual([
      '22.88',
      '45.77',
    ]);
  });

  test('memory tables 3.5 times as large are 45 % more file', () => {
    const base = shapeOf('seedA2');
    const grown = layoutCost({ ...base, nMemorySlots: 3.5 * base.nMemorySlots });
    expect((grown.fileBytes / 1e6).toFixed(3)).toBe('268.893');
    expect((100 * (grown.fileBytes / layoutCost(base).fileBytes - 1)).toFixed(2)).toBe('45.34');
  });

  test('the ladder meets at the same three sizes, within 0.7 MB', () => {
    const mb = megabytes('seedA1');
    for (const rows of [
      [1, 4, 6],
      [2, 5, 7],
      [3, 8],
    ]) {
      const sizes = rows.map((row) => mb[row] ?? 0);
      expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThan(0.7);
    }
  });
});

describe('published models', () => {
  test.each([
    ['needle2', 0, 44_938_997],
    ['llama8b', 1, 8_030_261_248],
    ['llama70b', 1, 70_553_706_496],
  ])('%s, row %i has %i parameters', (name, row, parameters) => {
    expect(costs(name)[row]?.parameters).toBe(parameters);
  });

  test('the 70B model at 16 bits is about 140 GB', () => {
    expect((costs('llama70b')[1]?.fileBytes ?? 0) / 1e9).toBeCloseTo(141.1, 1);
  });

  test('the default model: parameters exactly, file within its header and tokenizer', () => {
    const shape: ModelShape = {
      ...shapeOf('llama8b'),
      nLayers: 6,
      dModel: 192,
      nQHeads: 8,
      nKvHeads: 2,
      dQk: 24,
      dV: 32,
      dFf: 512,
      vocabSize: 2048,
      tiedHead: true,
    };
    const { parameters, fileBytes } = layoutCost(shape, { weights: 'q8_0' });
    expect(parameters).toBe(2_810_304);
    // 2,807,808 elements in blocks of 34 bytes for 32, 2,496 norm weights in f32.
    expect(fileBytes).toBe((2_807_808 * 34) / 32 + 2496 * 4);
    const path = new URL('../../../examples/models/default-q8_0.gguf', import.meta.url);
    const actual = statSync(path).size;
    expect(readFileSync(path).subarray(0, 4).toString()).toBe('GGUF');
    expect(actual - fileBytes).toBeGreaterThan(0);
    expect(actual - fileBytes).toBeLessThan(0.02 * actual);
  });

  test('Walsh-Hadamard diagonals have the next power of two', () => {
    const diagonals = (dModel: number) =>
      weightItems({ ...shapeOf('seedA1'), dModel }).find(({ name }) => name.includes('diagonals'));
    expect(diagonals(768)?.parameters).toBe(27 * 3 * 1024);
    expect(diagonals(512)?.parameters).toBe(27 * 3 * 512);
  });

  test('an embedding that is no head is stored twice and multiplied with once', () => {
    const { parameters, parametersUsed } = costs('llama8b')[1] ?? {
      parameters: 0,
      parametersUsed: 0,
    };
    expect(parameters - parametersUsed).toBe(128_256 * 4096);
  });
});

describe('caches', () => {
  const gib = 2 ** 30;
  const table = (name: string) =>
    costs(name).map(({ kvBytesPerToken: b }) => [b / 1024, (b * 8192) / gib, (b * 131_072) / gib]);

  test('8B: 512, 128 and 16 KiB a token; 4, 1 and 0.125 GiB; 64, 16 and 2 GiB', () => {
    expect(table('llama8b')).toEqual([
      [512, 4, 64],
      [128, 1, 16],
      [16, 0.125, 2],
    ]);
  });

  test('70B: 2,560, 320 and 40 KiB a token; 20, 2.5 and 0.3125 GiB; 320, 40 and 5 GiB', () => {
    expect(table('llama70b')).toEqual([
      [2560, 20, 320],
      [320, 2.5, 40],
      [40, 0.3125, 5],
    ]);
    expect(costs('llama70b').map(({ kvBytesPerToken }) => kvBytesPerToken)).toEqual([
      2_621_440, 327_680, 40_960,
    ]);
    expect(costs('llama70b')[1]?.kvBytesPerTokenPerLayer).toBe(4096);
  });

  test('one wide head costs what 64 heads cost; fewer KV heads are what saves', () => {
    const rows = costs('heads');
    expect(rows.map((row) => row.kvBytesPerTokenPerLayer)).toEqual([32_768, 32_768, 4096, 512]);
    const mha = rows[1]?.parameters ?? 0;
    expect(rows.map(({ parameters }) => ((mha - parameters) * 2) / 2 ** 20)).toEqual([
      0, 0, 224, 252,
    ]);
    const attention = rows.map((row) => row.attentionFlopsPerToken);
    expect(attention[0]).toBe(attention[1]);
  });

  test('W_k: 128, 16 and 2 MiB; W_q and W_o never change', () => {
    const mib = (name: string) =>
      layoutPreset('heads')
        .rows.slice(1)
        .map(({ shape }) => {
          const item = weightItems(shape).find((weight) => weight.name === name);
          return ((item?.parameters ?? 0) * 2) / 2 ** 20;
        });
    expect(mib('W_k')).toEqual([128, 16, 2]);
    expect(mib('W_q')).toEqual([128, 128, 128]);
    expect(mib('W_o')).toEqual([128, 128, 128]);
  });

  test('four square matrices of d_model 4,096 are 67,108,864 parameters', () => {
    const shape = { ...shapeOf('heads', 1), dModel: 4096, nQHeads: 32, nKvHeads: 32 };
    expect(layoutCost(shape).parameters - 4096).toBe(67_108_864);
  });

  test('the shape walk: 32, 8 and 4 numbers a token; 512, 128 and 64 parameters', () => {
    expect(costs('walk').map((row) => row.kvBytesPerTokenPerLayer / 2)).toEqual([32, 8, 4]);
    const kv = layoutPreset('walk').rows.map(({ shape }) =>
      weightItems(shape)
        .filter(({ name }) => name === 'W_k' || name === 'W_v')
        .reduce((sum, { parameters }) => sum + parameters, 0),
    );
    expect(kv).toEqual([512, 128, 64]);
  });

  test('keys and values of different widths: L g (d_qk + d_v) n b', () => {
    const shape = { ...shapeOf('llama8b'), nLayers: 3, nQHeads: 4, nKvHeads: 2, dQk: 48, dV: 64 };
    const cost = layoutCost(shape, { cacheK: 'f16', cacheV: 'f32', nCtx: 100 });
    expect(cost.kvBytes).toBe(3 * 2 * (48 * 2 + 64 * 4) * 100);
    expect(1 - cost.kvKeyBytesPerToken / layoutCost({ ...shape, dQk: 64 }).kvKeyBytesPerToken).toBe(
      0.25,
    );
  });

  test('int8 rows: one byte an element and one scale of two bytes a row', () => {
    const shape = { ...shapeOf('llama8b'), nLayers: 1, nQHeads: 2, nKvHeads: 2, dQk: 48, dV: 64 };
    const cost = layoutCost(shape, { cacheK: 'int8', cacheV: 'int8' });
    expect(cost.kvPayloadBytesPerToken).toBe(224);
    expect(cost.kvBytesPerToken).toBe(224 + 2 * 2 * 2);
    expect(cost.kvAllocatedBytesPerToken).toBe(cost.kvBytesPerToken);
    const narrow = layoutCost({ ...shape, dQk: 24 }, { cacheK: 'int8', cacheV: 'int8' });
    expect(narrow.kvAllocatedBytesPerToken - narrow.kvBytesPerToken).toBe(2 * 8);
  });
});

describe('a token', () => {
  test('reads its weights and the cache; twice the context is twice the cache', () => {
    const shape = shapeOf('llama8b', 1);
    const at = (nCtx: number) => layoutCost(shape, { weights: 'bf16', nCtx });
    const weights = at(1).parametersUsed * 2;
    expect(at(8192).bytesMovedPerToken).toBe(weights + 2 ** 30);
    expect(at(16_384).bytesMovedPerToken - weights).toBe(2 * 2 ** 30);
    // 2 x 32 layers x 32 heads x (128 + 128) x n.
    expect(at(1000).attentionFlopsPerToken).toBe(2 * 32 * 32 * 256 * 1000);
    // Norms are no matrix products.
    const norms = (2 * 32 + 1) * 4096;
    expect(at(1000).flopsPerToken).toBe(
      2 * (at(1).parametersUsed - norms) + at(1000).attentionFlopsPerToken,
    );
  });

  test('a machine that reads 25 GB/s and multiplies 200 Gop/s', () => {
    const cost = layoutCost(shapeOf('llama8b', 1), { weights: 'q8_0', nCtx: 1 });
    const { decode, prefill } = expectedRates(cost, { readGBs: 25, dotGops: 200, fmaGflops: 50 });
    expect(decode).toBeCloseTo(25e9 / cost.bytesMovedPerToken, 9);
    expect(prefill).toBeCloseTo(200e9 / (cost.flopsPerToken - cost.attentionFlopsPerToken), 9);
  });
});

describe('concurrency', () => {
  const fits = (memoryBytes: number, weightsBytes: number, kvBytesPerToken: number) =>
    concurrency({ memoryBytes, weightsBytes, workspaceBytes: 0, kvBytesPerToken, nTokens: 8192 }).n;

  test('200 conversations with 8 KV heads against 25 with 64; in strict GB 186 and 23', () => {
    const [mha = 0, gqa = 0] = costs('llama70b').map(({ kvBytesPerToken }) => kvBytesPerToken);
    const gib = 2 ** 30;
    expect([fits(640 * gib, 140 * gib, gqa), fits(640 * gib, 140 * gib, mha)]).toEqual([200, 25]);
    expect([fits(640e9, 140e9, gqa), fits(640e9, 140e9, mha)]).toEqual([186, 23]);
  });

  test('more weights than memory is none, not fewer than none', () => {
    expect(fits(10, 20, 1)).toBe(0);
  });
});

describe('what cannot be', () => {
  test.each([
    ['nKvHeads', { nKvHeads: 3 }],
    ['dQk', { dQk: 0 }],
    ['nLayers', { nLayers: 1.5 }],
    ['feedForward', { feedForward: 'wide' }],
    ['tiedHead', { tiedHead: 1 }],
    ['width', { width: 1 }],
  ])('%s is refused by name', (option, changes) => {
    const shape = { ...shapeOf('llama8b', 1), ...changes } as ModelShape;
    expect(() => layoutCost(shape)).toThrow(
      expect.objectContaining({ code: 'BadOption', details: expect.objectContaining({ option }) }),
    );
  });

  test.each([
    ['weights', { weights: 'q3' }],
    ['cacheK', { cacheK: 'int4' }],
    ['nCtx', { nCtx: 0 }],
  ])('%s is refused by name', (option, options) => {
    expect(() => layoutCost(shapeOf('llama8b'), options as never)).toThrow(
      expect.objectContaining({ code: 'BadOption', details: expect.objectContaining({ option }) }),
    );
  });

  test('an unknown preset is answered with the known ones', () => {
    expect(() => layoutPreset('seedB')).toThrow(new RegExp(PRESET_NAMES.join(', ')));
  });
});
