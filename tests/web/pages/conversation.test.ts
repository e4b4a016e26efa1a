import { describe, expect, test } from 'vitest';
import { activeVariant, Conversation } from '../../../web/pages/chat/conversation.js';
import { exportName, toJson, toMarkdown } from '../../../web/pages/chat/export.js';

function chat(...texts: string[]): Conversation {
  const conversation = new Conversation();
  texts.forEach((text, index) => {
    if (index % 2 === 0) conversation.addUser(text);
    else activeVariant(conversation.addAnswer()).text = text;
  });
  return conversation;
}

const contents = (conversation: Conversation, system = '') =>
  conversation.messages(system).map(({ message }) => `${message.role}: ${message.content}`);

describe('Conversation.messages', () => {
  test('system prompt first, then the turns', () => {
    expect(contents(chat('a', 'b', 'c'), ' Be kind. ')).toEqual([
      'system: Be kind.',
      'user: a',
      'assistant: b',
      'user: c',
    ]);
  });
  test('no system message for an empty prompt', () => {
    expect(contents(chat('a'), '  ')).toEqual(['user: a']);
  });
  test('notices are not sent, and an empty answer is left out with its users joined', () => {
    const conversation = chat('a', '', 'b');
    conversation.addNotice('Another model');
    expect(contents(conversation)).toEqual(['user: a\n\nb']);
    expect(conversation.messages('')[0]?.turnIds).toEqual([1, 3]);
  });
  test('only what stands before a turn', () => {
    const conversation = chat('a', 'b', 'c', 'd');
    const last = conversation.lastTurn;
    expect(conversation.messages('', last).map(({ message }) => message.content)).toEqual([
      'a',
      'b',
      'c',
    ]);
  });
  test('joining does not change the turns', () => {
    const conversation = chat('a', '', 'b');
    conversation.messages('');
    expect(contents(conversation)).toEqual(['user: a\n\nb']);
  });
});

describe('editing', () => {
  test('an edited message drops what follows and says how much', () => {
    const conversation = chat('a', 'b', 'c', 'd');
    expect(conversation.editUser(1, 'x')).toBe(3);
    expect(contents(conversation)).toEqual(['user: x']);
  });
  test('an answer cannot be edited as a message', () => {
    expect(() => chat('a', 'b').editUser(2, 'x')).toThrow(/no user message/);
  });
  test('ids are not used twice', () => {
    const conversation = chat('a', 'b');
    conversation.editUser(1, 'x');
    expect(conversation.addAnswer().id).toBe(3);
  });
});

describe('variants', () => {
  test('a further variant keeps the earlier answer', () => {
    const conversation = chat('a', 'first');
    const turn = conversation.lastTurn;
    if (turn?.role !== 'assistant') throw new Error('no answer');
    conversation.addVariant(turn).text = 'second';
    expect(turn.variants.map(({ text }) => text)).toEqual(['first', 'second']);
    expect(activeVariant(turn).text).toBe('second');
  });
  test('a failed or empty variant is replaced', () => {
    const conversation = chat('a', 'half');
    const turn = conversation.lastTurn;
    if (turn?.role !== 'assistant') throw new Error('no answer');
    activeVariant(turn).finish = 'error';
    conversation.addVariant(turn);
    conversation.addVariant(turn);
    expect(turn.variants).toEqual([{ text: '' }]);
  });
});

test('a second notice takes the place of the first', () => {
  const conversation = chat('a', 'b');
  conversation.addNotice('one');
  conversation.addNotice('two');
  expect(conversation.turns.filter(({ role }) => role === 'notice')).toHaveLength(1);
  expect(conversation.lastTurn?.role).toBe('assistant');
});

describe('storing', () => {
  test('what was stored is restored, and new ids go on from there', () => {
    const conversation = chat('a', 'b', 'c');
    conversation.addNotice('n');
    const restored = new Conversation();
    expect(restored.restore(JSON.parse(JSON.stringify(conversation)))).toBe(true);
    expect(restored.turns).toEqual(conversation.turns);
    expect(restored.addUser('d').id).toBe(5);
  });
  const broken: unknown[] = [
    undefined,
    'x',
    [null],
    [{ id: 1, role: 'user' }],
    [{ id: 'x', role: 'user', text: 'a' }],
    [{ id: 1, role: 'assistant', variants: [], active: 0 }],
    [{ id: 1, role: 'assistant', variants: [{ text: 'a' }], active: 1 }],
    [{ id: 1, role: 'assistant', variants: [{ text: 4 }], active: 0 }],
    [{ id: 1, role: 'root', text: 'a' }],
  ];
  for (const stored of broken) {
    test(`${JSON.stringify(stored)} is refused and changes nothing`, () => {
      const conversation = chat('a');
      expect(conversation.restore(stored)).toBe(false);
      expect(contents(conversation)).toEqual(['user: a']);
    });
  }
  test('damaged figures are dropped, the answer is kept', () => {
    const conversation = new Conversation();
    const variants = [{ text: 'a', finish: 'stop', stats: { tokens: 'many' } }];
    expect(conversation.restore([{ id: 1, role: 'assistant', variants, active: 0 }])).toBe(true);
    expect(conversation.toJSON()).toEqual([
      { id: 1, role: 'assistant', variants: [{ text: 'a', finish: 'stop' }], active: 0 },
    ]);
  });
});

describe('export', () => {
  const date = new Date('2026-01-31T14:05:00Z');
  const context = { systemPrompt: 'Be kind.', modelName: 'M', date };
  test('JSON holds the messages as a chat API takes them', () => {
    expect(JSON.parse(toJson(chat('a', 'b'), context))).toEqual({
      model: 'M',
      exported: '2026-01-31T14:05:00.000Z',
      messages: [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
      ],
    });
  });
  test('Markdown holds every turn', () => {
    const text = toMarkdown(chat('a', '**b**'), context);
    expect(text).toContain('## You\n\na\n');
    expect(text).toContain('## Answer\n\n**b**\n');
  });
  test('the file name says when', () => {
    expect(exportName(date, 'md')).toBe('headlight-chat-2026-01-31-1405.md');
  });
});
