import { SequencePreTokenizer } from '@huggingface/tokenizers';
import { describe, expect, it } from 'vitest';
import { wordSplits } from '../../../web/runtime/src/text/bpe.js';
import {
  PRE_TOKENIZER_NAMES,
  preTokenizerFor,
} from '../../../web/runtime/src/text/pre_tokenizers.js';

function wordsOf(name: string, text: string): string[] {
  const config = { type: 'Sequence', pretokenizers: wordSplits(preTokenizerFor(name)) };
  const splitter = new SequencePreTokenizer(
    config as ConstructorParameters<typeof SequencePreTokenizer>[0],
  );
  return splitter.pre_tokenize(text);
}

// What each model's expression does with words, digits, punctuation, line ends and spaces.
const CASES: readonly (readonly [name: string, text: string, words: readonly string[]])[] = [
  ['gpt-2', "I'm he'LL 12345", ['I', "'m", ' he', "'", 'LL', ' 12345']],
  ['gpt-2', 'a  b\n\n c  ', ['a', ' ', ' b', '\n\n', ' c', '  ']],
  ['gpt-2', ' !? (x)', [' !?', ' (', 'x', ')']],
  ['smollm', 'x123', ['x', '1', '2', '3']],
  ['smollm', ' 42', [' ', '4', '2']],
  ['llama-bpe', "I'M 1234567", ['I', "'M", ' ', '123', '456', '7']],
  ['llama-bpe', 'a!\n\nb', ['a', '!\n\n', 'b']],
  ['llama-bpe', '(word) _x', ['(word', ')', ' _', 'x']],
  ['llama-bpe', 'a \n b', ['a', ' \n', ' b']],
  ['qwen2', 'n 123', ['n', ' ', '1', '2', '3']],
  ['qwen2', 'e\u0301', ['e', '\u0301']],
  ['qwen35', 'e\u0301', ['e\u0301']],
  ['glm4', '1234', ['123', '4']],
  ['tekken', 'helloWorld HTTPServer 12', ['hello', 'World', ' HTTPServer', ' ', '1', '2']],
  ['tekken', 'a//\n', ['a', '//\n']],
  ['gpt-4o', "Don'tStop 1234", ["Don't", 'Stop', ' ', '123', '4']],
  ['falcon', 'a=1234', ['a', '=', '123', '4']],
  ['default', 'a=1234', ['a', '=', '123', '4']],
  ['deepseek-llm', 'ab 12\n字 z  ', ['ab', ' ', '12', '\n', '字', ' z', '  ']],
  ['deepseek-llm', ' «x»', [' «', 'x', '»']],
  ['deepseek-coder', 'ab 12字', ['ab', ' ', '1', '2', '字']],
  ['deepseek-v3', '1234 かな!ok', ['123', '4', ' ', 'かな', '!ok']],
  ['bailingmoe', "x'S\n\n", ['x', "'S", '\n\n']],
  ['seed-coder', '!\n', ['!', '\n']],
  ['bloom', 'a, b', ['a', ',', ' b']],
  ['viking', 'a1 2', ['a', '1', ' ', '2']],
];

describe('pre-tokenizers', () => {
  it.each(CASES)('%s splits %j', (name, text, words) => {
    expect(wordsOf(name, text)).toEqual(words);
  });

  it.each(PRE_TOKENIZER_NAMES)('%s loses no character', (name) => {
    const text = "Hello,  world!\r\n\t It's 3.14 … \u00a0\u0085é你好 😀\u200d\n \n  x \u3000";
    expect(wordsOf(name, text).join('')).toBe(text);
  });

  // Quadratic time would take minutes here.
  it.each(PRE_TOKENIZER_NAMES)('%s is linear in runs of one kind', { timeout: 30_000 }, (name) => {
    for (const unit of [' ', '7', 'A', 'a', "'", '你', '!', '\t ']) {
      const text = `${unit.repeat(100_000)}5你`;
      expect(wordsOf(name, text).join('')).toBe(text);
    }
  });

  it('an unknown name is an error that names it and the known ones', () => {
    expect(() => preTokenizerFor('brand-new')).toThrow(/'brand-new'.*llama-bpe.*complete\(\)/);
  });

  it('a missing name means default', () => {
    expect(preTokenizerFor(undefined)).toEqual(preTokenizerFor('default'));
  });
});
