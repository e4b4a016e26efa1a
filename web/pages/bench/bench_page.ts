// The page as a whole: what to measure, the run with its progress, and what came out.
import { copyText } from '../shared/clipboard.js';
import { byId } from '../shared/dom.js';
import { download } from '../shared/download.js';
import { acceptDrops } from '../shared/drop.js';
import { explain, isAborted } from '../shared/errors.js';
import { choiceFromFiles, defaultChoice, type ModelChoice } from '../shared/model_source.js';
import { Toast } from '../shared/toast.js';
import { type BenchResult, measure, type Step } from './measure.js';
import { asText } from './report.js';
import { clearProblem, showProblem, showResults } from './results.js';

type PageState = 'idle' | 'running' | 'done' | 'failed';

const stepTexts: Record<Step['name'], string> = {
  load: 'Loading the model',
  answer: 'Checking a known answer',
  limits: 'Measuring what this machine allows',
  round: 'Round',
};
const nRounds = 3;

export class BenchPage {
  #toast = new Toast(byId('toast', HTMLElement));
  #choice: ModelChoice = defaultChoice(new URL('..', location.href).href);
  #controller: AbortController | undefined;
  #result: BenchResult | undefined;
  #run = byId('run', HTMLButtonElement);
  #stop = byId('stop', HTMLButtonElement);
  #files = byId('model-files', HTMLInputElement);

  start(): void {
    this.#run.addEventListener('click', () => void this.#measure());
    this.#stop.addEventListener('click', () => this.#controller?.abort());
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.#controller?.abort();
    });
    this.#files.addEventListener('change', () => {
      this.#choose([...(this.#files.files ?? [])]);
      this.#files.value = '';
    });
    byId('use-default', HTMLButtonElement).addEventListener('click', () => {
      this.#choice = defaultChoice(new URL('..', location.href).href);
      this.#showChoice();
    });
    byId('copy', HTMLButtonElement).addEventListener('click', () => void this.#copy());
    byId('save', HTMLButtonElement).addEventListener('click', () => this.#save());
    acceptDrops(byId('drop-target', HTMLElement), (files) => this.#choose(files));
    this.#showThreads();
    this.#showChoice();
    this.#setState('idle');
  }

  /** Threads need shared memory: without it the choice is shown, but there is nothing to choose. */
  #showThreads(): void {
    const select = byId('threads', HTMLSelectElement);
    if (crossOriginIsolated) {
      for (let n = 1; n <= Math.min(navigator.hardwareConcurrency, 16); n++) {
        select.add(new Option(String(n), String(n)));
      }
    } else {
      select.options[0]?.replaceWith(new Option('1', ''));
      select.disabled = true;
      byId('threads-hint', HTMLElement).hidden = false;
    }
  }

  #choose(files: File[]): void {
    if (this.#controller) {
      this.#toast.show('A measurement is under way. Stop it first.');
      return;
    }
    const checked = choiceFromFiles(files);
    if (!checked.ok) {
      this.#toast.show(checked.message);
      return;
    }
    this.#choice = checked.value;
    this.#showChoice();
  }

  #showChoice(): void {
    byId('model-name', HTMLElement).textContent = this.#choice.name;
    byId('use-default', HTMLButtonElement).hidden = this.#choice.kind === 'default';
  }

  async #measure(): Promise<void> {
    if (this.#controller) return;
    const controller = new AbortController();
    this.#controller = controller;
    clearProblem();
    this.#setState('running');
    const threads = Number(byId('threads', HTMLSelectElement).value) || undefined;
    try {
      this.#result = await measure({
        choice: this.#choice,
        module: byId('module', HTMLSelectElement).value as 'auto' | 'simd' | 'relaxed',
        threads,
        signal: controller.signal,
        onStep: (step) => this.#showStep(step),
      });
      this.#setState('done');
      showResults(this.#result);
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#controller = undefined;
    }
  }

  #failed(error: unknown): void {
    if (isAborted(error)) {
      this.#setState(this.#result ? 'done' : 'idle');
      this.#toast.show('Stopped. Nothing was measured.');
      return;
    }
    this.#setState('failed');
    showProblem(
      explain(error, {
        during: 'load',
        modelName: this.#choice.name,
        hasFormerModel: false,
        source: this.#choice.kind,
      }),
    );
  }

  #showStep({ name, round, done }: Step): void {
    const text = name === 'round' ? `${stepTexts.round} ${round} of ${nRounds}` : stepTexts[name];
    const step = byId('step', HTMLElement);
    // The live region speaks on change: not with every tick of the bar.
    if (step.textContent !== text) step.textContent = text;
    byId('progress', HTMLProgressElement).value = done;
  }

  #setState(state: PageState): void {
    const running = state === 'running';
    document.body.dataset.state = state;
    byId('results', HTMLElement).hidden = this.#result === undefined || running;
    byId('explanation', HTMLElement).hidden = this.#result !== undefined;
    byId('running', HTMLElement).hidden = !running;
    const hadFocus = document.activeElement === (running ? this.#run : this.#stop);
    this.#run.hidden = running;
    this.#stop.hidden = !running;
    if (hadFocus) (running ? this.#stop : this.#run).focus();
    byId('choices', HTMLFieldSetElement).disabled = running;
    this.#run.lastChild?.replaceWith(this.#result ? 'Run again' : 'Run');
  }

  async #copy(): Promise<void> {
    if (!this.#result) return;
    const copied = await copyText(asText(this.#result));
    this.#toast.show(copied ? 'Copied' : 'The browser refused to copy. Select the text instead.');
  }

  #save(): void {
    if (!this.#result) return;
    const { date } = this.#result;
    const stamp = date.toISOString().slice(0, 16).replace('T', '-').replace(':', '');
    download(
      `${JSON.stringify(this.#result, null, 2)}\n`,
      `headlight-bench-${stamp}.json`,
      'application/json',
    );
  }
}
