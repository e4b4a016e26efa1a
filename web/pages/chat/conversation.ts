// The conversation: user messages, answers (each with the variants that "regenerate" gave) and notices of the page.
// Plain data and the operations on it; no DOM, no engine, no storage.
import type { ChatMessage, FinishReason } from 'headlight-wasm';
import { isRecord } from '../shared/storage.js';

export interface AnswerStats {
  tokens: number;
  tokensPerSecond: number;
  promptTokens: number;
  /** Of the prompt, what the KV cache still held. */
  reusedTokens: number;
  promptMs: number;
  seed: number;
}

export interface Variant {
  text: string;
  /** 'error': the run failed; missing: it has not ended (or the page closed meanwhile). */
  finish?: FinishReason | 'error';
  stats?: AnswerStats;
}

export interface UserTurn {
  readonly id: number;
  readonly role: 'user';
  text: string;
}

export interface AnswerTurn {
  readonly id: number;
  readonly role: 'assistant';
  readonly variants: Variant[];
  active: number;
}

/** What the page says in between: another model was loaded. Never sent to a model. */
export interface NoticeTurn {
  readonly id: number;
  readonly role: 'notice';
  readonly text: string;
}

export type Turn = UserTurn | AnswerTurn | NoticeTurn;

/** A message for the engine and the turns that it stands for. */
export interface MappedMessage {
  message: ChatMessage;
  turnIds: number[];
}

export function activeVariant(turn: AnswerTurn): Variant {
  const variant = turn.variants[turn.active];
  if (variant === undefined) throw new Error(`Answer ${turn.id} has no variant ${turn.active}`);
  return variant;
}

export class Conversation {
  #turns: Turn[] = [];
  #nextId = 1;

  get turns(): readonly Turn[] {
    return this.#turns;
  }

  /** No message yet; notices do not count. */
  get isEmpty(): boolean {
    return !this.#turns.some(({ role }) => role !== 'notice');
  }

  get lastTurn(): UserTurn | AnswerTurn | undefined {
    return this.#turns.findLast((turn) => turn.role !== 'notice');
  }

  find(id: number): Turn | undefined {
    return this.#turns.find((turn) => turn.id === id);
  }

  addUser(text: string): UserTurn {
    return this.#add({ id: this.#nextId, role: 'user', text });
  }

  addAnswer(): AnswerTurn {
    return this.#add({ id: this.#nextId, role: 'assistant', variants: [{ text: '' }], active: 0 });
  }

  /** A notice right after another takes its place. */
  addNotice(text: string): NoticeTurn {
    if (this.#turns.at(-1)?.role === 'notice') this.#turns.pop();
    return this.#add({ id: this.#nextId, role: 'notice', text });
  }

  /** A further, empty variant of the last answer, made the active one. A failed or empty one is replaced. */
  addVariant(turn: AnswerTurn): Variant {
    const kept = turn.variants.filter(({ text, finish }) => text !== '' && finish !== 'error');
    const variant: Variant = { text: '' };
    turn.variants.splice(0, turn.variants.length, ...kept, variant);
    turn.active = turn.variants.length - 1;
    return variant;
  }

  /** Changes a user message and drops all that follows; returns how many messages that were. */
  editUser(id: number, text: string): number {
    const index = this.#turns.findIndex((turn) => turn.id === id);
    const turn = this.#turns[index];
    if (turn?.role !== 'user') throw new Error(`Turn ${id} is no user message`);
    turn.text = text;
    return this.#turns.splice(index + 1).filter(({ role }) => role !== 'notice').length;
  }

  clear(): void {
    this.#turns = [];
  }

  /**
   * What a chat template can take: the system prompt, then user and assistant in turn. Empty answers are left out, and
   * user messages that then follow each other are joined. `before`: only the turns ahead of that one.
   */
  messages(systemPrompt: string, before?: Turn): MappedMessage[] {
    const mapped: MappedMessage[] = [];
    const system = systemPrompt.trim();
    if (system !== '') mapped.push({ message: { role: 'system', content: system }, turnIds: [] });
    for (const turn of this.#turns) {
      if (turn === before) break;
      if (turn.role === 'notice') continue;
      const content = turn.role === 'user' ? turn.text : activeVariant(turn).text;
      if (content === '') continue;
      const last = mapped.at(-1);
      if (last && last.message.role === turn.role) {
        last.message.content += `\n\n${content}`;
        last.turnIds.push(turn.id);
      } else mapped.push({ message: { role: turn.role, content }, turnIds: [turn.id] });
    }
    return mapped;
  }

  toJSON(): Turn[] {
    return structuredClone(this.#turns);
  }

  /** Takes over what toJSON gave; false, and nothing changes, when it is not that. */
  restore(stored: unknown): boolean {
    if (!Array.isArray(stored)) return false;
    const turns = stored.map(readTurn);
    if (turns.some((turn) => turn === undefined)) return false;
    this.#turns = turns.filter((turn) => turn !== undefined);
    this.#nextId = Math.max(0, ...this.#turns.map(({ id }) => id)) + 1;
    return true;
  }

  #add<T extends Turn>(turn: T): T {
    this.#nextId += 1;
    this.#turns.push(turn);
    return turn;
  }
}

function readTurn(value: unknown): Turn | undefined {
  if (!isRecord(value) || !Number.isSafeInteger(value.id)) return undefined;
  const { role, text, variants, active } = value;
  const id = Number(value.id);
  if ((role === 'user' || role === 'notice') && typeof text === 'string') return { id, role, text };
  if (role !== 'assistant' || !Array.isArray(variants)) return undefined;
  const read = variants.map(readVariant);
  if (!read.every((variant) => variant !== undefined)) return undefined;
  const isIndex = typeof active === 'number' && read[active] !== undefined;
  return isIndex ? { id, role, variants: read, active } : undefined;
}

function readVariant(value: unknown): Variant | undefined {
  if (!isRecord(value) || typeof value.text !== 'string') return undefined;
  const variant: Variant = { text: value.text };
  const finish = (['stop', 'length', 'aborted', 'error'] as const).find(
    (reason) => reason === value.finish,
  );
  if (finish) variant.finish = finish;
  const stats = readStats(value.stats);
  if (stats) variant.stats = stats;
  return variant;
}

function readStats(value: unknown): AnswerStats | undefined {
  if (!isRecord(value)) return undefined;
  const number = (key: string) => {
    const entry = value[key];
    return typeof entry === 'number' && Number.isFinite(entry) ? entry : Number.NaN;
  };
  const stats: AnswerStats = {
    tokens: number('tokens'),
    tokensPerSecond: number('tokensPerSecond'),
    promptTokens: number('promptTokens'),
    reusedTokens: number('reusedTokens'),
    promptMs: number('promptMs'),
    seed: number('seed'),
  };
  return Object.values(stats).some(Number.isNaN) ? undefined : stats;
}
