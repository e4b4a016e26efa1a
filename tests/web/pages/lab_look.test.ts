// What the lab's section "Where a token looks" computes by itself: rows, facts, limits, colours. The weights are the kernels'.
import type { Captured } from 'headlight-wasm';
import { describe, expect, test } from 'vitest';
import { inkOn, luminance, mixed, rgbOf, shadeOf } from '../../../web/pages/lab/look/heat.js';
import {
  LookData,
  largestKeys,
  parseHead,
  pieceLabel,
  pieceName,
  tokenLimit,
} from '../../../web/pages/lab/look/look_data.js';

/** One layer, two heads, given rows of weights. */
function captured(positions: number[], nKv: number, heads: number[][][]): Captured {
  return {
    what: 'weights',
    positions: Uint32Array.from(positions),
    nKv,
    layers: [
      {
        layer: 0,
        heads: Uint32Array.from(heads.keys()),
        attention: {
          data: Float32Array.from(heads.flat(2)),
          shape: [heads.length, positions.length, nKv],
        },
        sinkMass: {
          data: new Float32Array(heads.length * positions.length).fill(0.25),
          shape: [heads.length, positions.length],
        },
      },
    ],
  };
}

describe('the data', () => {
  const data = new LookData([5, 6, 5], ['a', ' b', 'a']);
  data.add(
    captured([0, 1, 2], 3, [
      [
        [1, 0, 0],
        [0.5, 0.5, 0],
        [0.25, 0.25, 0.5],
      ],
      [
        [1, 0, 0],
        [1, 0, 0],
        [0, 1, 0],
      ],
    ]),
  );

  test('rows have the keys up to their own, and maps come back square', () => {
    const map = data.map({ layer: 0, head: 0 });
    expect(map?.rows.map((row) => [...row])).toEqual([[1], [0.5, 0.5], [0.25, 0.25, 0.5]]);
    expect([...(map?.square(2) ?? [])]).toEqual([1, 0, 0.5, 0.5]);
  });

  test('facts of a row: the sink, entropy, how many equal tokens, the distance', () => {
    const facts = data.map({ layer: 0, head: 0 })?.facts(1);
    expect(facts).toMatchObject({ firstToken: 0.5, learnedSink: 0.25, distance: 0.5 });
    expect(facts?.entropy).toBeCloseTo(Math.LN2, 6);
    expect(facts?.effectiveTokens).toBeCloseTo(2, 6);
  });

  test('a row that is generated joins, and no other head gets one', () => {
    const grown = new LookData([5, 6], ['a', 'b']);
    grown.add(
      captured([0, 1], 2, [
        [
          [1, 0],
          [0, 1],
        ],
      ]),
    );
    grown.add(captured([2], 3, [[[0.1, 0.2, 0.7]]]));
    expect(grown.map({ layer: 0, head: 0 })?.rows).toHaveLength(3);
    expect(grown.maps.size).toBe(1);
  });

  test('the first look is at a head that points: here at what followed the same token', () => {
    expect(data.mostPointed()).toEqual({ layer: 0, head: 1 });
    expect(data.nearest({ layer: 9, head: 9 })).toEqual({ layer: 0, head: 0 });
    expect(data.nearest({ layer: 0, head: 1 })).toEqual({ layer: 0, head: 1 });
  });

  test('largest keys, names of heads, limits', () => {
    expect(largestKeys([0.1, 0.6, 0.3], 2)).toEqual([1, 2]);
    expect(parseHead('3.1')).toEqual({ layer: 3, head: 1 });
    for (const bad of [undefined, '', '3', 'a.b', '1.2.3', '-1.0'])
      expect(parseHead(bad)).toBeUndefined();
    expect(tokenLimit(48, 4096)).toBe(512);
    expect(tokenLimit(48, 100)).toBe(100);
    expect(tokenLimit(3200, 4096)).toBe(100);
  });

  test('tokens as labels: spaces and line ends are seen', () => {
    expect(pieceLabel(' lamp')).toBe(' lamp');
    expect(pieceLabel('  ')).toBe('␣␣');
    expect(pieceLabel('\n')).toBe('⏎');
    expect(pieceName(' lamp')).toBe('“lamp”');
  });
});

describe('colours', () => {
  const themes = [
    ['#ffffff', '#1c5b82'],
    ['#1b1f26', '#8ec5ea'],
  ] as const;

  test('hex colours, short ones too: a build shortens them', () => {
    expect(rgbOf('#1c5b82')).toEqual([28, 91, 130]);
    expect(rgbOf(' #fff')).toEqual([255, 255, 255]);
  });

  test('the shade is the square root, from nothing to everything', () => {
    expect([shadeOf(0), shadeOf(0.25), shadeOf(1), shadeOf(1.1), shadeOf(-1)]).toEqual([
      0, 0.5, 1, 1, 0,
    ]);
    expect(mixed([0, 0, 0], [200, 100, 50], 0.5)).toEqual([100, 50, 25]);
  });

  test('text on every shade of both themes has a contrast of at least 4.5', () => {
    for (const [low, high] of themes) {
      for (let i = 0; i <= 100; i++) {
        const ground = luminance(mixed(rgbOf(low), rgbOf(high), i / 100));
        const ink = luminance(rgbOf(inkOn(mixed(rgbOf(low), rgbOf(high), i / 100))));
        const [a, b] = [Math.max(ground, ink), Math.min(ground, ink)];
        expect((a + 0.05) / (b + 0.05)).toBeGreaterThanOrEqual(4.5);
      }
    }
  });
});
