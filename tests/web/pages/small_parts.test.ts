import { describe, expect, test } from 'vitest';
import { isRecallKey, isSubmitKey, type KeyStroke } from '../../../web/pages/chat/keys.js';
import { followUpsFor, suggestionsFor } from '../../../web/pages/chat/suggestions.js';
import { explain, isAborted } from '../../../web/pages/shared/errors.js';
import {
  formatBytes,
  formatCount,
  formatMilliseconds,
  formatRate,
  plural,
} from '../../../web/pages/shared/format.js';
import {
  choiceFromFiles,
  choiceFromUrl,
  defaultChoice,
  orderShards,
} from '../../../web/pages/shared/model_source.js';
import {
  AbortedError,
  BadModelError,
  type ErrorCode,
  errorFromCode,
} from '../../../web/runtime/src/errors.js';

function stroke(key: string, more: Partial<KeyStroke> = {}): KeyStroke {
  const none = { shiftKey: false, ctrlKey: false, metaKey: false, altKey: false };
  return { key, ...none, isComposing: false, keyCode: key === 'Enter' ? 13 : 0, ...more };
}

describe('keys', () => {
  const submits: [string, KeyStroke, boolean][] = [
    ['Enter sends', stroke('Enter'), true],
    ['Ctrl+Enter sends', stroke('Enter', { ctrlKey: true }), true],
    ['Shift+Enter does not', stroke('Enter', { shiftKey: true }), false],
    ['Alt+Enter does not', stroke('Enter', { altKey: true }), false],
    ['Enter that accepts a candidate does not', stroke('Enter', { isComposing: true }), false],
    [
      'Enter that Safari reports after a composition does not',
      stroke('Enter', { keyCode: 229 }),
      false,
    ],
    ['other keys do not', stroke('a'), false],
  ];
  for (const [name, key, expected] of submits)
    test(name, () => expect(isSubmitKey(key)).toBe(expected));
  test('Arrow Up recalls from an empty field only', () => {
    expect(isRecallKey(stroke('ArrowUp'), '')).toBe(true);
    expect(isRecallKey(stroke('ArrowUp'), 'a')).toBe(false);
    expect(isRecallKey(stroke('ArrowUp', { shiftKey: true }), '')).toBe(false);
  });
});

describe('model sources', () => {
  const names = (...list: string[]) => list.map((name) => ({ name }));
  test('shards are put into their order', () => {
    const ordered = orderShards(
      names('m-00002-of-00003.gguf', 'm-00003-of-00003.gguf', 'm-00001-of-00003.gguf'),
    );
    expect(ordered.ok && ordered.value.map(({ name }) => name[6])).toEqual(['1', '2', '3']);
  });
  const refused: [string, { name: string }[], RegExp][] = [
    ['no file', [], /No file/],
    ['two models', names('a.gguf', 'b.gguf'), /one model at a time/],
    ['a missing part', names('m-00001-of-00003.gguf', 'm-00003-of-00003.gguf'), /Missing: 2/],
    [
      'a stranger among parts',
      names('m-00001-of-00002.gguf', 'n-00002-of-00002.gguf'),
      /n-00002.*no part/,
    ],
    ['a part beyond the last', names('m-00001-of-00001.gguf', 'm-00002-of-00001.gguf'), /no part/],
  ];
  for (const [name, files, message] of refused) {
    test(`${name} is refused with a reason`, () => {
      expect(orderShards(files)).toMatchObject({
        ok: false,
        message: expect.stringMatching(message),
      });
    });
  }
  test('an address becomes a choice named after its file', () => {
    const choice = choiceFromUrl(
      ' https://e.com/a/My%20model.gguf?download=1 ',
      'http://localhost/',
    );
    expect(choice).toMatchObject({ ok: true, value: { kind: 'url', name: 'My model' } });
  });
  test('a split model is named without its part number', () => {
    const files = [new File([], 'm-00002-of-00002.gguf'), new File([], 'm-00001-of-00002.gguf')];
    expect(choiceFromFiles(files)).toMatchObject({ ok: true, value: { kind: 'file', name: 'm' } });
  });
  for (const address of ['', 'ftp://e.com/x.gguf', 'javascript:alert(1)', 'http://', 'data:,x']) {
    test(`${JSON.stringify(address)} is refused`, () => {
      expect(choiceFromUrl(address, 'http://localhost/')).toMatchObject({ ok: false });
    });
  }
  test("the default model lies on the page's own origin", () => {
    expect(String(defaultChoice('https://site.example/sub/').source)).toBe(
      'https://site.example/sub/models/default-q8_0.gguf',
    );
  });
});

describe('explain', () => {
  const codes: ErrorCode[] = [
    ...(['OutOfMemory', 'BadModel', 'Unsupported', 'ContextFull', 'Quota', 'Network'] as const),
    ...(['Integrity', 'Aborted', 'WorkerLost', 'BadOption', 'Internal'] as const),
  ];
  for (const code of codes) {
    test(`${code}: says what happened, what to do, and offers it`, () => {
      for (const during of ['load', 'chat'] as const) {
        const error = errorFromCode(code, 'The value was 3', { offset: 17 });
        const explanation = explain(error, { during, modelName: 'm', hasFormerModel: false });
        expect(explanation.title).not.toBe('');
        expect(explanation.advice).not.toBe('');
        expect(explanation.message).toBe('The value was 3');
        expect(explanation.remedies.length).toBeGreaterThan(0);
        expect(explanation.details).toContain(`code: ${code}\noffset: 17`);
      }
    });
  }
  test('memory is only offered to be freed when a model holds some', () => {
    const error = errorFromCode('OutOfMemory', 'x');
    const remedies = (hasFormerModel: boolean) =>
      explain(error, { during: 'load', modelName: 'm', hasFormerModel }).remedies;
    expect(remedies(true)).toContain('free-memory');
    expect(remedies(false)).not.toContain('free-memory');
  });
  test('the default model is offered where none runs, but not after it failed itself', () => {
    const remedies = (source: 'default' | 'file') =>
      explain(new BadModelError('x'), {
        during: 'load',
        modelName: 'm',
        hasFormerModel: false,
        source,
      }).remedies;
    expect(remedies('file')).toContain('default-model');
    expect(remedies('default')).not.toContain('default-model');
  });
  test('anything that was thrown is explained', () => {
    for (const thrown of [new TypeError('t'), 'text', undefined, { code: 'toString' }]) {
      expect(
        explain(thrown, { during: 'chat', modelName: '', hasFormerModel: true }).details,
      ).toContain('Internal');
    }
  });
  test('an abort is recognised', () => {
    expect(isAborted(new AbortedError())).toBe(true);
    expect(isAborted(new BadModelError('x'))).toBe(false);
  });
});

describe('suggestions', () => {
  const first = suggestionsFor('default')[0];
  if (!first) throw new Error('no suggestion');
  test("an example's questions follow it, each once", () => {
    expect(followUpsFor('default', [first.prompt])).toEqual(first.followUps);
    const [asked, ...rest] = first.followUps;
    expect(followUpsFor('default', [first.prompt, asked ?? ''])).toEqual(rest);
  });
  test('no questions after the user went another way, or without an example', () => {
    expect(followUpsFor('default', [first.prompt, 'Something else'])).toEqual([]);
    expect(followUpsFor('default', ['Hello'])).toEqual([]);
    expect(followUpsFor('default', [])).toEqual([]);
  });
});

describe('format', () => {
  test('bytes are 1e6-based', () => {
    const table: [number, string][] = [
      [0, '0 B'],
      [999, '999 B'],
      [1000, '1.0 kB'],
      [3_042_400, '3.0 MB'],
      [999_999, '1.0 MB'],
      [123_456_789, '123 MB'],
      [4_294_967_296, '4.3 GB'],
    ];
    for (const [bytes, text] of table) expect(formatBytes(bytes)).toBe(text);
  });
  test('counts, rates, times', () => {
    expect(formatCount(2_810_304)).toBe('2.8 M');
    expect(formatCount(999)).toBe('999');
    expect(formatRate(3.14)).toBe('3.1');
    expect(formatRate(1234.5)).toBe('1,235');
    expect(formatRate(Number.POSITIVE_INFINITY)).toBe('–');
    expect(formatMilliseconds(0.25)).toBe('0.3 ms');
    expect(formatMilliseconds(1234)).toBe('1.2 s');
    expect(plural(1, 'token')).toBe('1 token');
    expect(plural(1200, 'token')).toBe('1,200 tokens');
  });
});
