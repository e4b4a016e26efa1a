// Walking through a grid by the arrow keys.

const STEPS: Readonly<Record<string, readonly [rows: number, columns: number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

/** Rows and columns that the key goes; undefined for any other key. */
export function arrowStep({
  key,
}: KeyboardEvent): readonly [rows: number, columns: number] | undefined {
  return STEPS[key];
}
