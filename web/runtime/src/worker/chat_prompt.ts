// Which messages of a conversation go into the prompt when not all of them fit: the oldest turns are left out whole. A turn
// is a user message with what follows it up to the next; the system message in front and the last turn always stay.
import { ContextFullError } from '../errors.js';
import type { ChatMessage } from '../types.js';

/** Room that 'drop-oldest' keeps for the answer where maxTokens does not say. */
const DEFAULT_ANSWER_TOKENS = 256;
/** An answer's room is at most this part of the context, and dropping turns frees at least this part. */
const ANSWER_SHARE = 1 / 4;

export interface ChatLimits {
  nCtx: number;
  /** 0: not given. */
  maxTokens: number;
  onContextFull: 'error' | 'drop-oldest';
}

export interface FittedChat {
  tokens: Uint32Array;
  droppedMessages: number;
}

/** Of a prompt that is far too long the tokens need not be known: more than the context holds. */
export interface FarTooLong {
  fewestTokens: number;
}
export type Encoded = Uint32Array | FarTooLong;

const isKnown = (encoded: Encoded): encoded is Uint32Array => encoded instanceof Uint32Array;
const lengthOf = (encoded: Encoded): number =>
  isKnown(encoded) ? encoded.length : encoded.fewestTokens;

/** A chat of which nobody has looked yet whether it fits. */
interface TriedChat {
  tokens: Encoded;
  droppedMessages: number;
}

/**
 * What a session dropped last. The next prompt of the same conversation drops the same turns if it then fits: a prompt that
 * begins differently each time would have to be computed as a whole each time.
 */
export class DropMemory {
  #text = '';
  #nMessages = 0;

  copy(): DropMemory {
    const copied = new DropMemory();
    copied.#text = this.#text;
    copied.#nMessages = this.#nMessages;
    return copied;
  }

  remember(dropped: readonly ChatMessage[]): void {
    this.#text = JSON.stringify(dropped);
    this.#nMessages = dropped.length;
  }

  /** How many of these messages (the system message not among them) were dropped last; 0: another conversation. */
  recall(messages: readonly ChatMessage[]): number {
    const same =
      this.#nMessages > 0 && JSON.stringify(messages.slice(0, this.#nMessages)) === this.#text;
    return same ? this.#nMessages : 0;
  }
}

/** Throws ContextFullError when even what must stay does not fit. */
export function fitChat(
  messages: readonly ChatMessage[],
  limits: ChatLimits,
  encode: (messages: readonly ChatMessage[]) => Encoded,
  memory: DropMemory,
): FittedChat {
  const { nCtx } = limits;
  const all = encode(messages);
  const share = Math.floor(nCtx * ANSWER_SHARE);
  const reserve = Math.min(limits.maxTokens || DEFAULT_ANSWER_TOKENS, share);
  if (limits.onContextFull === 'error' || lengthOf(all) <= nCtx - reserve)
    return { tokens: fitting(all, nCtx, 'error'), droppedMessages: 0 };
  const nSystem = countSystem(messages);
  const turns = messages.slice(nSystem);
  const starts = turnStarts(turns);
  const without = (n: number): TriedChat => ({
    tokens: encode([...messages.slice(0, nSystem), ...turns.slice(n)]),
    droppedMessages: n,
  });

  const recalled = memory.recall(turns);
  if (starts.includes(recalled)) {
    const again = without(recalled);
    const { tokens } = again;
    if (isKnown(tokens) && tokens.length <= nCtx - reserve) return { ...again, tokens };
  }
  const chat = fewestDropped(starts, nCtx - share, without);
  const tokens = fitting(chat.tokens, nCtx, 'drop-oldest');
  memory.remember(turns.slice(0, chat.droppedMessages));
  return { ...chat, tokens };
}

type PromptKind = ChatLimits['onContextFull'] | 'prompt';

/** The tokens of a prompt that fits. Throws ContextFullError. */
export function fitting(prompt: Encoded, nCtx: number, kind: PromptKind): Uint32Array {
  if (!isKnown(prompt) || prompt.length > nCtx) throw contextFull(prompt, nCtx, kind);
  return prompt;
}

function countSystem(messages: readonly ChatMessage[]): number {
  const first = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  return first < 0 ? messages.length : first;
}

/** Where the conversation may begin: at its first message and at each user message. */
function turnStarts(turns: readonly ChatMessage[]): number[] {
  const starts = [0];
  turns.forEach(({ role }, i) => {
    if (i > 0 && role === 'user') starts.push(i);
  });
  return starts;
}

/** The longest ending that has at most maxTokens tokens, or the last turn alone. Longer endings have more tokens. */
function fewestDropped(
  starts: readonly number[],
  maxTokens: number,
  without: (n: number) => TriedChat,
): TriedChat {
  let low = 0;
  let high = starts.length - 1;
  let best = without(starts[high] ?? 0);
  while (low < high) {
    const middle = (low + high) >> 1;
    const tried = without(starts[middle] ?? 0);
    if (lengthOf(tried.tokens) <= maxTokens) {
      best = tried;
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return best;
}

function contextFull(prompt: Encoded, nCtx: number, kind: PromptKind): ContextFullError {
  const remedies = {
    error:
      "Shorten the conversation, pass onContextFull: 'drop-oldest', or load with a larger nCtx.",
    'drop-oldest': 'Even its last turn alone is too long: shorten it, or load with a larger nCtx.',
    prompt: 'Shorten the prompt, or load with a larger nCtx.',
  };
  const neededTokens = lengthOf(prompt);
  const least = isKnown(prompt) ? '' : 'at least ';
  return new ContextFullError(
    `The prompt has ${least}${neededTokens} tokens, the context holds ${nCtx}. ${remedies[kind]}`,
    {
      neededTokens,
      nCtx,
    },
  );
}
