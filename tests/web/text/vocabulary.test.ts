import { describe, expect, it } from 'vitest';
import { BadModelError, UnsupportedError } from '../../../web/runtime/src/errors.js';
import { Tokenizer } from '../../../web/runtime/src/text/tokenizer.js';
import type { MapMetadata, MetadataValue } from './gguf_header.js';
import {
  bpeMetadata,
  CONTROL,
  NORMAL,
  type Special,
  spmMetadata,
  USER_DEFINED,
} from './vocabularies.js';

const spm = spmMetadata(['▁', 'a']);
const bpe = bpeMetadata('qwen2', ['ab']);
const nSpm = spm.strings('tokenizer.ggml.tokens')?.length ?? 0;
const bpeTexts = bpe.strings('tokenizer.ggml.tokens') ?? [];

function thrownBy(meta: MapMetadata): unknown {
  try {
    Tokenizer.fromMetadata(meta);
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('damaged vocabularies are errors that name the key and the index', () => {
  const cases: readonly (readonly [string, MapMetadata, Record<string, string | number>])[] = [
    [
      'no tokens key',
      spm.with({ 'tokenizer.ggml.tokens': undefined }),
      { key: 'tokenizer.ggml.tokens' },
    ],
    [
      '0 tokens',
      spm.with({ 'tokenizer.ggml.tokens': [] }),
      { key: 'tokenizer.ggml.tokens', count: 0 },
    ],
    [
      'a token twice',
      bpe.with({ 'tokenizer.ggml.tokens': bpeTexts.map((t) => (t === 'b' ? 'a' : t)) }),
      { key: 'tokenizer.ggml.tokens', index: 98, first: 97 },
    ],
    [
      'scores missing',
      spm.with({ 'tokenizer.ggml.scores': undefined }),
      { key: 'tokenizer.ggml.scores' },
    ],
    [
      'scores too short',
      spm.with({ 'tokenizer.ggml.scores': new Float32Array(3) }),
      { key: 'tokenizer.ggml.scores', length: 3, expected: nSpm },
    ],
    [
      'a score that is no number',
      spm.with({ 'tokenizer.ggml.scores': new Float32Array(nSpm).fill(NaN, 5) }),
      { key: 'tokenizer.ggml.scores', index: 5 },
    ],
    [
      'token types too short',
      spm.with({ 'tokenizer.ggml.token_type': new Int32Array(3) }),
      { key: 'tokenizer.ggml.token_type', length: 3, expected: nSpm },
    ],
    [
      'an unknown token type',
      spm.with({ 'tokenizer.ggml.token_type': new Int32Array(nSpm).fill(9, 4, 5) }),
      { key: 'tokenizer.ggml.token_type', index: 4, value: 9 },
    ],
    [
      'a byte token without a byte',
      spmMetadata(['▁'], [{ text: 'byte', type: 6 }]),
      { key: 'tokenizer.ggml.tokens', index: 3 },
    ],
    [
      'merges missing',
      bpe.with({ 'tokenizer.ggml.merges': undefined }),
      { key: 'tokenizer.ggml.merges' },
    ],
    [
      'a merge of a missing token',
      bpe.with({ 'tokenizer.ggml.merges': ['a b', 'a zz'] }),
      { key: 'tokenizer.ggml.merges', index: 1, missing: 'zz' },
    ],
    [
      'a merge into a missing token',
      bpe.with({ 'tokenizer.ggml.merges': ['b a'] }),
      { key: 'tokenizer.ggml.merges', index: 0, missing: 'ba' },
    ],
    [
      'a merge without a space',
      bpe.with({ 'tokenizer.ggml.merges': ['ab'] }),
      { key: 'tokenizer.ggml.merges', index: 0 },
    ],
    [
      'an EOS id outside the vocabulary',
      spm.with({ 'tokenizer.ggml.eos_token_id': nSpm }),
      { key: 'tokenizer.ggml.eos_token_id', value: nSpm, count: nSpm },
    ],
    [
      'an id that is no integer',
      spm.with({ 'tokenizer.ggml.eos_token_id': 'two' }),
      { key: 'tokenizer.ggml.eos_token_id' },
    ],
    [
      'a flag that is no bool',
      spm.with({ 'tokenizer.ggml.add_bos_token': 1 }),
      { key: 'tokenizer.ggml.add_bos_token' },
    ],
  ];
  it.each(cases)('%s', (_, meta, details) => {
    const error = thrownBy(meta);
    expect(error).toBeInstanceOf(BadModelError);
    expect((error as BadModelError).details).toMatchObject(details);
    expect((error as BadModelError).message).toContain(String(details.key));
  });
});

describe('tokenizers that are not implemented are errors that name the value and what is', () => {
  it.each([
    ['bert', /'bert'.*'llama'.*'gpt2'/],
    ['none', /no tokenizer.*token ids/],
    [undefined, /no tokenizer.*token ids/],
  ])('model %s', (model, message) => {
    const error = thrownBy(spm.with({ 'tokenizer.ggml.model': model }));
    expect(error).toBeInstanceOf(UnsupportedError);
    expect((error as Error).message).toMatch(message);
  });

  it('pre-tokenizer', () => {
    const error = thrownBy(bpe.with({ 'tokenizer.ggml.pre': 'tomorrow' }));
    expect(error).toBeInstanceOf(UnsupportedError);
    expect((error as UnsupportedError).details).toEqual({
      key: 'tokenizer.ggml.pre',
      value: 'tomorrow',
    });
  });
});

describe('tolerated, as real files have it', () => {
  it('empty tokens match nothing', () => {
    const texts = bpeTexts.map((t) => (t === 'y' || t === 'z' ? '' : t));
    const tokenizer = Tokenizer.fromMetadata(bpe.with({ 'tokenizer.ggml.tokens': texts }));
    expect(tokenizer.decode(tokenizer.encode('ab'))).toBe('ab');
  });

  it('without token types they are told from texts and ids', () => {
    const tokenizer = Tokenizer.fromMetadata(spm.with({ 'tokenizer.ggml.token_type': undefined }));
    expect([0, 1, 2, 3].map((id) => tokenizer.isControl(id))).toEqual([true, true, true, false]);
    expect(tokenizer.decode(tokenizer.encode('é'))).toBe('é');
  });

  it('without ids SentencePiece has its own; a BPE file has none', () => {
    const missing = {
      'tokenizer.ggml.bos_token_id': undefined,
      'tokenizer.ggml.eos_token_id': undefined,
    };
    const tokenizer = Tokenizer.fromMetadata(spm.with(missing));
    expect([tokenizer.bosId, tokenizer.eosId]).toEqual([1, 2]);
    expect(Tokenizer.fromMetadata(bpe).bosId).toBeUndefined();
    expect(Tokenizer.fromMetadata(bpe).endOfGenerationIds.size).toBe(0);
  });

  it('an id of 4294967295 means none, as a number and as a bigint', () => {
    for (const none of [0xffffffff, 0xffffffffn, -1] as MetadataValue[]) {
      const meta = spm.with({ 'tokenizer.ggml.bos_token_id': none });
      expect(Tokenizer.fromMetadata(meta).bosId).toBeUndefined();
    }
  });
});

describe('end of generation', () => {
  const ends = (
    specials: readonly Special[],
    extra: Record<string, MetadataValue> = {},
  ): string[] => {
    const tokenizer = Tokenizer.fromMetadata(bpeMetadata('qwen2', [], specials, extra));
    return Array.from(tokenizer.endOfGenerationIds, (id) => tokenizer.tokenText(id)).sort();
  };
  const control = (...texts: string[]): Special[] => texts.map((text) => ({ text, type: CONTROL }));

  it.each([
    '<|im_end|>',
    '<|eot_id|>',
    '<|eom_id|>',
    '<|end|>',
    '<end_of_turn>',
    '<|endoftext|>',
    '</s>',
    '<|end_of_text|>',
    '<EOT>',
    '<｜end▁of▁sentence｜>',
    '<end_of_utterance>',
    '<|return|>',
    '[EOS]',
  ])('%s ends it whatever the ids in the file say', (text) => {
    expect(ends(control(text, '<|other|>'))).toEqual([text]);
  });

  it('EOS, EOT and EOM by id', () => {
    const ids = {
      'tokenizer.ggml.eos_token_id': 256,
      'tokenizer.ggml.eot_token_id': 257,
      'tokenizer.ggml.eom_token_id': 258,
    };
    expect(ends(control('<x>', '<y>', '<z>', '<w>'), ids)).toEqual(['<x>', '<y>', '<z>']);
  });

  it.each([NORMAL, USER_DEFINED])('a mistyped one (type %d) becomes a control token', (type) => {
    const meta = bpeMetadata('qwen2', [], [{ text: '<|im_end|>', type }]);
    const tokenizer = Tokenizer.fromMetadata(meta);
    const id = tokenizer.idOf('<|im_end|>') as number;
    expect(tokenizer.isControl(id)).toBe(true);
    expect(tokenizer.encode('<|im_end|>')).not.toContain(id);
    expect(tokenizer.decode([id])).toBe('');
  });

  it('gpt-oss: <|end|> closes a message, not the answer, and channels are shown', () => {
    const texts = ['<|return|>', '<|call|>', '<|end|>', '<|channel|>'];
    expect(ends(control(...texts))).toEqual(['<|call|>', '<|return|>']);
    const tokenizer = Tokenizer.fromMetadata(bpeMetadata('qwen2', [], control(...texts)));
    expect(tokenizer.decode([tokenizer.idOf('<|channel|>') as number])).toBe('<|channel|>');
  });

  it('the EOT token is the one the file names, else the first well-known text', () => {
    const both = control('<|endoftext|>', '<|im_end|>');
    const eot = (extra: Record<string, MetadataValue>): number | undefined =>
      Tokenizer.fromMetadata(bpeMetadata('qwen2', [], both, extra)).eotId;
    expect(eot({})).toBe(257);
    expect(eot({ 'tokenizer.ggml.eot_token_id': 256 })).toBe(256);
  });
});
