// What went wrong, as the page says it: a title, the error's own message (it names value and place), what the user can
// do, and which buttons help. Every code of the package has its entry. No DOM.
import type { ErrorCode } from 'headlight-wasm';
import { isRecord } from './storage.js';

export type Remedy =
  | 'retry'
  | 'reload'
  | 'default-model'
  | 'free-memory'
  | 'default-options'
  | 'settings'
  | 'model';

export interface Explanation {
  title: string;
  message: string;
  advice: string;
  remedies: Remedy[];
  /** The code and the error's details, for a bug report. */
  details: string;
}

export interface ErrorContext {
  during: 'load' | 'chat';
  /** The model that was being loaded, or that answers. */
  modelName: string;
  /** Another model is loaded and still works. */
  hasFormerModel: boolean;
  source?: 'default' | 'file' | 'url';
}

interface Entry {
  title: string;
  advice: string;
  remedies: Remedy[];
}

const loadEntries: Record<ErrorCode, Entry> = {
  OutOfMemory: {
    title: 'There is not enough memory for this model',
    advice: 'Choose a smaller model or a shorter context (load options), or close other tabs.',
    remedies: ['free-memory', 'model'],
  },
  BadModel: {
    title: 'This file cannot be read as a model',
    advice: 'It is damaged, incomplete or no GGUF file. Download it again, or choose another one.',
    remedies: ['model'],
  },
  Unsupported: {
    title: 'Headlight cannot run this model yet',
    advice: 'The file is sound but uses something that is not implemented. Choose another one.',
    remedies: ['model'],
  },
  ContextFull: {
    title: 'The context does not fit',
    advice: 'Choose another context length in the load options.',
    remedies: ['model'],
  },
  Quota: {
    title: "The browser's storage is full",
    advice: 'Delete stored models or free some disk space, then try again.',
    remedies: ['retry'],
  },
  Network: {
    title: 'The model could not be downloaded',
    advice:
      'Check the address and the connection. A server on another site must also allow being read from here (CORS); ' +
      'if it does not, download the file and open it from your disk.',
    remedies: ['retry', 'model'],
  },
  Integrity: {
    title: 'The file is incomplete or damaged',
    advice: 'Most often a download was cut off: get the file again, or choose another one.',
    remedies: ['retry', 'model'],
  },
  Aborted: {
    title: 'Loading was cancelled',
    advice: 'Load it again whenever you like.',
    remedies: ['retry', 'model'],
  },
  WorkerLost: {
    title: "The model's worker ended",
    advice: 'Most often the browser ran out of memory. Close other tabs or choose a smaller model.',
    remedies: ['retry', 'model'],
  },
  BadOption: {
    title: 'A load option cannot be used here',
    advice: 'Change the load options, or let Headlight choose them.',
    remedies: ['default-options', 'model'],
  },
  Internal: {
    title: 'Something broke inside Headlight',
    advice: 'This is a bug. Reloading the page may help; a report with the details below will.',
    remedies: ['retry', 'model'],
  },
};

const chatEntries: Partial<Record<ErrorCode, Entry>> = {
  OutOfMemory: {
    title: 'There is not enough memory for this answer',
    advice: 'Load the model with a shorter context, or close other tabs.',
    remedies: ['retry', 'model'],
  },
  Unsupported: {
    title: 'This conversation cannot be put to the model',
    advice:
      'Its chat template refuses something here, most often a system prompt. Change the settings and try again.',
    remedies: ['settings', 'retry'],
  },
  BadModel: {
    title: "The model's chat template does not work",
    advice: 'The template in the file is broken. Choose another file of this model.',
    remedies: ['model'],
  },
  ContextFull: {
    title: 'This message is too long for the context',
    advice:
      'Shorten it, or shorten the system prompt. If the model was trained on more, load it with a longer context.',
    remedies: ['settings', 'model'],
  },
  WorkerLost: {
    title: "The model's worker ended",
    advice: 'Most often the browser ran out of memory. Load the model again to go on.',
    remedies: ['reload', 'default-model'],
  },
  BadOption: {
    title: 'A setting cannot be used',
    advice: 'Change it in the settings and try again.',
    remedies: ['settings', 'retry'],
  },
  Internal: { ...loadEntries.Internal, remedies: ['retry'] },
};

function isKnown(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(loadEntries, code);
}

function codeOf(thrown: unknown): ErrorCode {
  const code =
    isRecord(thrown) || thrown instanceof Error ? Reflect.get(thrown, 'code') : undefined;
  return isKnown(code) ? code : 'Internal';
}

function describeDetails(thrown: unknown, code: ErrorCode): string {
  const details = thrown instanceof Error ? Reflect.get(thrown, 'details') : undefined;
  const pairs = isRecord(details) ? Object.entries(details) : [];
  const lines = [`code: ${code}`, ...pairs.map(([key, value]) => `${key}: ${String(value)}`)];
  return lines.join('\n');
}

export function explain(thrown: unknown, context: ErrorContext): Explanation {
  const code = codeOf(thrown);
  const entry = (context.during === 'chat' ? chatEntries[code] : undefined) ?? loadEntries[code];
  const message = messageOf(thrown);
  const advice = [entry.advice];
  let remedies = [...entry.remedies];
  if (context.during === 'load') {
    if (context.hasFormerModel) advice.push('The model that was loaded before still runs.');
    else if (context.source !== 'default') remedies.push('default-model');
    if (!context.hasFormerModel) remedies = remedies.filter((remedy) => remedy !== 'free-memory');
    if (code === 'BadModel' && context.source === 'url') {
      advice.push('Make sure that the address is that of the file itself, not of a page about it.');
    }
  }
  return {
    title: entry.title,
    message,
    advice: advice.join(' '),
    remedies,
    details: describeDetails(thrown, code),
  };
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

export function isAborted(thrown: unknown): boolean {
  return codeOf(thrown) === 'Aborted' || (thrown instanceof Error && thrown.name === 'AbortError');
}
