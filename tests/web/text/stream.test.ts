import { describe, expect, it } from 'vitest';
import {
  DetokenizerStream,
  type PieceSource,
  StopStringFilter,
} from '../../../web/runtime/src/text/stream.js';
import { Tokenizer } from '../../../web/runtime/src/text/tokenizer.js';
import { defaultModelMetadata } from './files.js';
import { bpeMetadata, CONTROL, randomSource, spmMetadata } from './vocabularies.js';

const TEXT = 'Grüße, 世界! 👩‍👩‍👧 🇩🇪 é \ufeff\u0000 end';

/** The ids cut into random groups, some of them empty. */
function randomGroups(ids: readonly number[], pick: (n: number) => number): number[][] {
  const groups: number[][] = [];
  for (let i = 0; i < ids.length; ) {
    const length = pick(4);
    groups.push(ids.slice(i, i + length));
    i += length;
  }
  return groups;
}

describe('DetokenizerStream', () => {
  const tokenizers: readonly (readonly [string, Tokenizer])[] = [
    ['byte fallback', Tokenizer.fromMetadata(spmMetadata(['▁', 'e', 'n', 'd', 'en']))],
    ['byte-level BPE', Tokenizer.fromMetadata(bpeMetadata('qwen2', ['end']))],
    ['the default model', Tokenizer.fromMetadata(defaultModelMetadata())],
  ];

  it.each(tokenizers)('%s: any grouping of the tokens gives the same text', (_, tokenizer) => {
    const ids = Array.from(tokenizer.encode(TEXT));
    for (let seed = 0; seed < 50; seed++) {
      const stream = tokenizer.stream();
      const groups = randomGroups(ids, randomSource(seed));
      const text = groups.map((group) => stream.push(group)).join('') + stream.flush();
      expect(text).toBe(TEXT);
    }
  });

  it.each(tokenizers)('%s: token by token, every delta is whole characters', (_, tokenizer) => {
    const stream = tokenizer.stream();
    for (const id of tokenizer.encode(TEXT)) {
      const delta = stream.push(id);
      expect(delta).not.toContain('\ufffd');
      expect(delta).not.toMatch(/\p{Surrogate}/u);
    }
    expect(stream.flush()).toBe('');
  });

  const bytes = (...values: number[]): PieceSource & { ids: number[] } => ({
    ids: values.map((_, i) => i),
    isControl: () => false,
    piece: (id) => Uint8Array.of(values[id] as number),
  });
  const decode = (source: PieceSource & { ids: number[] }): string[] => {
    const stream = new DetokenizerStream(source, { skipSpecial: true, stripSpace: false });
    return [...source.ids.map((id) => stream.push(id)), stream.flush()];
  };

  it.each([
    ['a character cut short at the end', [0xf0, 0x9f, 0x98], ['', '', '', '\ufffd']],
    ['a character cut short by another', [0xc3, 0x41], ['', '\ufffdA', '']],
    ['a byte that starts nothing', [0x80, 0x41], ['\ufffd', 'A', '']],
    ['an emoji in four tokens', [0xf0, 0x9f, 0x98, 0x80], ['', '', '', '😀', '']],
    ['a byte order mark', [0xef, 0xbb, 0xbf], ['', '', '\ufeff', '']],
  ])('%s', (_, values, expected) => {
    expect(decode(bytes(...values))).toEqual(expected);
  });

  it('after flush a stream starts a new text', () => {
    const source = bytes(0xe4, 0x41);
    const stream = new DetokenizerStream(source, { skipSpecial: true, stripSpace: false });
    expect(stream.push(0) + stream.flush() + stream.push(1) + stream.flush()).toBe('\ufffdA');
  });

  describe('the space that SentencePiece puts in front', () => {
    const tokenizer = Tokenizer.fromMetadata(spmMetadata(['▁', 'a', '▁a']));
    const a = tokenizer.idOf('▁a') as number;
    const bos = tokenizer.bosId as number;

    it('comes off the first piece of a text only, control tokens not counted', () => {
      const stream = tokenizer.stream();
      expect([bos, a, a].map((id) => stream.push(id))).toEqual(['', 'a', ' a']);
    });

    it('stays when the tokens continue a text', () => {
      const stream = tokenizer.stream({ continuation: true });
      expect(stream.push([a, a])).toBe(' a a');
    });

    it('one space is dropped, not all', () => {
      expect(tokenizer.decode(tokenizer.encode('  a'))).toBe('  a');
    });
  });

  it('control tokens are left out unless asked for', () => {
    const meta = bpeMetadata('qwen2', ['hi'], [{ text: '<|im_end|>', type: CONTROL }]);
    const tokenizer = Tokenizer.fromMetadata(meta);
    const ids = tokenizer.encode('hi<|im_end|>', { parseSpecial: true });
    expect(tokenizer.decode(ids)).toBe('hi');
    expect(tokenizer.decode(ids, { skipSpecial: false })).toBe('hi<|im_end|>');
  });
});

describe('StopStringFilter', () => {
  const filter = (stops: string[], deltas: string[]): [string[], string | undefined, string] => {
    const stop = new StopStringFilter(stops);
    const shown = deltas.map((delta) => stop.push(delta).text);
    return [shown, stop.stop, stop.flush()];
  };

  it.each<[string, string[], string[], [string[], string | undefined, string]]>([
    [
      'text without a stop passes at once',
      ['END'],
      ['abc', 'def'],
      [['abc', 'def'], undefined, ''],
    ],
    ['the text before the stop is shown', ['END'], ['abENDcd', 'x'], [['ab', ''], 'END', '']],
    [
      'a stop over three deltas is never shown',
      ['END'],
      ['aE', 'N', 'D!'],
      [['a', '', ''], 'END', ''],
    ],
    ['a false start is shown when it fails', ['END'], ['aEN', 'd'], [['a', 'ENd'], undefined, '']],
    ['a false start in a false start', ['aab'], ['aa', 'a', 'b'], [['', 'a', ''], 'aab', '']],
    ['what is held at the end is text', ['END'], ['xEN'], [['x'], undefined, 'EN']],
    ['the one complete first wins', ['world', 'lo w'], ['hello world'], [['hel'], 'lo w', '']],
    ['of two complete together, the longer', ['b', 'ab'], ['xab'], [['x'], 'ab', '']],
    ['a stop that begins another', ['a', 'ab'], ['xab'], [['x'], 'a', '']],
    ['line ends', ['\n\n'], ['a\n', 'b\n', '\nc'], [['a', '\nb', ''], '\n\n', '']],
    ['emoji', ['😀'], ['x😁', '😀'], [['x😁', ''], '😀', '']],
    ['no stop strings', [], ['abc'], [['abc'], undefined, '']],
  ])('%s', (_, stops, deltas, expected) => {
    expect(filter(stops, deltas)).toEqual(expected);
  });

  it('any cut of the text gives the same result', () => {
    const pick = randomSource(4);
    for (let round = 0; round < 2000; round++) {
      const random = (n: number): string =>
        Array.from({ length: 1 + pick(n) }, () => 'abc'[pick(3)]).join('');
      const stops = Array.from({ length: 1 + pick(3) }, () => random(4));
      const text = random(20);
      const whole = new StopStringFilter(stops);
      const expected = whole.push(text).text + whole.flush();
      const cut = new StopStringFilter(stops);
      let shown = '';
      for (let i = 0; i < text.length; ) {
        const length = 1 + pick(4);
        shown += cut.push(text.slice(i, i + length)).text;
        expect(stops.some((stop) => shown.includes(stop))).toBe(false);
        i += length;
      }
      shown += cut.flush();
      expect([shown, cut.stop], `${JSON.stringify(stops)} ${text}`).toEqual([expected, whole.stop]);
    }
  });

  it.each([[['']], [['a', '']]])('an empty stop string is an error: %j', (stops) => {
    expect(() => new StopStringFilter(stops)).toThrow(/stop\[\d\] is ""/);
  });
});
