import { describe, expect, it } from 'vitest';
import { BadModelError, HeadlightError } from '../../../web/runtime/src/errors.js';
import { ChatTemplate, type TemplateMessage } from '../../../web/runtime/src/text/chat_template.js';
import { Tokenizer } from '../../../web/runtime/src/text/tokenizer.js';
import { QWEN3 } from './templates.js';
import { spmMetadata } from './vocabularies.js';

const META = spmMetadata(['a']);
const TOKENIZER = Tokenizer.fromMetadata(META);

function render(source: string, messages: readonly TemplateMessage[] = []): string {
  const meta = META.with({ 'tokenizer.chat_template': source });
  return ChatTemplate.fromMetadata(meta, TOKENIZER)
    .render(messages)
    .map((segment) => segment.text)
    .join('');
}

// Each would take minutes to years, or gigabytes, without bounds; 20 s is for slow machines.
describe('a template that does too much is an error of the model', { timeout: 20_000 }, () => {
  const doubled = '{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}';
  const nest = (what: string, times: number): string =>
    `{% set ns = namespace(x=[1]) %}{% for i in range(${times}) %}{% set ns.x = ${what} %}{% endfor %}`;
  it.each<[string, string]>([
    ['a huge range', '{% for i in range(10**12) %}{% endfor %}'],
    ['a huge range, unused', '{% set x = range(10**15) %}'],
    ['a range that runs backwards', '{{ range(0, 0 - 10**12, -1)|length }}'],
    [
      'nested loops with empty bodies',
      '{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}',
    ],
    [
      'nested loops over literals',
      `{% for a in range(999) %}{% for b in range(999) %}{% for c in range(999) %}x{% endfor %}{% endfor %}{% endfor %}`,
    ],
    [
      'a loop with a condition that is never met',
      '{% for i in range(99999) %}{% for j in range(99999) if false %}{% endfor %}{% endfor %}',
    ],
    ['a macro that calls itself', '{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}'],
    [
      'a macro that calls itself twice',
      '{% macro m(n) %}{% if n > 0 %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}',
    ],
    ['call blocks that nest', '{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}'],
    ['a string that doubles', `{% set ns = namespace(x='ab') %}${doubled}{{ ns.x }}`],
    ['a string that doubles, unused', `{% set ns = namespace(x='ab') %}${doubled}`],
    ['a list that doubles', `{% set ns = namespace(x=[1]) %}${doubled}`],
    [
      'output that doubles',
      '{% set ns = namespace(x="0123456789") %}{% for i in range(60) %}{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}{% endfor %}',
    ],
    [
      'replace that squares',
      "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(9) %}{% set ns.x = ns.x|replace('a', ns.x) %}{% endfor %}",
    ],
    [
      'replace of nothing',
      "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(9) %}{% set ns.x = ns.x.replace('', ns.x) %}{% endfor %}",
    ],
    [
      'join that squares',
      "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(9) %}{% set ns.x = ns.x|join(ns.x) %}{% endfor %}",
    ],
    [
      'join by keyword',
      `{% set x = '${'a'.repeat(100)}' %}{% set x = x|replace('a', x)|replace('a', x) %}{{ range(9999)|join(separator=x) }}`,
    ],
    ['a wide indent', "{{ 'a\\nb'|indent(10**9) }}"],
    [
      'a wide indent of many lines',
      "{{ ('\\n'|replace('\\n', '\\n\\n\\n\\n\\n\\n\\n\\n'))|indent(10**7) }}",
    ],
    ['a wide indent in JSON', '{{ {"a": 1}|tojson(indent=10**9) }}'],
    [
      'a filter block that squares',
      `{% set x = '${'a'.repeat(100)}' %}{% set x = x|replace('a', x)|replace('a', x) %}{% filter replace('a', x) %}{% for i in range(9999) %}a{% endfor %}{% endfilter %}`,
    ],
    [
      'a list walked over and left at once',
      '{% set r = range(99999) %}{% for i in range(99999) %}{% for j in r %}{% break %}{% endfor %}{% endfor %}',
    ],
    ['a list of lists printed', `${nest('[ns.x, ns.x]', 60)}{{ ns.x }}`],
    ['a list of lists as JSON', `${nest('[ns.x, ns.x]', 60)}{{ ns.x|tojson }}`],
    ['a list of lists joined', `${nest('[ns.x, ns.x]', 60)}{{ ns.x|join }}`],
    ['a list of lists compared', `${nest('[ns.x, ns.x]', 60)}{{ ns.x == 'x' }}`],
    ['a list of lists as text', `${nest('[ns.x, ns.x]', 60)}{{ ns.x ~ '' }}`],
    ['a list in a list in a list', `${nest('[ns.x]', 50000)}{{ ns.x }}`],
    [
      'a search repeated',
      "{% set x = 'ab'|replace('b', 'c'|replace('c', 'bbbbbbbb')) %}{% set ns = namespace(x=x) %}{% for i in range(18) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{% for i in range(999999) %}{% if 'zz' in ns.x %}{% endif %}{% endfor %}",
    ],
    ['parentheses nested deep', `{{ ${'('.repeat(20000)}1${')'.repeat(20000)} }}`],
    ['blocks nested deep', `${'{% if true %}'.repeat(5000)}x${'{% endif %}'.repeat(5000)}`],
    ['a template of a megabyte', 'x'.repeat(1_000_000)],
    ['a run of white space', ' '.repeat(100_000)],
  ])('%s', (name, source) => {
    const error = (() => {
      try {
        render(source);
      } catch (thrown) {
        return thrown;
      }
      return undefined;
    })();
    expect(error).toBeInstanceOf(BadModelError);
    // Running out of memory or stack on the way would be too late; parsing alone may nest too deep.
    const late = /too much memory or nesting/.test((error as Error).message);
    expect(late && !name.endsWith('nested deep')).toBe(false);
    expect((error as HeadlightError).message).toMatch(/complete\(\)/);
    expect((error as HeadlightError).details.key).toBe('tokenizer.chat_template');
  });

  it('a message that holds itself is an error', () => {
    const message: Record<string, unknown> = { role: 'user', content: 'x' };
    message.self = message;
    expect(() => render('x', [message as never])).toThrow(HeadlightError);
  });
});

describe('what conversations need is within the bounds', () => {
  const turns = (count: number, content: string): TemplateMessage[] =>
    Array.from({ length: count }, (_, i) => ({
      role: i % 2 === 0 ? 'user' : 'assistant',
      content,
    }));

  it('2,000 messages', () => {
    expect(render(QWEN3, turns(2000, 'Hello there.')).length).toBeGreaterThan(2000 * 40);
  });

  it('20 messages of 100,000 characters', () => {
    expect(render(QWEN3, turns(20, 'word '.repeat(20_000))).length).toBeGreaterThan(1_900_000);
  });

  it('40 nested elifs and a sum of 100 terms', () => {
    const elifs = Array.from({ length: 40 }, (_, i) => `{% elif x == ${i} %}${i}`).join('');
    expect(render(`{% set x = 39 %}{% if false %}${elifs}{% endif %}`)).toBe('39');
    expect(render(`{{ ${Array.from({ length: 100 }, () => '1').join(' + ')} }}`)).toBe('100');
  });
});
