// What follows a pointer that moves over a large map, so that every frame of the screen is met: the frame around the row at
// once, the text and the bars when the pointer rests, where they take longer than a frame.

/** A row of so many tokens is shown anew within a frame. */
const followsAtOnce = 128;
/** Shorter than people notice, longer than a frame. */
const restMs = 50;

export class PointedRow {
  readonly #frame: (row: number) => void;
  readonly #show: (row: number) => void;
  #row: number | undefined;
  #nRows = 0;
  #resting: ReturnType<typeof setTimeout> | undefined;

  constructor(frame: (row: number) => void, show: (row: number) => void) {
    this.#frame = frame;
    this.#show = show;
  }

  /** Pointers move more often than screens are drawn: once a frame is enough. */
  point(row: number, nRows: number): void {
    if (this.#row === undefined) requestAnimationFrame(() => this.#draw());
    this.#row = row;
    this.#nRows = nRows;
  }

  /** What was pointed at is not shown any more. */
  end(): void {
    clearTimeout(this.#resting);
    this.#row = undefined;
  }

  #draw(): void {
    const row = this.#row;
    if (row === undefined) return;
    this.end();
    this.#frame(row);
    if (this.#nRows <= followsAtOnce) this.#show(row);
    else this.#resting = setTimeout(() => this.#show(row), restMs);
  }
}
