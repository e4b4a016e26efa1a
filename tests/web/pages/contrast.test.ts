import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

// The colours of both themes, read from the style sheet, against WCAG 2.2: 4.5:1 for text, 3:1 for the borders of
// controls and for focus rings (1.4.3 and 1.4.11).
const css = readFileSync(new URL('../../../web/pages/shared/tokens.css', import.meta.url), 'utf8');

function tokens(selector: string): Map<string, string> {
  const start = css.indexOf(`${selector} {`);
  const body = css.slice(start, css.indexOf('}', start));
  return new Map(
    [...body.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [
      name ?? '',
      value ?? '',
    ]),
  );
}

/** Relative luminance, WCAG 2.2. */
function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const channel = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (r ?? 0) + 0.7152 * (g ?? 0) + 0.0722 * (b ?? 0);
}

function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return ((high ?? 0) + 0.05) / ((low ?? 0) + 0.05);
}

const pairs: [string, string, number][] = [
  ...['bg', 'surface', 'sunken', 'accent-soft'].map((ground): [string, string, number] => [
    'text',
    ground,
    4.5,
  ]),
  ...['bg', 'surface', 'sunken'].map((ground): [string, string, number] => ['muted', ground, 4.5]),
  ...['bg', 'surface', 'sunken'].map((ground): [string, string, number] => ['accent', ground, 4.5]),
  ['text', 'danger-soft', 4.5],
  ['on-accent', 'accent', 4.5],
  ['danger', 'danger-soft', 4.5],
  ['danger', 'bg', 4.5],
  ['danger', 'surface', 4.5],
  ['warn', 'warn-soft', 4.5],
  ['bg', 'text', 4.5],
  ['control-line', 'bg', 3],
  ['control-line', 'surface', 3],
];

for (const [theme, selector] of [
  ['light', ':root'],
  ['dark', ':root[data-theme="dark"]'],
] as const) {
  describe(`${theme} theme`, () => {
    const colours = tokens(selector);
    for (const [front, ground, least] of pairs) {
      test(`${front} on ${ground} has at least ${least}:1`, () => {
        expect(
          contrast(colours.get(front) ?? '', colours.get(ground) ?? ''),
        ).toBeGreaterThanOrEqual(least);
      });
    }
  });
}
