// Which messages stay when a conversation does not fit.
import { describe, expect, it } from 'vitest';
import type { ChatMessage } from '../../../web/runtime/src/types.js';
import {
  type ChatLimits,
  DropMemory,
  fitChat,
} from '../../../web/runtime/src/worker/chat_prompt.js';

/** Ten tokens a message. */
const encode = (messages: readonly ChatMessage[]) => new Uint32Array(messages.length * 10);
const limits = (nCtx: number, changes: Partial<ChatLimits> = {}): ChatLimits => ({
  nCtx,
  maxTokens: 1,
  onContextFull: 'drop-oldest',
  ...changes,
});

/** 's' system, 'u' user, 'a' assistant, 't' tool; each with a content of its own. */
function talk(roles: string): ChatMessage[] {
  const names: Record<string, string> = { s: 'system', u: 'user', a: 'assistant', t: 'tool' };
  return [...roles].map((role, i) => ({ role: names[role] ?? role, content: `${role}${i}` }));
}

describe('fitChat, of which some is far too long', () => {
  /** Over 60 tokens are not counted. */
  const encodeShort = (messages: readonly ChatMessage[]) =>
    messages.length > 6 ? { fewestTokens: 61 } : encode(messages);

  it('drops the same as if it were known', () => {
    const roles = 'suauauauauauauauau';
    const fitting = (how: typeof encode | typeof encodeShort) =>
      fitChat(talk(roles), limits(60), how, new DropMemory());
    expect(fitting(encodeShort)).toEqual(fitting(encode));
    expect(fitting(encodeShort).droppedMessages).toBeGreaterThan(6);
  });

  it('tells that it has at least so many tokens', () => {
    const fit = () =>
      fitChat(talk('suaaaaaaa'), limits(60), () => ({ fewestTokens: 61 }), new DropMemory());
    expect(fit).toThrow(/has at least 61 tokens, the context holds 60.*last turn alone/);
  });
});

describe('fitChat', () => {
  it.each([
    // Room for the answer is 1; when turns are dropped, a quarter of the context is freed.
    ['all fits', 'suaua', 60, 0, 50],
    ['fits to the last token', 'suaua', 51, 0, 50],
    ['one turn less', 'suauau', 60, 2, 40],
    ['two turns less, for a quarter', 'suauauau', 60, 4, 40],
    ['a turn with tools goes as a whole', 'suatauau', 70, 4, 40],
    ['without a system message', 'uauau', 45, 2, 30],
    ['the last turn stays though it leaves less than a quarter', 'suauaaaa', 70, 2, 60],
    ['the system message stays, and so does the last turn', 'ssuau', 30, 2, 30],
  ])('%s', (_, roles, nCtx, dropped, nTokens) => {
    const fitted = fitChat(talk(roles), limits(nCtx), encode, new DropMemory());
    expect([fitted.droppedMessages, fitted.tokens.length]).toEqual([dropped, nTokens]);
  });

  it('keeps room for maxTokens, for 256 tokens without it, and never for more than a quarter', () => {
    const droppedAt = (nCtx: number, maxTokens: number, tokensAMessage = 10) => {
      const encodeSome = (messages: readonly ChatMessage[]) =>
        new Uint32Array(messages.length * tokensAMessage);
      return fitChat(talk('uau'), limits(nCtx, { maxTokens }), encodeSome, new DropMemory())
        .droppedMessages;
    };
    expect([droppedAt(38, 8), droppedAt(37, 8)]).toEqual([0, 2]);
    expect([droppedAt(39, 100), droppedAt(38, 100)]).toEqual([0, 2]);
    expect([droppedAt(3256, 0, 1000), droppedAt(3255, 0, 1000)]).toEqual([0, 2]);
  });

  it('drops the same turns again while that fits, so that the prompt keeps its beginning', () => {
    const memory = new DropMemory();
    const at = (roles: string) => fitChat(talk(roles), limits(100), encode, memory).droppedMessages;
    const talks = ['suauauauau', 'suauauauauau', 'suauauauauauau', 'suauauauauauauau'];
    expect(talks.map(at)).toEqual([4, 4, 8, 8]);
  });

  it('does not carry what was dropped over to another conversation', () => {
    const memory = new DropMemory();
    const { droppedMessages } = fitChat(talk('suauauauauau'), limits(100), encode, memory);
    expect(droppedMessages).toBe(6);
    const other = talk('suauauauau').map((message) => ({
      ...message,
      content: `${message.content}!`,
    }));
    expect(fitChat(other, limits(100), encode, memory).droppedMessages).toBe(4);
  });

  it('throws with the numbers when not even the last turn fits', () => {
    const fit = () => fitChat(talk('suau'), limits(15), encode, new DropMemory());
    expect(fit).toThrow(
      expect.objectContaining({ code: 'ContextFull', details: { neededTokens: 20, nCtx: 15 } }),
    );
  });

  it("'error' takes everything that fits into the context, and throws for more", () => {
    const at = (nCtx: number) =>
      fitChat(talk('suau'), limits(nCtx, { onContextFull: 'error' }), encode, new DropMemory());
    expect(at(40).tokens.length).toBe(40);
    expect(() => at(39)).toThrow(expect.objectContaining({ code: 'ContextFull' }));
  });
});
