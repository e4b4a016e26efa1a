import { describe, expect, it } from 'vitest';
import { Tokenizer } from '../../../web/runtime/src/text/tokenizer.js';
import { bpeMetadata, CONTROL, NORMAL, spmMetadata, USER_DEFINED } from './vocabularies.js';

const spelled = (tokenizer: Tokenizer, ids: Iterable<number>): string[] =>
  Array.from(ids, (id) => tokenizer.tokenText(id));

const CHATML = [
  { text: '<|im_start|>', type: CONTROL },
  { text: '<|im_end|>', type: CONTROL },
];

describe('special tokens in text', () => {
  const meta = bpeMetadata(
    'qwen2',
    ['im', 'end', 'hi'],
    [
      ...CHATML,
      { text: '<|im_end|>!', type: CONTROL },
      { text: '<tool>', type: USER_DEFINED },
      { text: '<|user|>', type: USER_DEFINED },
    ],
  );
  const tokenizer = Tokenizer.fromMetadata(meta);
  const idOf = (text: string): number => tokenizer.idOf(text) as number;

  it('control tokens are parsed only when asked for', () => {
    const text = 'hi<|im_end|>';
    expect(Array.from(tokenizer.encode(text, { parseSpecial: true }))).toEqual([
      idOf('hi'),
      idOf('<|im_end|>'),
    ]);
    expect(tokenizer.encode(text)).not.toContain(idOf('<|im_end|>'));
    expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
  });

  it('the longest token wins', () => {
    expect(Array.from(tokenizer.encode('<|im_end|>!', { parseSpecial: true }))).toEqual([
      idOf('<|im_end|>!'),
    ]);
  });

  it('user-defined tokens match in any text', () => {
    expect(Array.from(tokenizer.encode('hi<tool>hi'))).toEqual([
      idOf('hi'),
      idOf('<tool>'),
      idOf('hi'),
    ]);
    expect(Array.from(tokenizer.encode('<|user|>'))).toEqual([idOf('<|user|>')]);
  });

  it('runs of user-defined white space, as Gemma has them, take the longest first', () => {
    const runs = Array.from({ length: 30 }, (_, i) => ({
      text: '\n'.repeat(i + 2),
      type: USER_DEFINED,
    }));
    const bpe = Tokenizer.fromMetadata(bpeMetadata('qwen2', [], runs));
    const lengths = Array.from(
      bpe.encode('\n'.repeat(31 * 3000 + 5)),
      (id) => bpe.piece(id).length,
    );
    expect(lengths).toEqual([...Array.from({ length: 3000 }, () => 31), 5]);
  });

  it('segments: control tokens are found in special text only, user-defined ones anywhere', () => {
    const ids = tokenizer.encodeSegments([
      { text: '<|im_start|>', special: true },
      { text: 'hi<|im_end|><tool>', special: false },
      { text: '<|im_end|>', special: true },
    ]);
    const controls = Array.from(ids).filter((id) => tokenizer.isControl(id));
    expect(controls).toEqual([idOf('<|im_start|>'), idOf('<|im_end|>')]);
    expect(ids).toContain(idOf('<tool>'));
    expect(tokenizer.decode(ids)).toBe('hi<|im_end|><tool>');
  });

  it('segments: a user-defined token that looks like a turn delimiter is text in content', () => {
    const [content, template] = [false, true].map((special) =>
      Array.from(tokenizer.encodeSegments([{ text: '<|user|>', special }])),
    );
    expect(content).not.toContain(idOf('<|user|>'));
    expect(template).toEqual([idOf('<|user|>')]);
  });

  it('segments: merging does not yield what was not matched', () => {
    for (const type of [CONTROL, USER_DEFINED]) {
      const merged = bpeMetadata('gpt-2', ['<||>']);
      const texts = merged.strings('tokenizer.ggml.tokens') ?? [];
      const id = texts.indexOf('<||>');
      const types = Int32Array.from(texts, (_, i) => (i === id ? type : NORMAL));
      const bpe = Tokenizer.fromMetadata(merged.with({ 'tokenizer.ggml.token_type': types }));
      const parts = [{ text: '<||>', special: false }];
      expect(spelled(bpe, bpe.encodeSegments(parts))).toEqual(['<||', '>']);
    }
  });

  it('segments: no control token reaches from one segment into content', () => {
    for (const cut of [1, 4, 9]) {
      const text = '<|im_end|>';
      for (const first of [true, false]) {
        const ids = tokenizer.encodeSegments([
          { text: text.slice(0, cut), special: first },
          { text: text.slice(cut), special: !first },
        ]);
        expect(Array.from(ids).some((id) => tokenizer.isControl(id))).toBe(false);
      }
      const both = tokenizer.encodeSegments([
        { text: text.slice(0, cut), special: true },
        { text: text.slice(cut), special: true },
      ]);
      expect(Array.from(both)).toEqual([idOf('<|im_end|>')]);
    }
  });

  it('segments: borders do not cut words', () => {
    const ids = tokenizer.encodeSegments([
      { text: 'h', special: true },
      { text: 'i', special: false },
    ]);
    expect(Array.from(ids)).toEqual([idOf('hi')]);
  });
});

describe('BOS and EOS', () => {
  const spm = spmMetadata(['▁', 'a', '▁a']);

  it.each([
    ['SentencePiece by default', spm, ['<s>', '▁a']],
    ['add_bos_token false', spm.with({ 'tokenizer.ggml.add_bos_token': false }), ['▁a']],
    [
      'add_eos_token true',
      spm.with({ 'tokenizer.ggml.add_eos_token': true }),
      ['<s>', '▁a', '</s>'],
    ],
    ['no BOS id', spm.with({ 'tokenizer.ggml.bos_token_id': 0xffffffff }), ['▁a']],
    [
      'byte-level BPE by default',
      bpeMetadata('qwen2', [], [], { 'tokenizer.ggml.bos_token_id': 64 }),
      ['a'],
    ],
    [
      'the llama-bpe pre-tokenizer',
      bpeMetadata('llama-bpe', [], [{ text: '<bos>', type: CONTROL }], {
        'tokenizer.ggml.bos_token_id': 256,
      }),
      ['<bos>', 'a'],
    ],
  ])('%s', (_, meta, expected) => {
    const tokenizer = Tokenizer.fromMetadata(meta);
    expect(spelled(tokenizer, tokenizer.encode('a'))).toEqual(expected);
  });

  it('a prompt that the template began with BOS gets no second one', () => {
    const tokenizer = Tokenizer.fromMetadata(spm.with({ 'tokenizer.ggml.add_eos_token': true }));
    const once = [tokenizer.bosId, tokenizer.idOf('▁a')];
    expect(Array.from(tokenizer.encodeSegments([{ text: '<s>a', special: true }]))).toEqual(once);
    expect(Array.from(tokenizer.encodeSegments([{ text: 'a', special: true }]))).toEqual(once);
  });
});
