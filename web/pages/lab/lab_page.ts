// The page as a whole: its sections, the model that they share, and what goes wrong.
import { inspectModel } from 'headlight-wasm';
import { copyText } from '../shared/clipboard.js';
import { byId } from '../shared/dom.js';
import { acceptDrops } from '../shared/drop.js';
import { choiceFromFiles, defaultChoice } from '../shared/model_source.js';
import { Toast } from '../shared/toast.js';
import { BytesSection } from './bytes/bytes_section.js';
import { ChangeSection } from './change/change_section.js';
import { ToyView } from './change/toy_view.js';
import { HandSection } from './hand/hand_section.js';
import { Kernels } from './kernels.js';
import { earlierStays, LoadedModel } from './loaded_model.js';
import { LookSection } from './look/look_section.js';
import { PhasesSection } from './phases/phases_section.js';
import { PositionsSection } from './positions/positions_section.js';
import { RunSection } from './run/run_section.js';
import { pageState } from './url_state.js';
import { WeightsSection } from './weights/weights_section.js';

const readingMs = 5000;

export class LabPage {
  #toast = new Toast(byId('toast', HTMLElement));
  #state = pageState();
  #failures: { message: string; at: number }[] = [];
  #failed = (message: string) => this.#showFailure(message);
  #kernels = new Kernels();
  #hand = new HandSection(this.#state, this.#kernels, this.#failed);
  #positions = new PositionsSection(this.#state, this.#kernels, this.#failed);
  #default = defaultChoice(new URL('..', location.href).href);
  #status = byId('model-status', HTMLElement);
  #model = new LoadedModel(this.#default, {
    progress: (text) => {
      this.#status.textContent = text;
    },
    wentBack: (message) => this.#refuse(message),
  });
  #opened = 0;
  #look = new LookSection(this.#state, this.#default, this.#failed);
  #run = new RunSection(this.#failed);
  #bytes = new BytesSection(this.#state, this.#kernels, this.#failed, this.#run);
  #phases = new PhasesSection(this.#state, this.#model, this.#failed);
  #change = new ChangeSection(this.#state, this.#model, this.#failed);
  #ranks = new WeightsSection(this.#state, this.#model, this.#failed);

  async start(): Promise<void> {
    for (const id of ['model-files', 'look-files']) {
      const files = byId(id, HTMLInputElement);
      files.addEventListener('change', () => {
        void this.#open([...(files.files ?? [])]);
        files.value = '';
      });
    }
    acceptDrops(byId('drop-target', HTMLElement), (dropped) => void this.#open(dropped));
    byId('share', HTMLButtonElement).addEventListener('click', () => void this.#share());
    await this.#hand.start();
    await this.#positions.start();
    await this.#bytes.start(this.#default);
    new ToyView(this.#kernels, this.#failed);
    for (const section of [this.#look, this.#phases, this.#change, this.#ranks]) section.start();
    document.body.dataset.state = 'ready';
  }

  async #share(): Promise<void> {
    this.#state.flush();
    const copied = await copyText(location.href);
    this.#toast.show(copied ? 'The link is copied' : `The link: ${location.href}`);
  }

  /** Several sections may say what is wrong with one file: none hides another's words before they are read. */
  #showFailure(message: string): void {
    const at = performance.now();
    this.#failures = this.#failures.filter(
      (earlier) => at - earlier.at < readingMs && earlier.message !== message,
    );
    this.#failures.push({ message, at });
    this.#toast.show(this.#failures.map((failure) => failure.message).join(' · '));
  }

  /** Where a message stays that a visitor may read later, too. */
  #refuse(message: string): void {
    this.#status.textContent = message;
    this.#showFailure(message);
  }

  /** The header is read first: for a file that is no model no section gives up what it shows. */
  async #open(files: File[]): Promise<void> {
    this.#opened += 1;
    const mine = this.#opened;
    const checked = choiceFromFiles(files);
    if (!checked.ok) {
      this.#toast.show(checked.message);
      return;
    }
    try {
      await inspectModel(checked.value.source);
    } catch (error) {
      if (mine === this.#opened) this.#refuse(earlierStays(checked.value.name, error));
      return;
    }
    if (mine !== this.#opened) return;
    this.#status.textContent = '';
    this.#look.useFile(checked.value);
    void this.#bytes.load(checked.value);
    this.#model.choose(checked.value);
  }
}
