// What the lab's section "Bytes" says of a table: changes of the loss from the article's own losses, which cut is the
// cheapest at each size, and where the printed figures differ from the exact ones.
import { describe, expect, test } from 'vitest';
import { columnsFor } from '../../../web/pages/lab/bytes/columns.js';
import { articleInputs, concurrencyRows } from '../../../web/pages/lab/bytes/concurrency_view.js';
import {
  latentArticle,
  latentCost,
  latentSentence,
} from '../../../web/pages/lab/bytes/latent_view.js';
import { keyLoads, keyNotes } from '../../../web/pages/lab/bytes/notes.js';
import { computeRows, findings, levels } from '../../../web/pages/lab/bytes/rows.js';
import {
  branchSentences,
  headPlaces,
  kvHeadOf,
  tensorRows,
} from '../../../web/pages/lab/bytes/tensors.js';
import { binaryBytes, largeNumber, megabytes } from '../../../web/pages/lab/bytes/units.js';
import { toCsv, toJson } from '../../../web/pages/lab/figure.js';
import { UrlState } from '../../../web/pages/lab/url_state.js';
import { layoutCost, layoutPreset } from '../../../web/runtime/src/lab/public.js';

const rowsOf = (name: string) => computeRows(layoutPreset(name));
const cells = (name: string, title: string) => {
  const rows = rowsOf(name);
  const column = columnsFor(rows, layoutPreset(name).weights).find(
    (candidate) => candidate.title === title,
  );
  if (!column) throw new Error(`${name} has no column "${title}"`);
  return rows.map((row) => column.cell(row));
};

describe('losses of the head-bytes article', () => {
  const changes = (name: string) =>
    rowsOf(name)
      .slice(1)
      .map(({ lossChange = 0 }) => lossChange);

  test('changes follow from its losses: within 0.07 of what it prints', () => {
    expect(
      changes('seedA1')
        .map((change) => change.toFixed(2))
        .join(' '),
    ).toBe('0.24 1.00 3.72 1.15 2.24 0.86 2.86 4.25');
    expect(changes('seedA2').map((change) => change.toFixed(2))).toEqual(['-1.98', '-6.48']);
    for (const name of ['seedA1', 'seedA2']) {
      const printed = layoutPreset(name)
        .rows.slice(1)
        .map((row) => row.printed.lossChange ?? '');
      for (const [i, change] of changes(name).entries())
        expect(Math.abs(change - Number(printed[i]?.replace('−', '-')))).toBeLessThan(0.07);
    }
  });

  test('exactly three printed changes differ from the recomputed digit, and say why', () => {
    const differing = rowsOf('seedA1').filter(
      (_, i) => cells('seedA1', 'Change of the loss')[i]?.why !== undefined,
    );
    expect(differing.map(({ label }) => label)).toEqual(['48 / 64', '64 / 54', '64 / 34']);
  });

  test('at every size the cheapest cut is queries and keys; both is never the best', () => {
    const found = levels(rowsOf('seedA1'));
    expect(found.map(({ bytes }) => Math.round(bytes / 1e6))).toEqual([65, 60, 54]);
    expect(found.map(({ rows }) => rows.length)).toEqual([3, 3, 2]);
    expect(found.map(({ cheapest }) => cheapest.series)).toEqual(Array(3).fill('queries and keys'));
    expect(found.map(({ dearest }) => dearest.series)).toEqual(['both', 'values', 'values']);
    expect(findings(rowsOf('seedA1'))[1]).toMatch(/60 MB.*queries and keys.*1\.00.*values.*2\.86/);
  });

  test('routing down to 16 still costs less than values down to 34', () => {
    const loss = (label: string) => rowsOf('seedA1').find((row) => row.label === label)?.lossChange;
    expect(loss('16 / 64')).toBeLessThan(loss('64 / 34') ?? 0);
  });

  test('a quarter of the routing width costs less per byte than a sixth of the value width', () => {
    const row = (label: string) => rowsOf('seedA1').find((candidate) => candidate.label === label);
    const [keys, values] = [row('48 / 64'), row('64 / 54')];
    expect([keys?.fileChange.toFixed(1), values?.fileChange.toFixed(1)]).toEqual(['-7.8', '-8.1']);
    // "nearly three times as much": 0.8 against 0.3 as printed, 3.6 times from the rounded losses.
    expect((values?.lossChange ?? 0) / (keys?.lossChange ?? 1)).toBeGreaterThan(2.6);
  });
});

describe('tables', () => {
  test('caches are in the printed unit, and 0.31 is said to be 0.3125', () => {
    expect(cells('llama8b', 'At 8,192 tokens').map(({ value }) => value)).toEqual([
      '4 GiB',
      '1 GiB',
      '0.125 GiB',
    ]);
    const last = cells('llama70b', 'At 8,192 tokens')[2];
    expect(last).toEqual({
      value: '0.3125 GiB',
      printed: '0.31 GiB',
      why: 'printed with two decimals',
    });
    for (const name of ['llama8b', 'llama70b'])
      for (const title of ['Cache a token', 'At 131,072 tokens'])
        for (const { value, printed } of cells(name, title)) expect(value).toBe(printed);
  });

  test('four times d_model squared: 67,108,864 weights of attention in a layer of 8B as MHA', () => {
    expect(cells('llama8b', 'Attention weights, one layer')[0]?.value).toBe('67,108,864');
  });

  test('heads: 64 distributions for the same 401,408 multiply-adds', () => {
    const title = 'Multiply-adds of the scores, 7 tokens';
    expect(
      cells('heads', title)
        .slice(0, 2)
        .map(({ value }) => value),
    ).toEqual(['401,408', '401,408']);
    expect(cells('heads', 'Distributions a token').map(({ value }) => value)).toEqual([
      '1',
      '64',
      '64',
      '64',
    ]);
    expect(cells('heads', 'Weights against the first row').map(({ value }) => value)).toEqual([
      'identical',
      'identical',
      '224 MiB smaller',
      '252 MiB smaller',
    ]);
  });

  test('the shape walk: shapes of weights and cache', () => {
    const values = (title: string) => cells('walk', title).map(({ value }) => value);
    expect(values('W_k and W_v, each')).toEqual(['[16, 16]', '[16, 4]', '[16, 2]']);
    expect(values('Keys as cached, 5 tokens')).toEqual(['[8, 5, 2]', '[2, 5, 2]', '[1, 5, 2]']);
    for (const title of ['Numbers cached a token', 'Parameters of W_k and W_v'])
      for (const { value, printed } of cells('walk', title)) expect(value).toBe(printed);
  });

  test('conversations: 25, 200 and 1,600 in GiB; 23 and 186 in GB', () => {
    const counts = (unit: 'GiB' | 'GB') =>
      concurrencyRows({ ...articleInputs, unit }, undefined).map(({ n }) => n);
    expect(counts('GiB')).toEqual([25, 200, 1600]);
    expect(counts('GB').slice(0, 2)).toEqual([23, 186]);
    expect(concurrencyRows(articleInputs, undefined)[1]?.printed).toBe('about 200');
  });

  test('a batch of 16 takes 16 caches; GPUs beyond the KV heads hold each several times (C42, C43)', () => {
    const rows = (gpus: number) => concurrencyRows({ ...articleInputs, gpus }, undefined);
    expect(rows(1).map(({ batchBytes }) => batchBytes / 2 ** 30)).toEqual([320, 40, 5]);
    expect(rows(8).map(({ copies }) => copies)).toEqual([1, 1, 8]);
    // One KV head on eight GPUs saves no more than eight heads do.
    expect(rows(8).map(({ n }) => n)).toEqual([25, 200, 200]);
    expect(rows(16).map(({ copies }) => copies)).toEqual([1, 2, 16]);
  });

  test('a latent of 512 and a rotary key of 64: 576 of 32,768 numbers, 56.9 times fewer (C44)', () => {
    expect(latentCost(latentArticle)).toMatchObject({ latent: 576, full: 32_768, groups: 2.25 });
    expect(latentSentence(latentArticle)).toContain('56.9 times fewer, as many as 2.25 KV heads');
    expect(latentCost({ ...latentArticle, heads: 64 }).full).toBe(16_384);
  });
});

describe('notes', () => {
  test('a 48-wide int8 key is three loads and three dots, a quarter smaller than 64', () => {
    expect([keyLoads(48), keyLoads(64), keyLoads(49), keyLoads(8)]).toEqual([3, 4, 4, 1]);
    const row = layoutPreset('seedA1').rows[1];
    if (!row) throw new Error('no row');
    const text = keyNotes(row.shape, layoutCost(row.shape)).join('\n');
    expect(text).toContain('3 loads of 16 bytes and 3 dot-product instructions');
    expect(text).toContain('25 % smaller');
  });

  test('n squared scores: 67.11 million at 8,192, 17.18 billion and 34.36 GB at 131,072', () => {
    const shape = layoutPreset('llama8b').rows[1]?.shape;
    if (!shape) throw new Error('no row');
    const note = (nCtx: number) => keyNotes(shape, layoutCost(shape, { nCtx })).join('\n');
    expect(note(8192)).toContain('67.11 million numbers');
    expect(note(131_072)).toContain('17.18 billion numbers, 34.36 GB');
    // n w with a window.
    expect(note(131_072)).toContain('window of 1,024 keys needs 134.2 million');
    expect(note(1024)).not.toContain('sliding window');
  });
});

describe('tensors of the second article’s branch', () => {
  const shape = layoutPreset('llama70b').rows[1]?.shape;
  if (!shape) throw new Error('no row');
  const table = tensorRows(shape, 7);
  const of = (name: string) => table.find((row) => row.name === name);

  test('shapes and bytes as printed: 114,688, 14,336 and 6,272', () => {
    for (const name of [
      'x',
      'x_norm',
      'q flat',
      'q reshaped',
      'head outputs',
      'concat',
      'attn_out',
      'x′',
    ])
      expect(of(name)).toMatchObject({ bytes: 114_688, printed: '112 KB' });
    for (const name of [
      'k flat',
      'v flat',
      'k reshaped',
      'v reshaped',
      'K cache slice',
      'V cache slice',
    ])
      expect(of(name)).toMatchObject({ bytes: 14_336, printed: '14 KB' });
    for (const name of ['scores', 'weights'])
      expect(of(name)).toMatchObject({ bytes: 6272, shape: [64, 7, 7], printed: '6 KB' });
    expect(of('q flat')?.shape).toEqual([7, 8192]);
    expect(of('k flat')?.shape).toEqual([7, 1024]);
    expect(of('q reshaped')?.shape).toEqual([7, 64, 128]);
    expect(of('K cache slice')?.shape).toEqual([7, 8, 128]);
    expect(table).toHaveLength(16);
  });

  test('printed figures stand beside the article’s own layout only', () => {
    expect(tensorRows(shape, 8).some(({ printed }) => printed !== undefined)).toBe(false);
    expect(tensorRows({ ...shape, dV: 64 }, 7)[0]?.printed).toBeUndefined();
    expect(
      tensorRows({ ...shape, dV: 64 }, 7).find(({ name }) => name === 'head outputs')?.shape,
    ).toEqual([7, 64, 64]);
  });

  test('heads counted from 1: places 0 to 127, 256 to 383, 768 to 895; query heads 9 to 16 read KV head 2', () => {
    expect([1, 3, 7].map((head) => headPlaces(head, 128))).toEqual([
      [0, 127],
      [256, 383],
      [768, 895],
    ]);
    expect([1, 8, 9, 16, 64].map((head) => kvHeadOf(head, shape))).toEqual([1, 1, 2, 2, 8]);
    const text = branchSentences(shape).join(' ');
    expect(text).toContain('1 to 8 read KV head 1, 9 to 16 read KV head 2');
    expect(text).toContain('head 7 owns places 768 to 895 of concat; 64 × 128 = 8,192');
  });
});

describe('units', () => {
  test.each([
    [4096, '4 KiB'],
    [327_680, '320 KiB'],
    [2_621_440, '2.5 MiB'],
    [335_544_320, '320 MiB'],
    [2.5 * 2 ** 30, '2.5 GiB'],
    [512, '512 B'],
  ])('%i bytes of cache are %s', (bytes, text) => expect(binaryBytes(bytes)).toBe(text));
  test.each([
    [70_995_434, '71.0 MB'],
    [141.107e9, '141.1 GB'],
    [2500, '2.5 kB'],
  ])('%i bytes of file are %s', (bytes, text) => expect(megabytes(bytes)).toBe(text));
  test('counts', () => expect(largeNumber(8_030_261_248)).toBe('8.03 billion'));
});

describe('files', () => {
  const data = {
    columns: ['a', 'b "c"'],
    rows: [
      ['x, y', 1.5],
      ['line\nbreak', 2],
    ],
  };
  test('CSV quotes what must be quoted', () => {
    expect(toCsv(data)).toBe('a,"b ""c"""\r\n"x, y",1.5\r\n"line\nbreak",2\r\n');
  });
  test('JSON has an object a row', () => {
    expect(JSON.parse(toJson(data))).toEqual([
      { a: 'x, y', 'b "c"': 1.5 },
      { a: 'line\nbreak', 'b "c"': 2 },
    ]);
  });
});

describe('the address', () => {
  const written: string[] = [];
  const state = (search: string) => new UrlState(search, (text) => written.push(text));

  test('keeps what was changed, and nothing else', () => {
    const values = state('?preset=llama8b&G=4');
    values.set('G', undefined);
    values.set('x', '1,2');
    values.flush();
    expect(written.at(-1)).toBe('?preset=llama8b&x=1,2');
    values.set('preset', undefined);
    values.set('x', undefined);
    values.flush();
    expect(written.at(-1)).toBe('');
  });

  test('gives nothing that is out of range, malformed or unknown', () => {
    const values = state('?a=5&b=x&c=&d=1,2,three&e=1,2,3&f=llama9&g=Infinity');
    expect(values.number('a', 0, 10)).toBe(5);
    expect(values.number('a', 6, 10)).toBeUndefined();
    for (const name of ['b', 'c', 'g', 'none'])
      expect(values.number(name, -1e9, 1e9)).toBeUndefined();
    expect(values.numbers('d', 3)).toBeUndefined();
    expect(values.numbers('e', 2)).toBeUndefined();
    expect(values.numbers('e', 3)).toEqual([1, 2, 3]);
    expect(values.oneOf('f', ['llama8b'])).toBeUndefined();
  });
});
