import { describe, expect, test } from 'vitest';
import { followsAfter, isAtEnd, type ScrollState } from '../../../web/pages/chat/scroll.js';

const state = (scrollTop: number, scrollHeight = 1000, clientHeight = 400): ScrollState => ({
  scrollTop,
  scrollHeight,
  clientHeight,
});

test('isAtEnd: within a line of the end, and always on a short page', () => {
  expect(isAtEnd(state(600))).toBe(true);
  expect(isAtEnd(state(570))).toBe(true);
  expect(isAtEnd(state(560))).toBe(false);
  expect(isAtEnd(state(0, 300))).toBe(true);
});

describe('followsAfter', () => {
  const table: [string, boolean, ScrollState, ScrollState, boolean][] = [
    ['the reader scrolls up: lets go', true, state(600), state(500), false],
    ['a little up, still at the end: keeps following', true, state(600), state(590), true],
    [
      'the content grew under a follower: keeps following',
      true,
      state(600),
      state(600, 1400),
      true,
    ],
    [
      'the content shrank and pulled the position up: keeps following',
      true,
      state(600),
      state(300, 800),
      true,
    ],
    [
      'the keyboard closed and pulled the position up: keeps following',
      true,
      state(600),
      state(300, 1000, 500),
      true,
    ],
    ['reading above while it grows: stays there', false, state(200), state(200, 1400), false],
    ['scrolling down, not to the end: stays there', false, state(200), state(300), false],
    ['back to the end: follows again', false, state(200), state(600), true],
  ];
  for (const [name, following, before, now, expected] of table) {
    test(name, () => expect(followsAfter(following, before, now)).toBe(expected));
  }
});
