// A conversation as a file: Markdown to read, JSON to go on with (the shape of every chat API). No DOM.
import type { Conversation } from './conversation.js';
import { activeVariant } from './conversation.js';

export interface ExportContext {
  systemPrompt: string;
  modelName: string;
  /** When it was exported. */
  date: Date;
}

export function toMarkdown(conversation: Conversation, context: ExportContext): string {
  const parts = [`# Chat with ${context.modelName}`, `Exported ${context.date.toISOString()}`];
  if (context.systemPrompt !== '') parts.push(`## System\n\n${context.systemPrompt}`);
  for (const turn of conversation.turns) {
    if (turn.role === 'user') parts.push(`## You\n\n${turn.text}`);
    else if (turn.role === 'assistant') parts.push(`## Answer\n\n${activeVariant(turn).text}`);
    else parts.push(`*${turn.text}*`);
  }
  return `${parts.join('\n\n')}\n`;
}

export function toJson(conversation: Conversation, context: ExportContext): string {
  const messages = conversation.messages(context.systemPrompt).map(({ message }) => message);
  const { modelName: model, date } = context;
  return `${JSON.stringify({ model, exported: date.toISOString(), messages }, null, 2)}\n`;
}

/** "headlight-chat-2026-01-31-1405.md", in UTC. */
export function exportName(date: Date, extension: string): string {
  const stamp = date.toISOString().slice(0, 16).replace('T', '-').replace(':', '');
  return `headlight-chat-${stamp}.${extension}`;
}
