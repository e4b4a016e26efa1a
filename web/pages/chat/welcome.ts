// What the page offers to say: examples on the empty page, and the next questions of an example that was begun.
import { byId, el } from '../shared/dom.js';
import type { Turn } from './conversation.js';
import { followUpsFor, type ModelKind, suggestionsFor } from './suggestions.js';

export interface WelcomeState {
  kind: ModelKind;
  modelName: string | undefined;
  turns: readonly Turn[];
  running: boolean;
}

const texts: Record<ModelKind, string> = {
  default:
    'It runs on your own processor, and nothing you type leaves this page. The default model is tiny, 3 MB: ' +
    'it remembers what you tell it, tells short stories, and knows nothing of the world.',
  chat: 'It runs on your own processor, and nothing you type leaves this page.',
  plain:
    'It runs on your own processor, and nothing you type leaves this page. This model holds no conversation: ' +
    'it goes on with what you write.',
};

export class Welcome {
  #root = byId('welcome', HTMLElement);
  #title = byId('welcome-title', HTMLElement);
  #text = byId('welcome-text', HTMLElement);
  #suggestions = byId('suggestions', HTMLElement);
  #followUps = byId('follow-ups', HTMLElement);
  #onPick: (prompt: string) => void;
  #shownKind: ModelKind | undefined;
  #shownFollowUps = '';

  constructor(onPick: (prompt: string) => void) {
    this.#onPick = onPick;
  }

  update(state: WelcomeState): void {
    const isEmpty = state.turns.every(({ role }) => role === 'notice');
    this.#root.hidden = !isEmpty;
    if (isEmpty) this.#showWelcome(state);
    this.#showFollowUps(isEmpty ? [] : nextQuestions(state));
  }

  #showWelcome({ kind, modelName }: WelcomeState): void {
    this.#title.textContent =
      kind === 'default' || modelName === undefined ? 'A language model in this tab' : modelName;
    if (this.#shownKind === kind) return;
    this.#shownKind = kind;
    this.#text.textContent = texts[kind];
    const items = suggestionsFor(kind).map(({ title, prompt }) => {
      const button = el(
        'button',
        { type: 'button', class: 'suggestion' },
        el('span', { class: 'suggestion-title' }, title),
        el('span', { class: 'suggestion-prompt' }, prompt),
      );
      button.addEventListener('click', () => this.#onPick(prompt));
      return el('li', {}, button);
    });
    this.#suggestions.replaceChildren(...items);
  }

  #showFollowUps(questions: readonly string[]): void {
    const key = questions.join('\n');
    if (key === this.#shownFollowUps) return;
    this.#shownFollowUps = key;
    this.#followUps.hidden = questions.length === 0;
    const items = questions.map((question) => {
      const button = el('button', { type: 'button', class: 'follow-up' }, question);
      button.addEventListener('click', () => this.#onPick(question));
      return el('li', {}, button);
    });
    this.#followUps.replaceChildren(...items);
  }
}

function nextQuestions({ kind, turns, running }: WelcomeState): string[] {
  if (running) return [];
  return followUpsFor(
    kind,
    turns.flatMap((turn) => (turn.role === 'user' ? [turn.text] : [])),
  );
}
