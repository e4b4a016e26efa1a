// A button that starts something long and, while that runs, stops it. Being stopped is no failure.
import { isAborted, messageOf } from '../shared/errors.js';

export interface StopButtonOptions {
  button: HTMLButtonElement;
  status: HTMLElement;
  /** What the button says afterwards. */
  label: string;
  run: (signal: AbortSignal) => Promise<void>;
  failed: (message: string) => void;
}

export class StopButton {
  #options: StopButtonOptions;
  #running: AbortController | undefined;

  constructor(options: StopButtonOptions) {
    this.#options = options;
    options.button.addEventListener('click', () => {
      if (this.#running) this.stop();
      else void this.start();
    });
  }

  stop(): void {
    this.#running?.abort();
  }

  /** Nothing new is started while it runs. */
  async start(): Promise<void> {
    if (this.#running) return;
    const { button, status, label, run, failed } = this.#options;
    const controller = new AbortController();
    this.#running = controller;
    button.textContent = 'Stop';
    try {
      await run(controller.signal);
    } catch (error) {
      // Stopped for another model, it may find its engine gone.
      const isStopped = controller.signal.aborted || isAborted(error);
      status.textContent = isStopped ? 'Stopped.' : '';
      if (!isStopped) failed(messageOf(error));
    } finally {
      this.#running = undefined;
      button.textContent = label;
    }
  }
}
