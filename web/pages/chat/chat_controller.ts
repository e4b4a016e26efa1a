// What can be done with the conversation: send, stop, make an answer anew, edit, start over, undo. It drives one answer
// at a time through the engine and keeps the transcript, the meter and the screen reader up to date.
import type { GenerateResult } from 'headlight-wasm';
import { explain, type Remedy } from '../shared/errors.js';
import type { Toast } from '../shared/toast.js';
import type { Announcer } from './announcer.js';
import { AnswerRun, type RunProgress } from './answer_run.js';
import {
  type AnswerTurn,
  activeVariant,
  Conversation,
  type MappedMessage,
  type Turn,
  type Variant,
} from './conversation.js';
import type { LoadedModel } from './engine_host.js';
import { FrameScheduler } from './frame.js';
import type { MessageActions } from './message_views.js';
import { problemBox } from './problem_box.js';
import type { ScrollFollower } from './scroll.js';
import { effectiveSampling, type Settings } from './settings/schema.js';
import type { StatusBar } from './status_bar.js';
import { spokenText } from './text/thinking.js';
import type { Transcript } from './transcript.js';

export interface ChatParts {
  transcript: Transcript;
  announcer: Announcer;
  toast: Toast;
  follower: ScrollFollower;
  status: StatusBar;
  settings(): Settings;
  model(): LoadedModel | undefined;
  /** Why no answer can be begun now; empty: it can. */
  blockedReason(): string;
  /** Something that others show has changed. */
  changed(): void;
  act(remedy: Remedy): void;
}

interface Running {
  run: AnswerRun;
  turn: AnswerTurn;
  ended: Promise<void>;
}

// How often the context meter is asked for while an answer is written.
const meterMs = 1000;

export class ChatController implements Omit<MessageActions, 'copy'> {
  readonly conversation = new Conversation();
  #parts: ChatParts;
  #running: Running | undefined;
  #droppedIds = new Set<number>();

  constructor(parts: ChatParts) {
    this.#parts = parts;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Brings the transcript in line with the conversation. */
  show(): void {
    this.#parts.transcript.sync({
      turns: this.conversation.turns,
      runningId: this.#running?.turn.id,
      droppedIds: this.#droppedIds,
      nCtx: this.#parts.model()?.engine.info.nCtx ?? 0,
    });
    this.#parts.follower.setActive(!this.conversation.isEmpty);
    this.#parts.follower.contentChanged();
  }

  send(text: string): void {
    if (this.#running || this.#refuse()) return;
    this.conversation.addUser(text);
    this.#answer(this.conversation.addAnswer());
  }

  /** Resolves when nothing is being written any more. */
  async stop(): Promise<void> {
    this.#running?.run.stop();
    await this.#running?.ended;
  }

  regenerate(): void {
    const turn = this.conversation.lastTurn;
    if (this.#running || turn?.role !== 'assistant' || this.#refuse()) return;
    this.conversation.addVariant(turn);
    this.#answer(turn);
  }

  edit(id: number, text: string): void {
    this.#replacing(() => {
      if (this.#refuse()) return;
      const before = this.conversation.toJSON();
      // The message's own answer is replaced in any case; only more than that is worth a word.
      const removed = this.conversation.editUser(id, text);
      if (removed > 1) this.#offerUndo('The messages after it were removed.', before);
      this.#droppedIds.clear();
      this.#answer(this.conversation.addAnswer());
    });
  }

  editLast(): void {
    const last = this.conversation.turns.findLast(({ role }) => role === 'user');
    if (last && !this.#running) this.#parts.transcript.edit(last.id);
  }

  selectVariant(id: number, index: number): void {
    const turn = this.conversation.find(id);
    if (turn?.role !== 'assistant' || turn.variants[index] === undefined) return;
    turn.active = index;
    this.#parts.transcript.answer(turn).setNote('');
    this.#parts.changed();
  }

  newChat(): void {
    this.#replacing(() => {
      const before = this.conversation.toJSON();
      if (!this.conversation.isEmpty) this.#offerUndo('A new chat was started.', before);
      this.conversation.clear();
      this.#reset();
    });
  }

  /** Another model answers from now on. */
  modelChanged(notice: string): void {
    this.#droppedIds.clear();
    if (notice !== '' && !this.conversation.isEmpty) this.conversation.addNotice(notice);
    const model = this.#parts.model();
    if (model) this.#parts.status.setContext(0, model.engine.info.nCtx);
    this.#parts.status.setSpeed(0);
  }

  /** Whether no answer can be begun; then it says why. */
  #refuse(): boolean {
    const reason = this.#parts.blockedReason();
    if (reason !== '') this.#parts.toast.show(reason);
    return reason !== '';
  }

  #reset(): void {
    this.#droppedIds.clear();
    const model = this.#parts.model();
    if (model) this.#parts.status.setContext(0, model.engine.info.nCtx);
    this.#parts.changed();
  }

  #replacing(change: () => void): void {
    this.stop().then(change, change);
  }

  #offerUndo(text: string, before: Turn[]): void {
    const undo = async () => {
      await this.stop();
      this.conversation.restore(before);
      this.#reset();
    };
    this.#parts.toast.show(text, { label: 'Undo', run: () => void undo() });
  }

  #answer(turn: AnswerTurn): void {
    const model = this.#parts.model();
    if (!model) return;
    const mapped = this.conversation.messages(this.#parts.settings().systemPrompt, turn);
    const variant = activeVariant(turn);
    const scheduler = new FrameScheduler(() => this.#showProgress(turn, progress));
    let progress: RunProgress = { text: '', tokens: 0, tokensPerSecond: 0, prefill: undefined };
    const run = new AnswerRun({
      model,
      messages: mapped.map(({ message }) => message),
      options: effectiveSampling(this.#parts.settings(), model.kind === 'default'),
      onProgress: (now) => {
        progress = now;
        variant.text = now.text;
        scheduler.request();
      },
    });
    const meter = setInterval(() => this.#askContext(model), meterMs);
    const ended = this.#finish(run, turn, variant, mapped).finally(() => {
      clearInterval(meter);
      scheduler.cancel();
      this.#running = undefined;
      this.#parts.changed();
    });
    this.#running = { run, turn, ended };
    this.#begin(turn);
  }

  #begin(turn: AnswerTurn): void {
    const { announcer, follower, status, transcript } = this.#parts;
    announcer.startAnswer();
    announcer.status('Writing an answer');
    status.setSpeed(0);
    this.#parts.changed();
    const view = transcript.answer(turn);
    view.setNote('');
    view.setProblem(undefined);
    view.setWait('Reading the prompt');
    follower.toEnd();
  }

  #showProgress(turn: AnswerTurn, progress: RunProgress): void {
    const { announcer, follower, status, transcript } = this.#parts;
    const view = transcript.answer(turn);
    const { prefill, text } = progress;
    if (prefill && text === '') {
      const percent = Math.floor((100 * prefill.doneTokens) / Math.max(1, prefill.totalTokens));
      view.setWait(`Reading the prompt, ${percent} %`);
    }
    view.showText(true);
    announcer.answer(spokenText(text, false));
    status.setSpeed(progress.tokensPerSecond);
    follower.contentChanged();
  }

  #askContext(model: LoadedModel): void {
    model.engine.stats().then(
      ({ contextTokens, nCtx }) => {
        if (this.#parts.model() === model) this.#parts.status.setContext(contextTokens, nCtx);
      },
      () => {
        // The engine is gone; the run's own error says why.
      },
    );
  }

  async #finish(run: AnswerRun, turn: AnswerTurn, variant: Variant, mapped: MappedMessage[]) {
    try {
      const result = await run.finish();
      this.#record(turn, variant, result, mapped);
    } catch (error) {
      variant.finish = 'error';
      const modelName = this.#parts.model()?.name ?? '';
      const explanation = explain(error, { during: 'chat', modelName, hasFormerModel: true });
      const view = this.#parts.transcript.answer(turn);
      view.setWait('');
      view.setProblem(problemBox(explanation, (remedy) => this.#parts.act(remedy)));
    }
    this.#parts.announcer.endAnswer(spokenText(variant.text, true));
  }

  #record(turn: AnswerTurn, variant: Variant, result: GenerateResult, mapped: MappedMessage[]) {
    const { usage, timings } = result;
    variant.text = result.text;
    variant.finish = result.finishReason;
    variant.stats = {
      tokens: usage.completionTokens,
      tokensPerSecond: timings.decodeTokensPerSecond,
      promptTokens: usage.promptTokens,
      reusedTokens: usage.reusedTokens,
      promptMs: timings.prefillMs,
      seed: result.seed,
    };
    this.#parts.status.setContext(usage.contextTokens, usage.nCtx);
    this.#parts.status.setSpeed(timings.decodeTokensPerSecond);
    this.#markDropped(result.droppedMessages, mapped);
    const note = this.#dropDuplicate(turn, variant)
      ? 'The same answer again. A higher temperature or another seed (in the settings) gives others.'
      : endNote(result, this.#parts.settings());
    const view = this.#parts.transcript.answer(turn);
    view.setWait('');
    view.setNote(note);
    if (note !== '') this.#parts.announcer.status(note);
  }

  #markDropped(count: number, mapped: readonly MappedMessage[]): void {
    const before = this.#droppedIds.size;
    const dropped = mapped.filter(({ message }) => message.role !== 'system').slice(0, count);
    this.#droppedIds = new Set(dropped.flatMap(({ turnIds }) => turnIds));
    if (this.#droppedIds.size > before) {
      this.#parts.announcer.status('The context is full: the oldest messages are no longer sent.');
    }
  }

  /** Whether a new variant says what an earlier one did; it is then taken back. */
  #dropDuplicate(turn: AnswerTurn, variant: Variant): boolean {
    const index = turn.variants.findIndex(
      (other) => other !== variant && other.text === variant.text,
    );
    if (index < 0 || variant.finish === 'aborted') return false;
    turn.variants.splice(turn.variants.indexOf(variant), 1);
    turn.active = index;
    return true;
  }
}

function endNote({ finishReason, text, usage }: GenerateResult, { sampling }: Settings): string {
  if (finishReason === 'aborted')
    return text === '' ? 'Stopped before the first word.' : 'Stopped.';
  if (finishReason === 'stop') return text.trim() === '' ? 'The model ended without a word.' : '';
  const { maxTokens } = sampling;
  return maxTokens !== undefined && usage.completionTokens >= maxTokens
    ? `Ended at the longest answer that is set, ${maxTokens} tokens.`
    : `Ended because the context of ${usage.nCtx} tokens is full.`;
}
