import { describe, expect, test } from 'vitest';
import {
  MarkdownStream,
  renderMarkdown,
  safeHref,
} from '../../../web/pages/chat/markdown/blocks.js';
import { payloads } from '../../browser/fixtures/xss_payloads.js';

/** What a view holds after it has seen every prefix of `text` (cut at each `step` characters). */
function streamed(text: string, step: number): { html: string; parsedFrom: number[] } {
  const stream = new MarkdownStream();
  let blocks: string[] = [];
  const parsedFrom: number[] = [];
  for (let end = step; ; end += step) {
    const { from, html } = stream.update(text.slice(0, end));
    blocks = [...blocks.slice(0, from), ...html];
    parsedFrom.push(from);
    if (end >= text.length) return { html: blocks.join(''), parsedFrom };
  }
}

const documents: Record<string, string> = {
  paragraphs: 'One.\n\nTwo **bold** and *it*.\nSame paragraph.\n\n\nThree.',
  headings: '# A\n\ntext\n===\n\nmore\n---\n\n## B\ntext\n\n###### C',
  'tight and loose lists': '- a\n- b\n  - c\n\n- d\n\ntext\n\n1. x\n\n2. y\n\n   more of y\n3. z\n',
  'a list after a paragraph': 'items:\n- a\n- b\n\n- c\n\n10. ten\n11. eleven\n\nend',
  'fenced code':
    'see\n\n```js\nconst a = 1;\n\nif (a < 2) b();\n```\n\nafter\n\n~~~\nplain\n```\n~~~\n',
  'unfinished fence': 'see\n\n```python\ndef f():\n    return "<b>"\n',
  'indented code': 'para\n\n    code\n    more\n\npara',
  tables: 'a|b\n-|-\n1|2\n3|`x|y`\n\ntext\n\n| h | i |\n|:--|--:|\n| 1 | 2<br>3 |\n',
  quotes: '> a\n> b\nlazy\n\n> > deep\n\nend\n\n> again',
  rules: 'a\n\n---\n\n***\n\nb\n- - -\n',
  'raw html':
    '<div onclick="x()">\nhello\n</div>\n\ntext <b>bold</b> <br> <!-- c -->\n\n<script>\nalert(1)\n</script>\n\nend',
  tasks: '- [ ] open\n- [x] done\n',
  'link definitions before use':
    '[a]: https://example.com/a "t"\n\nsee [a] and [b][a]\n\nmore [a]\n\nx\n\ny [a]',
  'windows line ends': 'a\r\n\r\n- b\r\n- c\r\n\r\n```\r\nx\r\n```\r\n\r\nd',
  'marks that stay open': 'a **b\n\n`c\n\n[d](http://e\n\n~~f',
};

describe('MarkdownStream', () => {
  for (const [name, text] of Object.entries(documents)) {
    test(`${name}: streamed in steps of 1, 3 and 7 characters equals the whole at once`, () => {
      const whole = renderMarkdown(text);
      for (const step of [1, 3, 7]) expect(streamed(text, step).html).toBe(whole);
    });
  }

  test('a random mix of blocks streams to the whole at once', () => {
    const pieces = Object.values(documents).flatMap((text) => text.split(/(?<=\n)/));
    let state = 12345;
    const random = (below: number) => {
      state = (state * 1103515245 + 12345) % 2147483648;
      return Math.floor((state / 2147483648) * below);
    };
    for (let round = 0; round < 60; round += 1) {
      // Definitions may follow their use there, which only the final rendering resolves.
      const parts = Array.from({ length: 12 }, () => pieces[random(pieces.length)] ?? '');
      const text = parts.filter((part) => !part.includes(']:')).join('');
      expect(streamed(text, 1 + random(9)).html, JSON.stringify(text)).toBe(renderMarkdown(text));
    }
  });

  test('finished blocks are not parsed again', () => {
    const text = Array.from({ length: 200 }, (_, i) => `Paragraph ${i} of a long answer.`).join(
      '\n\n',
    );
    const { parsedFrom } = streamed(text, 20);
    expect(parsedFrom.at(-1)).toBeGreaterThan(190);
  });

  test('a text that is no continuation starts anew', () => {
    const stream = new MarkdownStream();
    stream.update('a\n\nb\n\nc\n\nd');
    expect(stream.update('other')).toEqual({ from: 0, html: ['<p>other</p>\n'] });
  });

  test('nesting beyond the stack is shown as text and throws nothing', () => {
    const text = `${'>'.repeat(20_000)} deep`;
    expect(renderMarkdown(text)).toContain('&gt;');
  });
});

describe('renderMarkdown', () => {
  test('tags of the model are shown as text', () => {
    expect(renderMarkdown('a <b>x</b>')).toBe('<p>a &lt;b&gt;x&lt;/b&gt;</p>\n');
    expect(renderMarkdown('<div>\nx\n</div>')).toBe('<p>&lt;div&gt;\nx\n&lt;/div&gt;</p>\n');
  });
  test('an image becomes a link', () => {
    expect(renderMarkdown('![cat](https://e.com/c.png)')).toBe(
      '<p><a href="https://e.com/c.png">Image: cat</a></p>\n',
    );
  });
  test('headings start at the third level', () => {
    expect(renderMarkdown('# a')).toBe('<h3>a</h3>\n');
    expect(renderMarkdown('##### a')).toBe('<h6>a</h6>\n');
  });
  test('the language of a code block is kept when it is a plain word', () => {
    expect(renderMarkdown('```c++ x\ny\n```')).toContain('<code class="language-c++">');
    expect(renderMarkdown('```"><img\ny\n```')).toContain('<pre><code>');
  });
});

describe('attacks, before any sanitising', () => {
  const tag = /<(\/?)([a-z][a-z0-9]*)([^>]*)>/gi;
  const allowedTags =
    /^(p|br|hr|h[3-6]|blockquote|ul|ol|li|pre|code|em|strong|del|a|table|thead|tbody|tr|th|td)$/;
  const allowedAttributes =
    /^( (class="language-[\w+#.-]+"|start="\d+"|align="\w+"|title="[^"<>]*"|href="(https?:\/\/|mailto:)[^"<>]*"))*$/;
  for (const payload of payloads) {
    test(`${JSON.stringify(payload.slice(0, 60))} becomes harmless HTML`, () => {
      const tags = [...renderMarkdown(payload).matchAll(tag)];
      for (const [whole, closing, name, attributes] of tags) {
        expect(name, whole).toMatch(allowedTags);
        if (closing === '') expect(attributes, whole).toMatch(allowedAttributes);
      }
    });
  }
  test('a link that may not be opened leaves its words', () => {
    expect(renderMarkdown('[click](javascript:x)')).toBe('<p>click</p>\n');
  });
});

describe('safeHref', () => {
  const table: [string, string | undefined][] = [
    ['https://example.com/?a=1&amp;b=2', 'https://example.com/?a=1&b=2'],
    ['HTTP://example.com', 'HTTP://example.com'],
    ['mailto:a@b.c', 'mailto:a@b.c'],
    ['javascript:alert(1)', undefined],
    [' JaVaScRiPt:alert(1)', undefined],
    ['java\nscript:alert(1)', undefined],
    ['&#106;avascript:alert(1)', undefined],
    ['data:text/html,x', undefined],
    ['vbscript:x', undefined],
    ['blob:https://a/b', undefined],
    ['file:///etc/passwd', undefined],
    ['//evil.example', undefined],
    ['/logout', undefined],
    ['#main', undefined],
    ['https:', undefined],
  ];
  for (const [href, expected] of table) {
    test(`${JSON.stringify(href)} -> ${expected ?? 'refused'}`, () => {
      expect(safeHref(href)).toBe(expected);
    });
  }
});
