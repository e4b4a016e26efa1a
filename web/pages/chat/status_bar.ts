// The line under the message field: how full the context is, how fast the model writes, and which module runs it.
import type { RuntimeInfo } from 'headlight-wasm';
import { byId, el } from '../shared/dom.js';
import { formatInteger, formatRate, plural } from '../shared/format.js';

// From here on the meter warns: the next turns will push the oldest ones out.
const nearlyFull = 0.85;

export class StatusBar {
  #context = byId('context', HTMLElement);
  #meter = byId('context-meter', HTMLMeterElement);
  #bar = byId('context-bar', HTMLElement);
  #fill = byId('context-fill', HTMLElement);
  #text = byId('context-text', HTMLElement);
  #speed = byId('speed', HTMLElement);
  #runtime = byId('runtime-button', HTMLButtonElement);

  setContext(tokens: number, nCtx: number): void {
    this.#context.hidden = false;
    this.#meter.max = nCtx;
    this.#meter.value = tokens;
    this.#meter.setAttribute('aria-valuetext', `${tokens} of ${nCtx} tokens`);
    // The bar that is seen: <meter> itself cannot be styled alike in all browsers.
    const share = nCtx > 0 ? Math.min(1, tokens / nCtx) : 0;
    this.#fill.style.width = `${(100 * share).toFixed(1)}%`;
    this.#bar.classList.toggle('is-nearly-full', share >= nearlyFull);
    const unit = el('span', { class: 'unit' }, ' tokens');
    this.#text.replaceChildren(`${formatInteger(tokens)} / ${formatInteger(nCtx)}`, unit);
  }

  /** 0: unknown. */
  setSpeed(tokensPerSecond: number): void {
    this.#speed.textContent = tokensPerSecond > 0 ? `${formatRate(tokensPerSecond)} tokens/s` : '';
  }

  setRuntime({ module, threads }: RuntimeInfo): void {
    this.#runtime.hidden = false;
    this.#runtime.textContent = `${module}, ${plural(threads, 'thread')}`;
    this.#runtime.title = 'What runs, and why';
  }

  clear(): void {
    this.#context.hidden = true;
    this.#runtime.hidden = true;
    this.setSpeed(0);
  }
}
