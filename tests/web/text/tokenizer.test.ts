import { describe, expect, it } from 'vitest';
import { MAX_WORD_LENGTH } from '../../../web/runtime/src/text/bpe.js';
import { Tokenizer } from '../../../web/runtime/src/text/tokenizer.js';
import { defaultModelMetadata, golden } from './files.js';
import {
  bpeMetadata,
  CONTROL,
  randomSource,
  referenceBpe,
  referenceSpm,
  spmMetadata,
} from './vocabularies.js';

const spelled = (tokenizer: Tokenizer, ids: Iterable<number>): string[] =>
  Array.from(ids, (id) => tokenizer.tokenText(id));
const plain = { addSpecial: false } as const;

const ALPHABET = [
  ...'abcdehilnorstw .,!?0123456789\n\t<|>_"\\\'',
  'é',
  'ß',
  'ж',
  '你',
  '好',
  '😀',
  '👩‍👧',
  '\u0301',
  '\u200b',
  '\ufeff',
  '\u0000',
  '▁',
];
function randomText(pick: (n: number) => number, maxLength: number): string {
  return Array.from({ length: pick(maxLength) }, () => ALPHABET[pick(ALPHABET.length)]).join('');
}

describe('SentencePiece vocabularies', () => {
  const meta = spmMetadata(['th', 'the', '▁the', '▁t', 'he', 'e', '▁', 't', 'h', 'a', '▁a', 'aa']);

  it('the default model: ids of the reference encoder', () => {
    const tokenizer = Tokenizer.fromMetadata(defaultModelMetadata());
    const { vectors } = golden<{ vectors: { text: string; ids: number[] }[] }>(
      'tokenizers/default_model.json',
    );
    const got = vectors.map(({ text }) => ({
      text,
      ids: Array.from(tokenizer.encode(text, { parseSpecial: true })),
    }));
    expect(got).toEqual(vectors);
  });

  it('the default model: 300 random texts have the ids of greedy merging and decode to themselves', () => {
    const model = defaultModelMetadata();
    const tokenizer = Tokenizer.fromMetadata(model);
    const pick = randomSource(1);
    for (let i = 0; i < 300; i++) {
      const text = randomText(pick, 60);
      const ids = Array.from(tokenizer.encode(text, plain));
      expect(ids, JSON.stringify(text)).toEqual(referenceSpm(model, text));
      // U+2581 is SentencePiece's own sign for a space.
      expect(tokenizer.decode(ids)).toBe(text.replaceAll('▁', ' '));
    }
  });

  it('the best score merges first, not the leftmost pair', () => {
    const tokenizer = Tokenizer.fromMetadata(
      spmMetadata(['bc', 'ab', 'a', 'b', 'c'], [], { 'tokenizer.ggml.add_space_prefix': false }),
    );
    expect(spelled(tokenizer, tokenizer.encode('abc', plain))).toEqual(['a', 'bc']);
  });

  it('of equal scores the leftmost pair merges first', () => {
    const texts = spmMetadata(['ab', 'ba', 'a', 'b'], [], {
      'tokenizer.ggml.add_space_prefix': false,
    });
    const flat = texts.with({ 'tokenizer.ggml.scores': new Float32Array(263) });
    const tokenizer = Tokenizer.fromMetadata(flat);
    expect(spelled(tokenizer, tokenizer.encode('aba', plain))).toEqual(['ab', 'a']);
    expect(spelled(tokenizer, tokenizer.encode('bab', plain))).toEqual(['ba', 'b']);
  });

  it('a space goes in front of the text unless the file says otherwise, and comes off again', () => {
    const tokenizer = Tokenizer.fromMetadata(meta);
    expect(spelled(tokenizer, tokenizer.encode('the the', plain))).toEqual(['▁the', '▁the']);
    expect(tokenizer.decode(tokenizer.encode('the the'))).toBe('the the');
    expect(tokenizer.decode(tokenizer.encode('the', plain), { continuation: true })).toBe(' the');
    const without = Tokenizer.fromMetadata(meta.with({ 'tokenizer.ggml.add_space_prefix': false }));
    expect(spelled(without, without.encode('the the', plain))).toEqual(['the', '▁the']);
    expect(without.decode(without.encode(' the', plain))).toBe(' the');
  });

  it('a piece with a space inside merges across words', () => {
    const pieces = ['a▁', 'a▁b', '▁', 'a', 'b'];
    const extra = { 'tokenizer.ggml.add_space_prefix': false };
    const tokenizer = Tokenizer.fromMetadata(spmMetadata(pieces, [], extra));
    expect(spelled(tokenizer, tokenizer.encode('a b', plain))).toEqual(['a▁b']);
  });

  it('characters without a piece become byte tokens', () => {
    const tokenizer = Tokenizer.fromMetadata(meta);
    expect(spelled(tokenizer, tokenizer.encode('é', plain))).toEqual(['▁', '<0xC3>', '<0xA9>']);
  });

  it('text never becomes a control, unknown or byte token by merging', () => {
    // Every step from characters to these texts is a piece, and their scores are the best.
    const pieces = ['</', '</s', '<0', '<0x', '<0x0', '<0x0A', '<u', '<un', '<unk'];
    const characters = [...'</s>0xAunk▁'];
    const extra = { 'tokenizer.ggml.add_space_prefix': false };
    const tokenizer = Tokenizer.fromMetadata(
      spmMetadata([...pieces, ...new Set(characters)], [], extra),
    );
    for (const text of ['</s>', '<0x0A>', '<unk>']) {
      expect(spelled(tokenizer, tokenizer.encode(text, plain))).toEqual([text.slice(0, -1), '>']);
    }
  });

  it('a control token of one character is no piece', () => {
    const tokenizer = Tokenizer.fromMetadata(spmMetadata(['▁'], [{ text: '$', type: CONTROL }]));
    expect(spelled(tokenizer, tokenizer.encode('$', plain))).toEqual(['▁', '<0x24>']);
  });

  it('without byte tokens unknown characters become one unknown token, and without that an error', () => {
    const pieces = ['▁', 'a'];
    const texts = ['<unk>', '<s>', '</s>', ...pieces];
    const bare = spmMetadata(pieces).with({
      'tokenizer.ggml.tokens': texts,
      'tokenizer.ggml.scores': new Float32Array(texts.length),
      'tokenizer.ggml.token_type': Int32Array.of(2, 3, 3, 1, 1),
    });
    const tokenizer = Tokenizer.fromMetadata(bare);
    expect(spelled(tokenizer, tokenizer.encode('aéüa', plain))).toEqual(['▁', 'a', '<unk>', 'a']);
    const none = Tokenizer.fromMetadata(
      bare.with({ 'tokenizer.ggml.unknown_token_id': 0xffffffff }),
    );
    expect(() => none.encode('aéa')).toThrow(/no token for "é".*unknown_token_id/);
    expect(tokenizer.encode('é'.repeat(1000), plain)).toHaveLength(2);
    expect(tokenizer.fewestTokens(1000)).toBe(0);
  });

  it('remove_extra_whitespaces is honoured', () => {
    const tokenizer = Tokenizer.fromMetadata(
      meta.with({ 'tokenizer.ggml.remove_extra_whitespaces': true }),
    );
    expect(spelled(tokenizer, tokenizer.encode('  the   the ', plain))).toEqual(['▁the', '▁the']);
    expect(tokenizer.encode('   ', plain)).toHaveLength(0);
    expect(tokenizer.fewestTokens(1000)).toBe(0);
  });
});

describe('byte-level BPE vocabularies', () => {
  const words = [
    'the',
    ' the',
    'he',
    ' he',
    'll',
    'ello',
    ' w',
    'wor',
    ' world',
    'é',
    '你',
    '  ',
    '12',
  ];

  it('200 random words have the ids of greedy merging', () => {
    const meta = bpeMetadata('gpt-2', words);
    const tokenizer = Tokenizer.fromMetadata(meta);
    const pick = randomSource(2);
    for (let i = 0; i < 200; i++) {
      const word = Array.from({ length: 1 + pick(30) }, () => 'thelowrd'[pick(8)]).join('');
      expect(Array.from(tokenizer.encode(word, plain)), word).toEqual(referenceBpe(meta, word));
    }
  });

  it('300 random texts decode to themselves', () => {
    const tokenizer = Tokenizer.fromMetadata(bpeMetadata('llama-bpe', words));
    const pick = randomSource(3);
    for (let i = 0; i < 300; i++) {
      const text = randomText(pick, 80);
      expect(tokenizer.decode(tokenizer.encode(text, plain))).toBe(text);
    }
  });

  it('tokens with quotes and backslashes merge like others', () => {
    const meta = bpeMetadata('gpt-2', ['"\\"', '","']);
    const tokenizer = Tokenizer.fromMetadata(meta);
    expect(spelled(tokenizer, tokenizer.encode('"\\"', plain))).toEqual(['"\\"']);
    expect(spelled(tokenizer, tokenizer.encode('","', plain))).toEqual(['","']);
  });

  it('a word that is a token is taken whole where the pre-tokenizer says so', () => {
    // "abc" is a token, but merging leads to a + bc.
    const make = (pre: string): Tokenizer => {
      const meta = bpeMetadata(pre, ['bc', 'abc']);
      return Tokenizer.fromMetadata(meta);
    };
    expect(spelled(make('llama-bpe'), make('llama-bpe').encode('abc', plain))).toEqual(['abc']);
    expect(spelled(make('qwen2'), make('qwen2').encode('abc', plain))).toEqual(['a', 'bc']);
  });

  it('text never becomes a control token, though it be a word of its own', () => {
    const meta = bpeMetadata('llama-bpe', ['a'], [{ text: 'stop', type: CONTROL }]);
    const tokenizer = Tokenizer.fromMetadata(meta);
    expect(spelled(tokenizer, tokenizer.encode('stop', plain))).toEqual(['s', 't', 'o', 'p']);
  });

  it('a byte without a token is an error that names it', () => {
    const full = bpeMetadata('gpt-2', []);
    const texts = (full.strings('tokenizer.ggml.tokens') ?? []).map((t) => (t === 'Ã' ? '[x]' : t));
    const tokenizer = Tokenizer.fromMetadata(full.with({ 'tokenizer.ggml.tokens': texts }));
    expect(() => tokenizer.encode('é')).toThrow(/byte 0xc3/);
  });
});

describe('odd input', () => {
  const tokenizer = Tokenizer.fromMetadata(defaultModelMetadata());

  it('a lone surrogate becomes U+FFFD; pairs stay', () => {
    expect(tokenizer.decode(tokenizer.encode('a\ud83d b😀'))).toBe('a\ufffd b😀');
  });

  it('U+FFFD from a lone surrogate is the piece of that name, not bytes', () => {
    const spm = Tokenizer.fromMetadata(spmMetadata(['▁', '\ufffd', '▁\ufffd']));
    expect(spelled(spm, spm.encode('\ud83d', plain))).toEqual(['▁\ufffd']);
  });

  it('an id outside the vocabulary is an error that names it', () => {
    expect(() => tokenizer.decode([2048])).toThrow(/2048.*0 to 2047/);
    expect(() => tokenizer.piece(-1)).toThrow(/-1/);
    expect(() => tokenizer.isControl(1.5)).toThrow(/1\.5/);
  });

  it.each([
    ['one letter', 'x'],
    ['spaces', ' '],
    ['newlines', '\n'],
    ['characters of two units', '😀'],
    ['beginnings of special tokens', '<|im_'],
  ])('200,000 units of %s are encoded, in bounded words', (_, unit) => {
    const text = unit.repeat(200_000 / unit.length);
    expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
  });

  it('a word up to the bound is merged whole', () => {
    const meta = bpeMetadata('gpt-2', ['ab']);
    const bpe = Tokenizer.fromMetadata(meta);
    expect(bpe.encode('ab'.repeat(MAX_WORD_LENGTH / 2), plain)).toHaveLength(MAX_WORD_LENGTH / 2);
    // One letter in front shifts every pair: the cut at the bound splits one.
    const shifted = bpe.encode(`a${'ab'.repeat(MAX_WORD_LENGTH / 2)}`, plain);
    expect(shifted).toHaveLength(MAX_WORD_LENGTH / 2 + 2);
  });
});

describe('fewestTokens', () => {
  const words = ['the', ' the', 'he', ' w', 'é', '你', '  ', '12', '😀'];
  it.each([
    ['the default model', () => defaultModelMetadata()],
    ['byte-level', () => bpeMetadata('llama-bpe', words)],
    ['SentencePiece', () => spmMetadata(['▁the', '▁t', 'he', '▁', 't', 'h', 'e'])],
  ])('%s: no text has fewer', (_, metadata) => {
    const tokenizer = Tokenizer.fromMetadata(metadata());
    const pick = randomSource(7);
    for (let i = 0; i < 300; i++) {
      const text = `${randomText(pick, 40)}${' the'.repeat(pick(40))}${'  '.repeat(pick(40))}`;
      const fewest = tokenizer.fewestTokens(text.length);
      expect(fewest).toBeLessThanOrEqual(tokenizer.encode(text, plain).length);
    }
    expect(tokenizer.fewestTokens(1e6)).toBeGreaterThan(10_000);
  });
});
