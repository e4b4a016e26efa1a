import { describe, expect, test } from 'vitest';
import {
  defaultSettings,
  effectiveSampling,
  loadFields,
  loadOptions,
  type NumberKey,
  parseNumber,
  readSettings,
  samplingDefaults,
  samplingFields,
} from '../../../web/pages/chat/settings/schema.js';

function field(key: NumberKey) {
  const found = [...samplingFields, ...loadFields].find((entry) => entry.key === key);
  if (!found) throw new Error(key);
  return found;
}

describe('parseNumber', () => {
  const accepted: [NumberKey, string, number | undefined][] = [
    ['temperature', '0', 0],
    ['temperature', ' 0,7 ', 0.7],
    ['temperature', '', undefined],
    ['topK', '40', 40],
    ['topP', '1', 1],
    ['topP', '.5', 0.5],
    ['minP', '0', 0],
    ['minP', '5e-2', 0.05],
    ['maxTokens', '1', 1],
    ['seed', '9007199254740991', 9007199254740991],
    ['nCtx', '512', 512],
  ];
  for (const [key, text, value] of accepted) {
    test(`${key} takes "${text}"`, () =>
      expect(parseNumber(field(key), text)).toEqual({ ok: true, value }));
  }
  const refused: [NumberKey, string][] = [
    ['temperature', '-0.1'],
    ['temperature', '2.1'],
    ['temperature', 'warm'],
    ['temperature', '1 2'],
    ['temperature', 'Infinity'],
    ['temperature', '0x10'],
    ['topK', '1.5'],
    ['topP', '0'],
    ['topP', '1.01'],
    ['minP', '1'],
    ['maxTokens', '0'],
    ['seed', '-1'],
    ['seed', '9007199254740992'],
    ['threads', '0'],
  ];
  for (const [key, text] of refused) {
    test(`${key} refuses "${text}" and names its bounds`, () => {
      const parsed = parseNumber(field(key), text);
      expect(parsed).toMatchObject({ ok: false });
      expect(parsed).toHaveProperty('message', expect.stringContaining(field(key).label));
    });
  }
});

describe('readSettings', () => {
  test('what was written is read again', () => {
    const settings = {
      systemPrompt: 'You are Pip.',
      sampling: { temperature: 0.5, seed: 7 },
      load: { nCtx: 256, module: 'simd', kvCache: 'int8' },
      keepChat: false,
    };
    expect(readSettings(JSON.parse(JSON.stringify(settings)))).toEqual(settings);
  });
  for (const wrong of [undefined, null, 3, 'x', [], {}]) {
    test(`${JSON.stringify(wrong)} gives the defaults`, () => {
      expect(readSettings(wrong)).toEqual(defaultSettings());
    });
  }
  test('a wrong value is as if it had never been set, the others are kept', () => {
    const settings = readSettings({
      systemPrompt: 5,
      sampling: { temperature: 99, topK: 10, topP: '0.5', other: 1 },
      load: { module: 'gpu', kvCache: 'int4', threads: 1.5 },
      keepChat: 'no',
    });
    expect(settings).toEqual({ ...defaultSettings(), sampling: { topK: 10 } });
  });
});

test("effectiveSampling: the user's values over the model's defaults", () => {
  const settings = { ...defaultSettings(), sampling: { topK: 3, maxTokens: 9 } };
  expect(effectiveSampling(settings, true)).toEqual({
    ...samplingDefaults(true),
    topK: 3,
    maxTokens: 9,
  });
  expect(effectiveSampling(settings, false)).toEqual({
    ...samplingDefaults(false),
    topK: 3,
    maxTokens: 9,
  });
});

test('every default lies within the bounds of its field', () => {
  for (const isDefaultModel of [true, false]) {
    for (const [key, value] of Object.entries(samplingDefaults(isDefaultModel))) {
      expect(parseNumber(field(key as NumberKey), String(value))).toEqual({ ok: true, value });
    }
  }
});

test('loadOptions leaves out what is automatic', () => {
  expect(loadOptions(defaultSettings())).toEqual({
    module: 'auto',
    kvCache: { k: 'f32', v: 'f32' },
  });
});
