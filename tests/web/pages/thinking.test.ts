import { describe, expect, test } from 'vitest';
import { type Segment, splitThinking, spokenText } from '../../../web/pages/chat/text/thinking.js';

const think = (text: string, open = false): Segment => ({ kind: 'think', text, open });
const answer = (text: string): Segment => ({ kind: 'answer', text, open: false });

describe('splitThinking', () => {
  const finished: [string, string, Segment[]][] = [
    ['plain text is an answer', 'Hello.', [answer('Hello.')]],
    ['nothing is nothing', '', []],
    ['a block and an answer', '<think>a\nb</think>\n\nHi', [think('a\nb'), answer('\n\nHi')]],
    ['the longer tag', '<thinking>\na\n</thinking>Hi', [think('a'), answer('Hi')]],
    ['an empty block is left out', '<think>\n\n</think>\n\nHi', [answer('\n\nHi')]],
    ['a block that never ends', '<think>\nhm', [think('hm', true)]],
    [
      'two blocks',
      '<think>a</think>b\n<think>c</think>d',
      [think('a'), answer('b\n'), think('c'), answer('d')],
    ],
    [
      'only the end tag: the template opened the block',
      'hm\n</think>\nHi',
      [think('hm'), answer('\nHi')],
    ],
    ['a tag within a line is text', 'Use <think> for it.', [answer('Use <think> for it.')]],
    ['a tag in a code fence is text', '```\n<think>\n```\n', [answer('```\n<think>\n```\n')]],
    ['an end tag in code is text', 'write `</think>` here', [answer('write `</think>` here')]],
    ['the other end tag does not close', '<think>a</thinking>b', [think('a</thinking>b', true)]],
  ];
  for (const [name, text, segments] of finished) {
    test(name, () => expect(splitThinking(text, true)).toEqual(segments));
  }

  test('while it streams, a tag that may still be completed is held back', () => {
    expect(splitThinking('<thi', false)).toEqual([]);
    expect(splitThinking('<think>a</thi', false)).toEqual([think('a', true)]);
    expect(splitThinking('1 <', false)).toEqual([answer('1 ')]);
    expect(splitThinking('1 < 2', false)).toEqual([answer('1 < 2')]);
    expect(splitThinking('1 <', true)).toEqual([answer('1 <')]);
  });

  test('every prefix of a block is folded: no character of it shows as an answer', () => {
    const text = '<think>\nsecret\n</think>\nHi';
    for (let end = 1; end <= text.length; end += 1) {
      expect(spokenText(text.slice(0, end), false)).not.toMatch(/secret|<|think/);
    }
  });

  test('the spoken text only grows while more arrives', () => {
    const text = '<think>\na\n</think>\nHi <b>.\n<think>x</think>\nBye <thinking> ok';
    let before = '';
    for (let end = 0; end <= text.length; end += 1) {
      const now = spokenText(text.slice(0, end), false);
      expect(now.startsWith(before), JSON.stringify([before, now])).toBe(true);
      before = now;
    }
  });
});
