// Matrices on the page: one whose numbers can be pointed at, by mouse or by arrow keys (one tab stop a matrix), and one whose
// numbers can be edited.
import { arrowStep } from '../../shared/arrow_keys.js';
import { el } from '../../shared/dom.js';
import { type Matrix, shown } from './arithmetic.js';

export interface MatrixLabels {
  /** "Q": the table's name. */
  name: string;
  rows?: readonly string[];
  columns?: readonly string[];
}

function frame({ name, columns, rows }: MatrixLabels, body: HTMLElement): HTMLTableElement {
  const head = columns
    ? el(
        'thead',
        {},
        el(
          'tr',
          {},
          rows ? el('td') : null,
          ...columns.map((text) => el('th', { scope: 'col' }, text)),
        ),
      )
    : null;
  return el('table', { class: 'matrix' }, el('caption', {}, name), head, body);
}

let lastPointer = '';

/** False when the page scrolled under a pointer at rest: the focus, which made it scroll, keeps the word. */
function hasMoved({ screenX, screenY }: PointerEvent): boolean {
  const now = `${screenX},${screenY}`;
  const moved = now !== lastPointer;
  lastPointer = now;
  return moved;
}

export class MatrixView {
  readonly root: HTMLTableElement;
  #cells: HTMLTableCellElement[][];
  #digits: number;

  /** @param point called when a number gets the pointer or the focus */
  constructor(
    labels: MatrixLabels & { nRows: number; nColumns: number; digits?: number; testid: string },
    point: (row: number, column: number) => void,
  ) {
    const { nRows, nColumns, digits = 4, testid, rows } = labels;
    this.#digits = digits;
    this.#cells = Array.from({ length: nRows }, (_, i) =>
      Array.from({ length: nColumns }, (_, j) => {
        const cell = el('td', { tabindex: i + j === 0 ? 0 : -1, 'data-cell': `${i},${j}` });
        for (const event of ['focus', 'click']) cell.addEventListener(event, () => point(i, j));
        cell.addEventListener('pointerenter', (event) => {
          if (hasMoved(event)) point(i, j);
        });
        cell.addEventListener('keydown', (event) => this.#move(event, i, j));
        return cell;
      }),
    );
    const lines = this.#cells.map((cells, i) =>
      el('tr', {}, rows ? el('th', { scope: 'row' }, rows[i] ?? '') : null, ...cells),
    );
    this.root = frame(labels, el('tbody', {}, ...lines));
    this.root.dataset.testid = testid;
  }

  show(values: Matrix): void {
    this.#each((cell, i, j) => {
      const value = values[i]?.[j] ?? 0;
      cell.textContent = shown(value, this.#digits);
      cell.classList.toggle('zero', value === 0 || value === Number.NEGATIVE_INFINITY);
    });
  }

  /** Marks what another number is made of. */
  mark(isMarked: (row: number, column: number) => boolean): void {
    this.#each((cell, i, j) => cell.classList.toggle('source', isMarked(i, j)));
  }

  #each(visit: (cell: HTMLTableCellElement, row: number, column: number) => void): void {
    for (const [i, row] of this.#cells.entries())
      for (const [j, cell] of row.entries()) visit(cell, i, j);
  }

  #move(event: KeyboardEvent, row: number, column: number): void {
    const step = arrowStep(event);
    const next = step && this.#cells[row + step[0]]?.[column + step[1]];
    if (!next) return;
    event.preventDefault();
    this.#each((cell) => {
      cell.tabIndex = -1;
    });
    next.tabIndex = 0;
    next.focus();
  }
}

const largestInput = 1e6;

/** A number that someone is typing, or undefined while it is none. */
export function readNumber(text: string): number | undefined {
  const value = text.trim() === '' ? Number.NaN : Number(text.replace('−', '-').replace(',', '.'));
  return Math.abs(value) <= largestInput ? value : undefined;
}

export class MatrixInput {
  readonly root: HTMLTableElement;
  #inputs: HTMLInputElement[][];
  #values: number[][] = [];

  /** @param changed called with all values when one of them was edited into a number */
  constructor(
    labels: MatrixLabels & { values: Matrix; testid: string },
    changed: (values: number[][]) => void,
  ) {
    const { values, testid, rows, name } = labels;
    this.#inputs = values.map((row, i) =>
      row.map((_, j) => {
        const input = el('input', {
          type: 'text',
          inputmode: 'decimal',
          autocomplete: 'off',
          'aria-label': `${name}, row ${rows?.[i] ?? i}, column ${j}`,
          'data-testid': `${testid}-${i}-${j}`,
        });
        input.addEventListener('input', () => {
          const value = readNumber(input.value);
          input.toggleAttribute('aria-invalid', value === undefined);
          const line = this.#values[i];
          if (value === undefined || !line) return;
          line[j] = value;
          changed(this.#values.map((each) => [...each]));
        });
        input.addEventListener('focus', () => input.select());
        // A field left with no number in it shows the number that counts.
        input.addEventListener('blur', () => this.show(this.#values));
        return input;
      }),
    );
    const lines = this.#inputs.map((cells, i) =>
      el(
        'tr',
        {},
        rows ? el('th', { scope: 'row' }, rows[i] ?? '') : null,
        ...cells.map((input) => el('td', {}, input)),
      ),
    );
    this.root = frame(labels, el('tbody', {}, ...lines));
    this.root.classList.add('editable');
    this.root.dataset.testid = testid;
    this.show(values);
  }

  show(values: Matrix): void {
    this.#values = values.map((row) => [...row]);
    for (const [i, row] of this.#inputs.entries()) {
      for (const [j, input] of row.entries()) {
        const text = String(values[i]?.[j] ?? 0);
        if (document.activeElement !== input) {
          input.value = text;
          input.removeAttribute('aria-invalid');
        }
      }
    }
  }

  mark(isMarked: (row: number, column: number) => boolean): void {
    for (const [i, row] of this.#inputs.entries()) {
      for (const [j, input] of row.entries()) {
        input.parentElement?.classList.toggle('source', isMarked(i, j));
      }
    }
  }
}
