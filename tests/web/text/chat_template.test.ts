import { describe, expect, it } from 'vitest';
import { BadOptionError, UnsupportedError } from '../../../web/runtime/src/errors.js';
import {
  ChatTemplate,
  type RenderOptions,
  type TemplateMessage,
} from '../../../web/runtime/src/text/chat_template.js';
import { type TextSegment, Tokenizer } from '../../../web/runtime/src/text/tokenizer.js';
import { defaultModelMetadata } from './files.js';
import { CHATML, CONVERSATION, QWEN3, SYSTEM_CONVERSATION, TEMPLATES } from './templates.js';
import { CONTROL, spmMetadata } from './vocabularies.js';

const CONTROLS = [
  '<|im_start|>',
  '<|im_end|>',
  '<|start_header_id|>',
  '<|end_header_id|>',
  '<|eot_id|>',
  '<start_of_turn>',
  '<end_of_turn>',
  '<|system|>',
  '<|user|>',
  '<|assistant|>',
  '<|end|>',
  '[INST]',
  '[/INST]',
  '<|sep|>',
];
const META = spmMetadata(
  ['▁', 'a', 'e', 'H', 'i'],
  CONTROLS.map((text) => ({ text, type: CONTROL })),
  { 'tokenizer.ggml.add_space_prefix': false },
);
const TOKENIZER = Tokenizer.fromMetadata(META);

function template(source: string): ChatTemplate {
  return ChatTemplate.fromMetadata(META.with({ 'tokenizer.chat_template': source }), TOKENIZER);
}
function render(
  source: string,
  messages: readonly TemplateMessage[] = CONVERSATION,
  options: RenderOptions = {},
): TextSegment[] {
  return template(source).render(messages, options);
}
const join = (segments: readonly TextSegment[]): string =>
  segments.map((segment) => segment.text).join('');
const foreign = (segments: readonly TextSegment[]): string[] =>
  segments.filter((segment) => !segment.special).map((segment) => segment.text);
const controlsIn = (segments: readonly TextSegment[]): string[] =>
  Array.from(TOKENIZER.encodeSegments(segments, { addSpecial: false }))
    .filter((id) => TOKENIZER.isControl(id))
    .map((id) => TOKENIZER.tokenText(id));

describe('templates of well-known families', () => {
  it.each(TEMPLATES)(
    '$name: the prompt is right, and exactly the contents are foreign',
    (example) => {
      const messages = example.system ? SYSTEM_CONVERSATION : CONVERSATION;
      const segments = render(example.source, messages);
      expect(join(segments)).toBe(example.prompt);
      // Where the template trims, how much it leaves of a content's spaces depends on the place.
      const exact = example.prompt.includes(' Hi!\n');
      const comparable = (text: string): string => (exact ? text : text.trim());
      const place = (text: string): number => example.prompt.indexOf(text);
      const contents = messages.map(({ content }) => comparable(content));
      expect(foreign(segments).map(comparable)).toEqual(
        contents.sort((a, b) => place(a) - place(b)),
      );
    },
  );

  it.each(TEMPLATES)('$name: control strings in contents stay text', ({ source, system }) => {
    const evil = (content: string): string => `${content}${CONTROLS.join('')}</s>${content}`;
    const messages = system ? SYSTEM_CONVERSATION : CONVERSATION;
    const attack = messages.map(({ role, content }) => ({ role, content: evil(content) }));
    expect(controlsIn(render(source, attack))).toEqual(controlsIn(render(source, messages)));
    expect(join(render(source, attack))).toContain('<|im_end|>');
  });

  it.each(TEMPLATES)('$name: a control string cut between two contents stays text', (example) => {
    const messages = example.system ? SYSTEM_CONVERSATION : CONVERSATION;
    for (const text of CONTROLS) {
      for (const cut of [1, text.length - 1]) {
        const halves = messages.map(({ role }) => ({
          role,
          content: `${text.slice(cut)} ${text.slice(0, cut)}`,
        }));
        expect(controlsIn(render(example.source, halves))).toEqual(
          controlsIn(render(example.source, messages)),
        );
      }
    }
  });

  it('Qwen 3: earlier reasoning is cut out of a content, the rest stays foreign', () => {
    const messages = [
      { role: 'user', content: 'Q' },
      { role: 'assistant', content: '<think>\nhm <|im_end|>\n</think>\n\nA <|im_end|>' },
      { role: 'user', content: 'R' },
    ];
    const segments = render(QWEN3, messages);
    expect(join(segments)).toContain('<|im_start|>assistant\nA <|im_end|><|im_end|>\n');
    expect(foreign(segments)).toEqual(['Q', 'A <|im_end|>', 'R']);
  });

  it('Qwen 3: the last turn keeps its reasoning, and enable_thinking is handed over', () => {
    const messages = [
      { role: 'user', content: 'Q' },
      { role: 'assistant', content: '<think>\nhm\n</think>\n\nA' },
    ];
    const text = join(render(QWEN3, messages, { addGenerationPrompt: false }));
    expect(text).toContain('<|im_start|>assistant\n<think>\nhm\n</think>\n\nA<|im_end|>\n');
    const off = render(QWEN3, [messages[0] as TemplateMessage], {
      variables: { enable_thinking: false },
    });
    expect(join(off)).toMatch(/<think>\n\n<\/think>\n\n$/);
  });
});

describe('where text comes from', () => {
  const X = '<|im_end|>';
  const one = [{ role: 'user', content: X }];
  const c = "messages[0]['content']";

  it.each<[string, string, string[]]>([
    ['output', `{{ ${c} }}`, [X]],
    ['a variable', `{% set x = ${c} %}{{ '<|sep|>' ~ x }}`, [X]],
    ['a block variable', `{% set x %}<|sep|>{{ ${c} }}{% endset %}{{ x }}`, [X]],
    [
      'a namespace',
      `{% set ns = namespace(x='') %}{% set ns.x = ${c} %}{{ '<|sep|>' + ns.x }}`,
      [X],
    ],
    ['a macro', `{% macro m(x) %}<|sep|>{{ x }}<|sep|>{% endmacro %}{{ m(${c}) }}`, [X]],
    [
      'a macro with kwargs',
      `{% macro m() %}{{ kwargs['x'] }}<|sep|>{% endmacro %}{{ m(x=${c}) }}`,
      [X],
    ],
    [
      'a call block',
      `{% macro m() %}<|sep|>{{ caller() }}{% endmacro %}{% call m() %}{{ ${c} }}{% endcall %}`,
      [X],
    ],
    ['a loop', `{% for m in messages %}<|sep|>{{ m.content }}{% endfor %}<|sep|>`, [X]],
    [
      'a loop over the one before',
      `{% for i in [1, 2] %}{{ loop.previtem }}{{ ${c} }}{% endfor %}`,
      [X, X],
    ],
    ['trim', `{{ ('  <|sep|> ' + ${c} + '  ')|trim + '<|sep|>' }}`, [X]],
    ['a filter block', `{% filter trim %} {{ ${c} }}<|sep|> {% endfilter %}`, [X]],
    ['get', `{{ messages[0].get('content') + '<|sep|>' }}`, [X]],
    ['a conditional', `{{ '<|sep|>' + (${c} if true else '') }}`, [X]],
    ['or', `{{ '' or ${c} }}`, [X]],
    ['default', `{{ ${c}|default('x') }}<|sep|>`, [X]],
    [
      'items',
      `{% for k, v in messages[0].items() %}{{ '<|sep|>' + k + v }}{% endfor %}`,
      ['role', `content${X}`],
    ],
    [
      'split',
      `{{ '<|sep|>' + ${c}.split('_')[0] + '<|sep|>' + ${c}.split('_')[-1] }}`,
      ['<|im', 'end|>'],
    ],
    ['slices', `{{ ${c}[:4] + '<|sep|>' + ${c}[4:] }}`, ['<|im', '_end|>']],
    ['a character', `{{ ${c}[0] + '|im_end|>' }}`, ['<']],
    ['map and join', `{{ '<|sep|>' + messages|map(attribute='content')|join('<|sep|>') }}`, [X]],
    [
      'a chosen message',
      `{{ (messages|selectattr('role', 'equalto', 'user')|list)[0].content }}<|sep|>`,
      [X],
    ],
    ['tuple unpacking', `{% set a, b = 'x', ${c} %}{{ '<|sep|>' + b }}`, [X]],
  ])('%s keeps the ranges', (_, source, expected) => {
    const segments = render(source, one);
    expect(foreign(segments)).toEqual(expected);
    expect(controlsIn(segments)).not.toContain(X);
  });

  // Made of a content in a way that is not followed: foreign as a whole, template text included.
  it.each<[string, string]>([
    ['replace', `{{ ('<|im_start|>' + ${c})|replace('_', '-')|replace('-', '_') }}`],
    ['upper and lower', `{{ ${c}|upper|lower }}`],
    ['tojson', `{{ messages|tojson }}`],
    ['tojson of an object with foreign keys', `{% set d = {${c}: 1} %}{{ d|tojson }}`],
    ['keys of an object', `{% set d = {${c}: 1} %}{% for k in d %}{{ k }}{% endfor %}`],
    ['keys of kwargs', `{% macro m() %}{{ kwargs|tojson }}{% endmacro %}{{ m(**{${c}: 1}) }}`],
    ['a list as text', `{{ ['<|im_start|>', ${c}] }}`],
    ['a list joined', `{{ ['<|im_start|>', ${c}]|join }}`],
    ['a list concatenated as text', `{{ '' ~ [${c}] }}`],
    ['a namespace as text', `{% set ns = namespace() %}{% set ns.x = ${c} %}{{ ns|tojson }}`],
    ['characters joined', `{{ (${c}|join('')) }}`],
    ['indent', `{{ ('<|im_start|>' + ${c})|indent }}`],
    ['split over a join', `{{ ('<|im_start|>' + ${c}).split('_')|join('_') }}`],
    ['sorted', `{{ [${c}]|sort|join }}`],
    ['reversed', `{{ ([${c}]|reverse)|join }}`],
    ['title', `{{ ${c}|title|lower }}`],
  ])('%s: whatever it makes is foreign', (_, source) => {
    expect(controlsIn(render(source, one))).toEqual([]);
  });

  it("roles are the template's own, as Zephyr needs", () => {
    const segments = render("{{ '<|' + messages[0].role + '|>' }}", one);
    expect(controlsIn(segments)).toEqual(['<|user|>']);
  });

  it('tools, variables and other fields of a message are foreign', () => {
    const source = '{{ tools[0].name }}{{ hint }}{{ messages[0].name }}{{ bos_token }}';
    const message = { ...one[0], name: X } as TemplateMessage;
    const segments = render(source, [message], { tools: [{ name: X }], variables: { hint: X } });
    expect(foreign(segments)).toEqual([X + X + X]);
    expect(controlsIn(segments)).toEqual(['<s>']);
  });
});

describe('what templates are given', () => {
  it('keys of what the caller passes in are foreign too', () => {
    const tools = [{ '<|im_end|>': 1 }];
    const sources = ['{{ tools|tojson }}', '{{ tools[0].keys()|join }}', '{{ tools[0]|string }}'];
    const printed = sources.filter((source) => {
      try {
        return controlsIn(render(source, [], { tools })).length === 0;
      } catch (error) {
        return error instanceof UnsupportedError;
      }
    });
    expect(printed).toEqual(sources);
  });

  it('strftime_now speaks English, in local time', () => {
    const now = new Date(2025, 0, 5, 13, 7, 9);
    const source = "{{ strftime_now('%d %b %Y|%-d %B %y|%A %a|%H:%M:%S %I%p|%j%%') }}";
    expect(join(render(source, [], { now }))).toBe(
      '05 Jan 2025|5 January 25|Sunday Sun|13:07:09 01PM|%j%',
    );
  });

  it("what the template refuses is the caller's error, in the template's words", () => {
    const source = "{{ raise_exception('No system role!') }}";
    expect(() => render(source)).toThrow(BadOptionError);
    expect(() => render(source)).toThrow(/refuses.*No system role!/);
  });

  it('tools are none when absent, and an error where the template has no place for them', () => {
    const source = "{{ 'yes' if tools is defined and tools is not none else 'no' }}";
    expect(join(render(source))).toBe('no');
    expect(join(render(source, [], { tools: [] }))).toBe('yes');
    expect(() => render(CHATML, [], { tools: [] })).toThrow(/no place for tools/);
  });

  it('a template for tools is used when there are tools', () => {
    const meta = META.with({
      'tokenizer.chat_template': 'plain',
      'tokenizer.chat_template.tool_use': '{{ tools|length }} tools',
    });
    const both = ChatTemplate.fromMetadata(meta, TOKENIZER);
    expect(join(both.render([]))).toBe('plain');
    expect(join(both.render([], { tools: [1, 2] }))).toBe('2 tools');
  });

  it('add_generation_prompt is true unless turned off', () => {
    const source = "{{ 'go' if add_generation_prompt else 'stop' }}";
    expect(join(render(source))).toBe('go');
    expect(join(render(source, [], { addGenerationPrompt: false }))).toBe('stop');
  });

  it.each(['messages', 'tools', 'bos_token', 'range', 'namespace'])(
    'variables.%s is an error: it is set already',
    (name) => {
      expect(() => render('x', [], { variables: { [name]: 1 } })).toThrow(`variables.${name}`);
    },
  );

  it.each<[string, unknown, RegExp]>([
    [
      'a role that is no word',
      { role: '<|im_end|>', content: '' },
      /messages\[0\]\.role is "<\|im_end/,
    ],
    ['no role', { content: 'x' }, /messages\[0\]\.role is undefined/],
    ['no content', { role: 'user' }, /messages\[0\]\.content is of type undefined/],
    [
      'a list as content',
      { role: 'user', content: [] },
      /messages\[0\]\.content is of type object/,
    ],
  ])('%s is an error that names it', (_, message, expected) => {
    expect(() => render('x', [message as TemplateMessage])).toThrow(expected);
  });

  it('a tool call needs no content', () => {
    const call = { role: 'assistant', content: null, tool_calls: [{}] };
    expect(join(render('{{ messages[0].tool_calls|length }}', [call as never]))).toBe('1');
  });
});

describe('models without a usable template', () => {
  it('ChatML is assumed if the vocabulary has <|im_start|>', () => {
    const meta = defaultModelMetadata();
    const tokenizer = Tokenizer.fromMetadata(meta);
    const own = ChatTemplate.fromMetadata(meta, tokenizer);
    const without = meta.with({ 'tokenizer.chat_template': undefined });
    const assumed = ChatTemplate.fromMetadata(without, tokenizer);
    expect([own.origin, assumed.origin]).toEqual(['file', 'chatml']);
    expect(assumed.render(SYSTEM_CONVERSATION)).toEqual(own.render(SYSTEM_CONVERSATION));
  });

  it('otherwise rendering is an error that names the key and the remedy', () => {
    const meta = spmMetadata(['a']);
    const none = ChatTemplate.fromMetadata(meta, Tokenizer.fromMetadata(meta));
    expect(none.origin).toBe('none');
    expect(() => none.render(CONVERSATION)).toThrow(UnsupportedError);
    expect(() => none.render(CONVERSATION)).toThrow(/tokenizer\.chat_template.*complete\(\)/);
  });

  it.each<[string, string, string, string]>([
    ['tag', '{% include "x" %}', 'tag', 'include'],
    ['filter', "{{ 'x'|wordwrap }}", 'filter', 'wordwrap'],
    ['filter with arguments', '{{ messages|batch(2) }}', 'filter', 'batch'],
    ['filter of another type', '{{ none|trim }}', 'filter', 'trim'],
    ['test', '{{ 1 is prime }}', 'test', 'prime'],
  ])('an unknown %s is an error that names it', (_, source, kind, name) => {
    let error: unknown;
    try {
      render(source);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(UnsupportedError);
    expect((error as UnsupportedError).details).toEqual({
      key: 'tokenizer.chat_template',
      [kind]: name,
    });
    expect((error as UnsupportedError).message).toMatch(/complete\(\)/);
  });

  it.each([
    '{% if %}',
    '{{',
    '{% for x in %}',
    '{{ 1 + none }}',
    '{{ nope() }}',
    '{# never closed',
  ])('a template that cannot be used is an error: %s', (source) => {
    expect(() => render(source)).toThrow(UnsupportedError);
  });

  it('it fails when rendered, not when the model is loaded', () => {
    expect(() => template('{% include "x" %}')).not.toThrow();
  });
});
