// The section "Where a token looks": a text through the loaded model, every head's map, one of them enlarged.
import type { Captured, Engine, LoadProgress } from 'headlight-wasm';
import { byId, el } from '../../shared/dom.js';
import { messageOf } from '../../shared/errors.js';
import { formatBytes, plural } from '../../shared/format.js';
import type { ModelChoice } from '../../shared/model_source.js';
import { exportBar, type FigureData } from '../figure.js';
import { earlierStays } from '../loaded_model.js';
import type { UrlState } from '../url_state.js';
import { BigView } from './big_view.js';
import { type HeatColours, themeColours } from './heat.js';
import {
  type HeadId,
  type HeadMap,
  headName,
  LookData,
  parseHead,
  tokenLimit,
} from './look_data.js';
import { circuitName, LookModel } from './look_model.js';
import { mapFigure } from './map_picture.js';
import { MapsView } from './maps_view.js';
import { PointedRow } from './pointed_row.js';
import { RowView } from './row_view.js';
import { SurveyView } from './survey_view.js';

const defaultText = 'Once upon a time a small lamp stood in a window. The small lamp';
const circuitText = 'A B C A B';
const examples = [
  { label: 'A story', model: '', text: defaultText },
  { label: 'A B C A B', model: circuitName, text: circuitText },
  { label: 'A B C D E', model: circuitName, text: 'A B C D E' },
  {
    label: 'John and Mary',
    model: '',
    text: 'John gave Mary a book. Mary thanked',
  },
];
const nWritten = 24;
/** The one that copies. */
const circuitHead: HeadId = { layer: 1, head: 0 };

export class LookSection {
  readonly #state: UrlState;
  readonly #failed: (message: string) => void;
  readonly #model: LookModel;
  readonly #maps: MapsView;
  readonly #big: BigView;
  readonly #rowView: RowView;
  readonly #survey: SurveyView;
  readonly #root = byId('look', HTMLElement);
  readonly #text = byId('look-text', HTMLTextAreaElement);
  readonly #select = byId('look-model', HTMLSelectElement);
  readonly #status = byId('look-status', HTMLElement);
  readonly #write = byId('look-write', HTMLButtonElement);
  readonly #label = byId('look-label', HTMLButtonElement);
  #colours: HeatColours = themeColours();
  #data: LookData | undefined;
  /** Shown until a visitor chooses. */
  #first: HeadId = { layer: 0, head: 0 };
  #isNear = false;
  readonly #pointed = new PointedRow(
    (row) => this.#big.frame(row),
    (row) => this.#show(row),
  );
  #asked = 0;
  #writing: AbortController | undefined;

  constructor(state: UrlState, defaultChoice: ModelChoice, failed: (message: string) => void) {
    this.#state = state;
    this.#failed = failed;
    this.#model = new LookModel(defaultChoice, (progress) => this.#showProgress(progress));
    this.#maps = new MapsView(byId('look-maps', HTMLElement), (id) => this.#chooseHead(id));
    this.#big = new BigView(
      {
        map: byId('look-big', HTMLElement),
        strip: byId('look-strip', HTMLElement),
        note: byId('look-note', HTMLElement),
      },
      (row, isSettled) => this.#chooseRow(row, isSettled),
    );
    this.#rowView = new RowView();
    this.#survey = new SurveyView({
      choose: (name) => this.#chooseHead(parseHead(name) ?? { layer: 0, head: 0 }),
      failed,
    });
    this.#wire();
  }

  /** Loads the model when the section comes near: a visitor of another section does not pay for it. */
  start(): void {
    this.#readState();
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        observer.disconnect();
        this.#isNear = true;
        void this.look();
      },
      { rootMargin: '400px' },
    );
    observer.observe(this.#root);
  }

  useFile(choice: ModelChoice): void {
    this.#model.useFile(choice);
    this.#offerFile();
    this.#select.value = 'file';
    this.#changedModel();
  }

  /** The visitor's file among the models, if there is one. */
  #offerFile(): void {
    const { file } = this.#model;
    [...this.#select.options].find(({ value }) => value === 'file')?.remove();
    if (file !== undefined) this.#select.add(new Option(file.name, 'file'));
  }

  /** A file that cannot be loaded leaves the model before it: the visitor's last one, or the default one. */
  #goBack(error: unknown): boolean {
    const name = this.#model.file?.name ?? '';
    if (this.#select.value !== 'file' || !this.#model.goBack()) return false;
    this.#offerFile();
    this.#select.value = this.#model.file === undefined ? '' : 'file';
    this.#changedModel();
    this.#failed(earlierStays(name, error));
    return true;
  }

  /** The text through the model; every head's map. */
  async look(): Promise<void> {
    this.#writing?.abort();
    this.#survey.cancel();
    this.#asked += 1;
    const mine = this.#asked;
    this.#setBusy('reading');
    try {
      const engine = await this.#model.engine(this.#select.value);
      const { tokens, note } = await this.#tokensOf(engine);
      const pieces = await engine.tokenTexts(tokens);
      const { capture } = await engine.forward(tokens, { capture: { rows: 'all' } });
      if (mine !== this.#asked || capture === undefined) return;
      this.#data = new LookData(tokens, pieces);
      this.#data.add(capture);
      this.#first = this.#data.mostPointed() ?? this.#first;
      this.#drawAll();
      this.#setReady(
        `${plural(tokens.length, 'token')}, ${plural(this.#data.maps.size, 'head')} in ${plural(engine.info.model.layers.length, 'layer')}; module ${engine.info.runtime.module}${note}`,
      );
    } catch (error) {
      if (mine === this.#asked && !this.#goBack(error)) this.#fail(error);
    }
  }

  async #tokensOf(engine: Engine): Promise<{ tokens: number[]; note: string }> {
    const tokens = await engine.tokenize(this.#text.value, { addSpecial: true });
    if (tokens.length === 0) throw new Error('The text is empty: write something to look at.');
    const { layers } = engine.info.model;
    const nHeads = layers.reduce((sum, { nQHeads }) => sum + nQHeads, 0);
    const limit = tokenLimit(nHeads, engine.info.nCtx);
    const note =
      tokens.length > limit ? `; the text has ${tokens.length}, the first ${limit} are shown` : '';
    return { tokens: tokens.slice(0, limit), note };
  }

  /** The chosen head is followed while text is generated; then all heads are looked at again. */
  async #writeOn(): Promise<void> {
    const data = this.#data;
    const head = this.#head();
    if (data === undefined || head === undefined) return;
    const abort = new AbortController();
    this.#writing = abort;
    this.#setBusy('writing');
    try {
      const engine = await this.#model.engine(this.#select.value);
      const run = engine.complete(data.tokens, {
        temperature: 0,
        maxTokens: nWritten,
        signal: abort.signal,
        capture: { layers: [head.layer], heads: [head.head] },
      });
      for await (const { tokens, capture = [] } of run) {
        await this.#followed(engine, data, tokens, capture);
      }
      const { text } = await run.result();
      this.#text.value += text;
      this.#textChanged();
      if (!abort.signal.aborted) await this.look();
      else this.#setReady('stopped');
    } catch (error) {
      // Stopped for another model, it may find its engine gone.
      if (!abort.signal.aborted) this.#fail(error);
    } finally {
      this.#writing = undefined;
      this.#write.textContent = 'Write on';
    }
  }

  async #followed(
    engine: Engine,
    data: LookData,
    tokens: number[],
    capture: readonly Captured[],
  ): Promise<void> {
    for (const one of capture) data.add(one);
    data.tokens.push(...tokens);
    data.pieces.push(...(await engine.tokenTexts(tokens)));
    const map = this.#map();
    if (map === undefined) return;
    this.#big.draw(data, map, this.#colours);
    this.#chooseRow(map.rows.length - 1, true);
    this.#status.textContent = `following head ${headName(map.id)}: ${plural(data.tokens.length, 'token')}`;
  }

  async #labelHeads(): Promise<void> {
    if (this.#survey.isRunning) {
      this.#survey.cancel();
      return;
    }
    this.#label.textContent = 'Stop';
    try {
      const engine = await this.#model.engine(this.#select.value);
      if (await this.#survey.run(engine, this.#select.value === circuitName)) this.#drawMaps();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#label.textContent = 'Label every head';
    }
  }

  #wire(): void {
    byId('look-run', HTMLButtonElement).addEventListener('click', () => void this.look());
    this.#text.addEventListener('input', () => this.#textChanged());
    this.#text.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey) return;
      event.preventDefault();
      void this.look();
    });
    this.#select.addEventListener('change', () => this.#changedModel());
    this.#write.addEventListener('click', () => {
      if (this.#writing) this.#writing.abort();
      else void this.#writeOn();
    });
    this.#label.addEventListener('click', () => void this.#labelHeads());
    byId('look-pin', HTMLButtonElement).addEventListener('click', () => this.#togglePin());
    for (const { label, model, text } of examples) {
      const button = el('button', { type: 'button', class: 'button' }, label);
      button.addEventListener('click', () => {
        this.#select.value = model;
        this.#text.value = text;
        this.#changedModel();
      });
      byId('look-examples', HTMLElement).append(button);
    }
    byId('look-export', HTMLElement).append(
      exportBar('this head', () => this.#figure(), this.#failed),
    );
    new MutationObserver(() => {
      this.#colours = themeColours();
      if (this.#data) this.#drawAll();
    }).observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  }

  #readState(): void {
    const model = this.#state.oneOf('lm', [circuitName]);
    this.#select.value = model ?? '';
    this.#text.value = this.#state.get('lt') ?? (model === circuitName ? circuitText : defaultText);
  }

  #textChanged(): void {
    const model = this.#select.value;
    const isDefault = this.#text.value === (model === circuitName ? circuitText : defaultText);
    this.#state.set('lt', isDefault ? undefined : this.#text.value.slice(0, 2000));
  }

  #changedModel(): void {
    const model = this.#select.value;
    // A file cannot be part of an address.
    this.#state.set('lm', model === circuitName ? model : undefined);
    for (const name of ['lh', 'lr', 'lp']) this.#state.set(name, undefined);
    if (model === circuitName && /[^A-Z ]/.test(this.#text.value)) this.#text.value = circuitText;
    if (model !== circuitName && /^[A-Z ]*$/.test(this.#text.value)) this.#text.value = defaultText;
    this.#textChanged();
    this.#survey.clear();
    if (this.#isNear) void this.look();
  }

  #head(): HeadId | undefined {
    const isCircuit = this.#select.value === circuitName;
    const wanted = parseHead(this.#state.get('lh')) ?? (isCircuit ? circuitHead : this.#first);
    return this.#data?.nearest(wanted);
  }

  #map(): HeadMap | undefined {
    const id = this.#head();
    return id === undefined ? undefined : this.#data?.map(id);
  }

  #row(): number {
    const last = Math.max(0, (this.#map()?.rows.length ?? 1) - 1);
    return Math.round(this.#state.number('lr', 0, last) ?? last);
  }

  #chooseHead(id: HeadId): void {
    this.#state.set('lh', headName(id));
    this.#drawHead();
  }

  #chooseRow(row: number, isSettled: boolean): void {
    const last = (this.#map()?.rows.length ?? 1) - 1;
    if (isSettled) {
      // At once: the next key goes on from there.
      this.#state.set('lr', row === last ? undefined : row);
      this.#show(row);
      return;
    }
    this.#pointed.point(row, last + 1);
  }

  #show(row: number): void {
    this.#pointed.end();
    this.#big.mark(row, this.#colours);
    this.#showRow(row);
  }

  #togglePin(): void {
    const name = headName(this.#head() ?? { layer: 0, head: 0 });
    this.#state.set('lp', this.#state.get('lp') === undefined ? name : undefined);
    this.#drawHead();
  }

  #showRow(row: number): void {
    const map = this.#map();
    const pinned = parseHead(this.#state.get('lp'));
    if (this.#data && map)
      this.#rowView.show(this.#data, map, pinned && this.#data.map(pinned), row);
  }

  #drawAll(): void {
    this.#drawMaps();
    this.#drawHead();
  }

  #drawMaps(): void {
    if (!this.#data) return;
    this.#maps.draw(this.#data, this.#colours, (id) => this.#survey.captionOf(headName(id)));
    this.#maps.mark(headName(this.#head() ?? { layer: 0, head: 0 }));
  }

  #drawHead(): void {
    const map = this.#map();
    if (!this.#data || !map) return;
    const name = headName(map.id);
    const pinned = this.#state.get('lp');
    this.#maps.mark(name);
    byId('look-head-name', HTMLElement).textContent =
      `Layer ${map.id.layer}, head ${map.id.head}: ${this.#survey.captionOf(name)}`.replace(
        /: $/,
        '',
      );
    byId('look-pin', HTMLButtonElement).textContent =
      pinned === undefined ? 'Pin, to compare' : `Unpin ${pinned}`;
    this.#big.draw(this.#data, map, this.#colours);
    this.#show(this.#row());
  }

  #figure(): FigureData {
    const [data, map] = [this.#data, this.#map()];
    if (!data || !map) return { name: 'attention', columns: [], rows: [] };
    return mapFigure(data, map);
  }

  #showProgress({ phase, loadedBytes }: LoadProgress): void {
    if (phase !== 'ready') this.#status.textContent = `loading: ${formatBytes(loadedBytes)}`;
  }

  #setBusy(what: 'reading' | 'writing'): void {
    this.#root.dataset.look = what;
    if (what === 'writing') this.#write.textContent = 'Stop';
    this.#status.textContent = `${what} …`;
  }

  #setReady(text: string): void {
    this.#root.dataset.look = 'ready';
    this.#status.textContent = text;
  }

  #fail(error: unknown): void {
    const message = messageOf(error);
    this.#setReady(message);
    this.#failed(message);
  }
}
