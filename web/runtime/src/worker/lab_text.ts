// Dialogues as tokens for measuring: the whole conversation, and which of its tokens the model itself would have written.
import type { ChatMessage } from '../types.js';
import type { TextTools } from './text_tools.js';

/** As the model's chat template writes it; as plain lines where it has none. */
export function encodeChat(
  text: TextTools,
  messages: readonly ChatMessage[],
  addGenerationPrompt = false,
): Uint32Array {
  if (text.hasChatTemplate) {
    const segments = text.template.render(messages, { addGenerationPrompt });
    return Uint32Array.from(text.tokenizer.encodeSegments(segments));
  }
  const names: Readonly<Record<string, string>> = { user: 'Question', assistant: 'Answer' };
  const lines = messages.map(({ role, content }) => `${names[role] ?? role}: ${content}\n`);
  const end = addGenerationPrompt ? 'Answer:' : '';
  return Uint32Array.from(text.tokenizer.encode(lines.join('') + end, { addSpecial: true }));
}

export interface LossTokens {
  tokens: Uint32Array;
  /** Indices of the tokens whose prediction counts; never 0. */
  counted: number[];
}

/** What the assistant says, or everything where turns cannot be told apart. At most nCtx tokens. */
export function lossTokens(
  text: TextTools,
  messages: readonly ChatMessage[],
  nCtx: number,
): LossTokens {
  const tokens = encodeChat(text, messages).slice(0, nCtx);
  const all = Array.from(tokens, (_, i) => i).slice(1);
  if (!text.hasChatTemplate) return { tokens, counted: all };
  const counted: number[] = [];
  for (const [i, { role }] of messages.entries()) {
    if (role !== 'assistant') continue;
    const before = encodeChat(text, messages.slice(0, i), true);
    const through = encodeChat(text, messages.slice(0, i + 1));
    const begins = before.every((id, at) => at >= tokens.length || id === tokens[at]);
    if (!begins) return { tokens, counted: all };
    for (let at = before.length; at < Math.min(through.length, tokens.length); at++) {
      counted.push(at);
      // What a template writes behind the end of a turn is not the model's.
      if (text.endOfGenerationIds.has(tokens[at] ?? -1)) break;
    }
  }
  return { tokens, counted };
}
