// One message of the conversation as an <article>: what the user wrote (with editing), what the model answered (with its
// actions and figures), or a notice of the page. They show turns and report clicks; they change no conversation.
import { el } from '../shared/dom.js';
import { formatMilliseconds, formatRate, plural } from '../shared/format.js';
import { type IconName, icon } from '../shared/icons.js';
import { AnswerBody } from './answer_parts.js';
import {
  type AnswerStats,
  type AnswerTurn,
  activeVariant,
  type NoticeTurn,
  type UserTurn,
} from './conversation.js';
import { isSubmitKey } from './keys.js';
import { spokenText } from './text/thinking.js';

export interface MessageActions {
  copy(text: string): void;
  edit(id: number, text: string): void;
  regenerate(): void;
  selectVariant(id: number, index: number): void;
}

function iconButton(name: IconName, label: string, testId: string): HTMLButtonElement {
  const attributes = { type: 'button', class: 'message-action', 'aria-label': label, title: label };
  return el('button', { ...attributes, 'data-testid': testId }, icon(name));
}

export class UserView {
  readonly element: HTMLElement;
  #turn: UserTurn;
  #actions: MessageActions;
  #text = el('div', { class: 'user-text', 'data-testid': 'user-text' });
  #foot: HTMLElement;
  #edit = iconButton('pencil', 'Edit message', 'edit');
  #form: HTMLFormElement | undefined;

  constructor(turn: UserTurn, actions: MessageActions) {
    this.#turn = turn;
    this.#actions = actions;
    const copy = iconButton('copy', 'Copy message', 'copy');
    copy.addEventListener('click', () => actions.copy(this.#turn.text));
    this.#edit.addEventListener('click', () => this.startEdit());
    this.#foot = el('div', { class: 'message-foot' }, this.#edit, copy);
    this.element = el(
      'article',
      { class: 'message user', 'data-testid': 'user-message', 'data-turn': turn.id },
      el('h2', { class: 'visually-hidden' }, 'You'),
      this.#text,
      this.#foot,
    );
    this.update();
  }

  update(): void {
    if (this.#text.textContent !== this.#turn.text) this.#text.textContent = this.#turn.text;
  }

  startEdit(): void {
    if (this.#form) return;
    const area = el('textarea', {
      'data-testid': 'edit-input',
      'aria-label': 'Edit message',
      rows: 1,
    });
    area.value = this.#turn.text;
    const cancel = el(
      'button',
      { type: 'button', class: 'button', 'data-testid': 'edit-cancel' },
      'Cancel',
    );
    const send = el('button', { class: 'button primary', 'data-testid': 'edit-send' }, 'Send');
    const form = el(
      'form',
      { class: 'edit-form' },
      area,
      el('div', { class: 'button-row' }, cancel, send),
    );
    const submit = () => {
      const text = area.value.trim();
      if (text === '') return;
      this.endEdit(false);
      this.#actions.edit(this.#turn.id, text);
    };
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      submit();
    });
    area.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && !event.isComposing) {
        event.stopPropagation();
        this.endEdit(true);
      } else if (isSubmitKey(event)) {
        event.preventDefault();
        submit();
      }
    });
    cancel.addEventListener('click', () => this.endEdit(true));
    this.#form = form;
    this.element.classList.add('is-editing');
    this.#text.hidden = true;
    this.#foot.hidden = true;
    this.element.append(form);
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }

  /** @param refocus give the focus back to the edit button */
  endEdit(refocus: boolean): void {
    this.#form?.remove();
    this.#form = undefined;
    this.element.classList.remove('is-editing');
    this.#text.hidden = false;
    this.#foot.hidden = false;
    if (refocus) this.#edit.focus();
  }
}

export class AnswerView {
  readonly element: HTMLElement;
  readonly #turn: AnswerTurn;
  #body = new AnswerBody();
  #wait = el('p', { class: 'wait', 'data-testid': 'wait' });
  #note = el('p', { class: 'answer-note', 'data-testid': 'answer-note' });
  #problem = el('div', { class: 'problem-slot' });
  #stats = el('span', { class: 'stats', 'data-testid': 'stats' });
  #copy = iconButton('copy', 'Copy answer', 'copy');
  #regenerate = iconButton('refresh', 'Regenerate', 'regenerate');
  #previous = iconButton('left', 'Previous answer', 'variant-previous');
  #next = iconButton('right', 'Next answer', 'variant-next');
  #position = el('span', { class: 'variant-position', 'data-testid': 'variant-position' });
  #foot: HTMLElement;
  #shownText: string | undefined;
  #shownRunning = false;

  constructor(turn: AnswerTurn, actions: MessageActions) {
    this.#turn = turn;
    this.#copy.addEventListener('click', () =>
      actions.copy(spokenText(activeVariant(turn).text, true).trim()),
    );
    this.#regenerate.addEventListener('click', () => actions.regenerate());
    this.#previous.addEventListener('click', () => actions.selectVariant(turn.id, turn.active - 1));
    this.#next.addEventListener('click', () => actions.selectVariant(turn.id, turn.active + 1));
    const variants = el('span', { class: 'variants' }, this.#previous, this.#position, this.#next);
    this.#foot = el(
      'div',
      { class: 'message-foot' },
      this.#copy,
      this.#regenerate,
      variants,
      this.#stats,
    );
    this.element = el(
      'article',
      { class: 'message answer', 'data-testid': 'answer', 'data-turn': turn.id },
      el('h2', { class: 'visually-hidden' }, 'Answer'),
      ...[this.#body.element, this.#wait, this.#note, this.#problem, this.#foot],
    );
    this.setWait('');
    this.setNote('');
  }

  /** The text of the active variant; `running`: more will come. */
  showText(running: boolean): void {
    const { text } = activeVariant(this.#turn);
    // Rendering a long conversation anew on every change of the page would be slow.
    if (text === this.#shownText && running === this.#shownRunning) return;
    this.#shownText = text;
    this.#shownRunning = running;
    this.#body.update(text, !running);
    this.element.classList.toggle('is-running', running);
    this.element.setAttribute('aria-busy', String(running));
    if (text !== '') this.setWait('');
  }

  /** What happens before the first word: reading the prompt. Empty: nothing. */
  setWait(text: string): void {
    this.#wait.textContent = text;
    this.#wait.hidden = text === '';
  }

  setNote(text: string): void {
    this.#note.textContent = text;
    this.#note.hidden = text === '';
  }

  setProblem(problem: HTMLElement | undefined): void {
    this.#problem.replaceChildren(...(problem ? [problem] : []));
  }

  /** Actions and figures. Only the last answer can be made anew. */
  showFoot(running: boolean, isLast: boolean): void {
    const { text, stats } = activeVariant(this.#turn);
    const { variants, active } = this.#turn;
    this.#foot.hidden = running || (text === '' && variants.length < 2 && !isLast);
    this.#copy.hidden = text === '';
    this.#regenerate.hidden = !isLast;
    const choice = isLast && variants.length > 1;
    this.#position.parentElement?.toggleAttribute('hidden', !choice);
    this.#position.textContent = `${active + 1} / ${variants.length}`;
    this.#position.setAttribute('aria-label', `Answer ${active + 1} of ${variants.length}`);
    this.#previous.disabled = active === 0;
    this.#next.disabled = active === variants.length - 1;
    this.#stats.textContent = stats
      ? `${plural(stats.tokens, 'token')} · ${formatRate(stats.tokensPerSecond)} tokens/s`
      : '';
    this.#stats.title = stats ? describeStats(stats) : '';
  }
}

function describeStats({ promptTokens, reusedTokens, promptMs, seed }: AnswerStats): string {
  const prompt = `Prompt: ${plural(promptTokens, 'token')}, ${reusedTokens} of them still in the KV cache`;
  return `${prompt}; the rest took ${formatMilliseconds(promptMs)}. Seed: ${seed}`;
}

export class NoticeView {
  readonly element: HTMLElement;

  constructor(turn: NoticeTurn) {
    this.element = el(
      'p',
      { class: 'notice', 'data-testid': 'notice', 'data-turn': turn.id },
      turn.text,
    );
  }
}
