// What the page keeps in this browser: the settings, and the conversation unless the user turns that off. Nothing else,
// nowhere else. Both are checked when they are read.
import { isRecord, readStored, removeStored, writeStored } from '../shared/storage.js';
import type { Conversation } from './conversation.js';
import { readSettings, type Settings } from './settings/schema.js';

const settingsKey = 'headlight.settings';
const chatKey = 'headlight.chat';
const themeKey = 'headlight.theme';
// Raised when an older shape can no longer be read.
const chatVersion = 1;

export function loadSettings(): Settings {
  return readSettings(readStored(settingsKey));
}

export function saveSettings(settings: Settings): void {
  writeStored(settingsKey, settings);
}

export function loadChat(conversation: Conversation): void {
  const stored = readStored(chatKey);
  if (isRecord(stored) && stored.version === chatVersion) conversation.restore(stored.turns);
}

export function saveChat(conversation: Conversation, keep: boolean): void {
  if (!keep || conversation.isEmpty) removeStored(chatKey);
  else writeStored(chatKey, { version: chatVersion, turns: conversation.toJSON() });
}

export function deleteStored(): void {
  for (const key of [settingsKey, chatKey, themeKey]) removeStored(key);
}
