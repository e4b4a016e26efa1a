// What the bench page makes of a measurement: the known answer, ceilings and shares, and the text that people copy.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { answerText, knownPrompts, knownSha256 } from '../../../web/pages/bench/known_answer.js';
import { type BenchResult, promptTokens, roundSizes } from '../../../web/pages/bench/measure.js';
import {
  asText,
  figures,
  limitRows,
  stages,
  statRows,
  verdict,
  weightBytesRead,
} from '../../../web/pages/bench/report.js';

const golden = JSON.parse(
  readFileSync(new URL('../../golden/default_model.json', import.meta.url), 'utf8'),
) as { prompts: { ids: number[]; greedy_ids: number[] }[] };

function result(changes: Partial<BenchResult> = {}): BenchResult {
  return {
    modelName: 'Test',
    info: {
      model: {
        architecture: 'llama',
        name: '',
        dModel: 10,
        vocabSize: 100,
        nCtxTrain: 512,
        tiedHead: true,
        layers: [],
        parametersUsed: 1e6,
        hasTokenizer: true,
        hasChatTemplate: false,
      },
      runtime: {
        module: 'relaxed',
        threads: 1,
        dotForm: 'unsigned',
        crossOriginIsolated: true,
        reasons: ['because', 'therefore'],
      },
      memory: {
        weightsBytes: 1e6,
        kvCacheBytes: 0,
        kvBytesPerToken: 100,
        workspaceBytes: 0,
        wasmBytes: 2e6,
      },
      nCtx: 512,
      loadMs: 5,
    },
    nPrompt: 256,
    nGen: 64,
    rounds: [
      { decode: 900, prefill: 4000 },
      { decode: 1000, prefill: 5000 },
      { decode: 700, prefill: 4500 },
    ],
    limits: { readGBs: 2.0576, modelReadGBs: 5.144, dotGops: 20, fmaGflops: 8 },
    answer: { sha256: knownSha256, expected: knownSha256, text: 'Hello' },
    stats: { contextTokens: 320, nCtx: 512, wasmBytes: 2 ** 24 },
    date: new Date('2026-01-31T14:05:06Z'),
    userAgent: 'A browser',
    logicalCores: 8,
    ...changes,
  };
}

describe('the known answer', () => {
  test('its prompts and its hash are those of the reference program', () => {
    expect(knownPrompts).toEqual(
      golden.prompts.map(({ ids, greedy_ids }) => ({ ids, nTokens: greedy_ids.length })),
    );
    const text = answerText(golden.prompts.map(({ greedy_ids }) => greedy_ids));
    expect(createHash('sha256').update(text).digest('hex')).toBe(knownSha256);
  });

  test('right, wrong and unknown are told apart', () => {
    const wrong = { sha256: knownSha256.replace(/^./, 'x'), expected: knownSha256, text: '' };
    expect(verdict(result()).state).toBe('right');
    expect(verdict(result({ answer: wrong }))).toMatchObject({ state: 'wrong' });
    expect(verdict(result({ answer: wrong })).text).toContain(knownSha256);
    expect(verdict(result({ answer: { sha256: 'a', text: '' } })).state).toBe('unknown');
  });
});

describe('figures', () => {
  test('a token reads the weights and the mean of the cache rows; the ceiling follows', () => {
    const { decode, bytesPerToken } = figures(result());
    // 1e6 + (256 + 32) * 100 bytes; 5.144 GB/s of them.
    expect(bytesPerToken).toBe(1_028_800);
    expect(decode.ceiling).toBeCloseTo(5000, 6);
    expect(decode.other.rate).toBeCloseTo(2000, 6);
    expect([decode.best, decode.median]).toEqual([1000, 900]);
    expect(decode.share).toBeCloseTo(0.18, 9);
  });

  test('a token of prompt takes two operations a parameter', () => {
    const { prefill, operationsPerToken } = figures(result());
    expect(operationsPerToken).toBe(2e6);
    expect(prefill.ceiling).toBe(10_000);
    expect(prefill.other.rate).toBe(4000);
    expect(prefill.share).toBe(0.45);
  });

  test('of an embedding that is no head a token reads one row, not all', () => {
    const { info } = result();
    const untied = { ...info, model: { ...info.model, tiedHead: false, parametersUsed: 9000 } };
    expect(weightBytesRead({ info: untied })).toBe(900_000);
    expect(weightBytesRead({ info })).toBe(1e6);
  });
});

describe('the measurement', () => {
  test('sizes shrink with the context and always fit it', () => {
    expect(roundSizes(4096)).toEqual({ nPrompt: 256, nGen: 64 });
    expect(roundSizes(320)).toEqual({ nPrompt: 256, nGen: 64 });
    for (const nCtx of [2, 3, 16, 100, 319]) {
      const { nPrompt, nGen } = roundSizes(nCtx);
      expect(Math.min(nPrompt, nGen)).toBeGreaterThan(0);
      expect(nPrompt + nGen).toBeLessThanOrEqual(nCtx);
    }
  });

  test('prompts are within the vocabulary, repeatable, and begin differently each time', () => {
    const prompts = Array.from({ length: 40 }, (_, seed) => promptTokens(256, 41, seed));
    expect(prompts[3]).toEqual(promptTokens(256, 41, 3));
    expect(new Set(prompts.map((prompt) => prompt[0])).size).toBe(40);
    expect(Math.max(...prompts.flatMap((prompt) => [...prompt]))).toBeLessThan(41);
  });
});

describe('what people read', () => {
  test('the text has the rates, the limits, the module, why, and the hash', () => {
    const text = asText(result());
    for (const part of [
      '2026-01-31T14:05:06',
      'decode:                  900 tokens/s (best 1,000), 18 % of the ceiling of 5,000',
      'prefill:                 4,500 tokens/s (best 5,000), 45 % of the ceiling of 10,000',
      '2.1 GB/s',
      '5.1 GB/s',
      '20 Gop/s',
      '8 GFLOP/s',
      'relaxed, dot form unsigned',
      '1 of 8 logical cores',
      'because; therefore',
      'A browser',
      knownSha256,
      'The answer is right',
    ])
      expect(text).toContain(part);
    expect(text).not.toMatch(/undefined|NaN|\[object/);
  });

  test('where a token’s time goes: microseconds a token, in the text too', () => {
    const times = {
      embeddingMs: 0,
      normsMs: 1,
      projectionsMs: 2,
      positionsMs: 0,
      attentionMs: 4,
      feedForwardMs: 8,
    };
    const all = { ...times, activationMs: 0, headMs: 16, samplingMs: 1 };
    const measured = result({
      stats: {
        contextTokens: 1,
        nCtx: 2,
        wasmBytes: 2 ** 24,
        stages: {
          promptTokens: 256,
          prefill: { ...all, attentionMs: 512 },
          decodeSteps: 64,
          decode: all,
        },
      },
    });
    const attention = stages(measured).find(({ name }) => name === 'attention');
    expect(attention).toEqual({ name: 'attention', decode: 62.5, prefill: 2000 });
    expect(asText(measured)).toMatch(
      /a token, writing: +output head 250 µs, feed-forward 125 µs, attention 63 µs/,
    );
    expect(asText(measured)).toMatch(/a token, reading: +attention 2.0 ms, output head 63 µs/);
    expect(stages(result())).toEqual([]);
  });

  test('the second read ceiling is shown only where it is another one', () => {
    expect(limitRows(result())).toHaveLength(4);
    const limits = { readGBs: 3, modelReadGBs: 3, dotGops: 1, fmaGflops: 1 };
    expect(limitRows(result({ limits }))).toHaveLength(3);
  });

  test('whatever the engine counts is shown, nested figures too', () => {
    expect(statRows({ nCtx: 5, last: { decodeMs: 1.23456, kernel: 'tiled' }, none: null })).toEqual(
      [
        { term: 'n ctx', value: '5' },
        { term: 'last: decode ms', value: '1.235' },
        { term: 'last: kernel', value: 'tiled' },
      ],
    );
  });
});
