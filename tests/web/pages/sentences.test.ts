import { describe, expect, test } from 'vitest';
import { plainWords, SentenceSplitter } from '../../../web/pages/chat/text/sentences.js';

function spoken(text: string, step = text.length): string[] {
  const splitter = new SentenceSplitter();
  const sentences: string[] = [];
  for (let end = step; end < text.length + step; end += step) {
    sentences.push(...splitter.update(text.slice(0, end)));
  }
  return [...sentences, ...splitter.finish()];
}

const table: [string, string, string[]][] = [
  ['sentences', 'One. Two! Three? Four', ['One.', 'Two!', 'Three?', 'Four']],
  ['a closing quote belongs to its sentence', '"Go." he said. End.', ['"Go."', 'he said.', 'End.']],
  ['numbers with points are whole', 'It is 3.14 long. Yes.', ['It is 3.14 long.', 'Yes.']],
  [
    'an item number ends no sentence',
    '1. First thing\n2. Second. More',
    ['1. First thing', '2. Second.', 'More'],
  ],
  ['paragraphs', 'A\n\nB', ['A', 'B']],
  [
    'headings and items lose their marks',
    '## Title\n- *one*\n- [ ] `two`',
    ['Title', 'one', 'two'],
  ],
  ['links are read by their text', 'See [the page](https://e.com/a_b).', ['See the page.']],
  ['table rows without bars, no rule', '|a|b|\n|-|-|\n|1|2|', ['a b', '1 2']],
  [
    'code is only named',
    'Do:\n```js\nlet a. b\nx\n```\nDone.',
    ['Do:', 'Code block, js.', 'End of code, 2 lines.', 'Done.'],
  ],
  ['code that never ends', '```\nx', ['Code block.', 'End of code, 1 line.']],
  ['Chinese needs no space', '你好。再见！', ['你好。', '再见！']],
  ['snake_case keeps its lines', 'Call my_own_name now.', ['Call my_own_name now.']],
  ['lines of marks alone say nothing', '---\n***\n', []],
];

describe('SentenceSplitter', () => {
  for (const [name, text, sentences] of table) {
    test(name, () => {
      expect(spoken(text)).toEqual(sentences);
      expect(spoken(text, 1)).toEqual(sentences);
    });
  }

  test('a sentence is given once, when it is finished, and not before', () => {
    const splitter = new SentenceSplitter();
    expect(splitter.update('Hel')).toEqual([]);
    expect(splitter.update('Hello.')).toEqual([]);
    expect(splitter.update('Hello. Wo')).toEqual(['Hello.']);
    expect(splitter.update('Hello. World')).toEqual([]);
    expect(splitter.finish()).toEqual(['World']);
    expect(splitter.finish()).toEqual([]);
  });
});

test('plainWords takes the marks and leaves the words', () => {
  expect(plainWords('> **Bold** _it_ and `code`')).toBe('Bold it and code');
});
