// What follows a pointer over the map: the frame once a screen's frame, text and bars at once for short texts, else at rest.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PointedRow } from '../../../web/pages/lab/look/pointed_row.js';

const seen: string[] = [];
const frames: (() => void)[] = [];
const nextFrame = () => frames.splice(0).forEach((draw) => void draw());
const pointed = () =>
  new PointedRow(
    (row) => seen.push(`frame ${row}`),
    (row) => seen.push(`show ${row}`),
  );

beforeEach(() => {
  seen.length = 0;
  vi.useFakeTimers();
  vi.stubGlobal('requestAnimationFrame', (draw: () => void) => frames.push(draw));
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('a short text follows in the same frame, the last place alone', () => {
  const row = pointed();
  for (const at of [3, 4, 5]) row.point(at, 17);
  expect(seen).toEqual([]);
  nextFrame();
  expect(seen).toEqual(['frame 5', 'show 5']);
});

test('a long text follows when the pointer rests, its frame at once', () => {
  const row = pointed();
  for (const at of [3, 4, 5]) {
    row.point(at, 512);
    nextFrame();
    vi.advanceTimersByTime(16);
  }
  expect(seen).toEqual(['frame 3', 'frame 4', 'frame 5']);
  vi.advanceTimersByTime(50);
  expect(seen.at(-1)).toBe('show 5');
  expect(seen).toHaveLength(4);
});

test('a row that is shown for another reason is not overtaken', () => {
  const row = pointed();
  row.point(3, 512);
  nextFrame();
  row.point(4, 512);
  row.end();
  nextFrame();
  vi.advanceTimersByTime(1000);
  expect(seen).toEqual(['frame 3']);
});
