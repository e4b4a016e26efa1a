// The list of messages: keeps one view per turn, in the order of the conversation, and marks what the model no longer
// sees because the context is full.
import { el } from '../shared/dom.js';
import { plural } from '../shared/format.js';
import type { AnswerTurn, Turn } from './conversation.js';
import { AnswerView, type MessageActions, NoticeView, UserView } from './message_views.js';

type View = UserView | AnswerView | NoticeView;

export interface TranscriptState {
  turns: readonly Turn[];
  /** The answer that is being written. */
  runningId: number | undefined;
  /** Turns that the last prompt left out. */
  droppedIds: ReadonlySet<number>;
  nCtx: number;
}

export class Transcript {
  #root: HTMLElement;
  #actions: MessageActions;
  #views = new Map<number, { turn: Turn; view: View }>();
  #divider = el('p', { class: 'notice context-full', 'data-testid': 'context-full' });

  constructor(root: HTMLElement, actions: MessageActions) {
    this.#root = root;
    this.#actions = actions;
    root.addEventListener('click', (event) => this.#copyCode(event));
  }

  sync(state: TranscriptState): void {
    const { turns, runningId } = state;
    const present = new Set<Turn>(turns);
    for (const [id, { turn, view }] of this.#views) {
      if (present.has(turn)) continue;
      view.element.remove();
      this.#views.delete(id);
    }
    const last = turns.findLast(({ role }) => role !== 'notice');
    let previous: Element | null = null;
    for (const turn of turns) {
      const view = this.#viewOf(turn);
      const place: Element | null = previous
        ? previous.nextElementSibling
        : this.#root.firstElementChild;
      if (place !== view.element) this.#root.insertBefore(view.element, place);
      previous = view.element;
      view.element.classList.toggle('is-last', turn === last);
      view.element.classList.toggle('is-dropped', state.droppedIds.has(turn.id));
      if (view instanceof UserView) view.update();
      if (view instanceof AnswerView) {
        const running = turn.id === runningId;
        view.showText(running);
        view.showFoot(running, turn === last && runningId === undefined);
      }
    }
    this.#placeDivider(state);
  }

  answer(turn: AnswerTurn): AnswerView {
    const view = this.#viewOf(turn);
    if (!(view instanceof AnswerView)) throw new Error(`Turn ${turn.id} is no answer`);
    return view;
  }

  edit(id: number): void {
    const view = this.#views.get(id)?.view;
    if (view instanceof UserView) {
      view.startEdit();
      view.element.scrollIntoView({ block: 'nearest' });
    }
  }

  #viewOf(turn: Turn): View {
    const known = this.#views.get(turn.id);
    if (known) return known.view;
    const view =
      turn.role === 'user'
        ? new UserView(turn, this.#actions)
        : turn.role === 'assistant'
          ? new AnswerView(turn, this.#actions)
          : new NoticeView(turn);
    this.#views.set(turn.id, { turn, view });
    return view;
  }

  #placeDivider({ turns, droppedIds, nCtx }: TranscriptState): void {
    this.#divider.remove();
    const lastDropped = turns.findLast(({ id }) => droppedIds.has(id));
    const view = lastDropped && this.#views.get(lastDropped.id)?.view;
    if (!view) return;
    const count = turns.filter(({ id, role }) => droppedIds.has(id) && role !== 'notice').length;
    const which =
      count === 1 ? 'The message above is' : `The ${plural(count, 'message')} above are`;
    this.#divider.textContent = `The context of ${nCtx} tokens is full. ${which} no longer sent to the model.`;
    view.element.after(this.#divider);
  }

  #copyCode(event: Event): void {
    const button = event.target instanceof Element && event.target.closest('[data-copy-code]');
    if (!button) return;
    const code = button.closest('.code-frame')?.querySelector('pre')?.textContent ?? '';
    this.#actions.copy(code.replace(/\n$/, ''));
    const label = button.querySelector('span');
    if (!label) return;
    label.textContent = 'Copied';
    setTimeout(() => {
      label.textContent = 'Copy';
    }, copiedMs);
  }
}

// Long enough to be read, short enough not to be taken for the state of the text.
const copiedMs = 1600;
