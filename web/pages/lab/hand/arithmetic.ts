// Small matrices in double precision, and the arithmetic of each number as people write it. What the kernels compute is held
// against this. No DOM.

export type Matrix = readonly (readonly number[])[];

export function matmul(a: Matrix, b: Matrix): number[][] {
  return a.map((row) =>
    (b[0] ?? []).map((_, j) =>
      dot(
        row,
        b.map((line) => line[j] ?? 0),
      ),
    ),
  );
}

export function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, x, i) => sum + x * (b[i] ?? 0), 0);
}

export function transpose(a: Matrix): number[][] {
  return (a[0] ?? []).map((_, j) => a.map((row) => row[j] ?? 0));
}

/** Rows of −∞ alone give zeros, as the kernels do. */
export function softmax(row: readonly number[]): number[] {
  const max = Math.max(...row);
  if (max === Number.NEGATIVE_INFINITY) return row.map(() => 0);
  const exps = row.map((z) => Math.exp(z - max));
  const sum = exps.reduce((a, b) => a + b, 0);
  return exps.map((e) => e / sum);
}

/** "2", "4.24", "−∞": integers without decimals, else `digits` of them. */
export function shown(value: number, digits = 4): string {
  if (value === Number.NEGATIVE_INFINITY) return '−∞';
  if (value === Number.POSITIVE_INFINITY) return '∞';
  const isTiny = value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits;
  const text = Number.isInteger(value)
    ? String(value)
    : isTiny || Math.abs(value) >= 1e7
      ? value.toExponential(1)
      : value.toFixed(digits);
  return text.replaceAll('-', '−');
}

/** As shown(), without zeros at the end: for sentences. */
export function brief(value: number): string {
  const text = shown(value);
  return /[.]\d+$/.test(text) ? text.replace(/0+$/, '') : text;
}

/** Short: for terms of a sum. */
function term(value: number): string {
  const rounded = Math.abs(value) >= 1e4 ? value.toPrecision(4) : String(Number(value.toFixed(4)));
  return value < 0 ? `(${rounded.replaceAll('-', '−')})` : rounded;
}

/** "1·1 + 0·0 + 1·1 + 0·0 = 2". */
export function dotText(a: readonly number[], b: readonly number[]): string {
  const terms = a.map((x, i) => `${term(x)}·${term(b[i] ?? 0)}`);
  return `${terms.join(' + ')} = ${shown(dot(a, b))}`;
}

/** Above this exp() is no number that anyone reads. */
const largestPlainExponent = 20;

/** "exp(2.83) / (16.92 + 8.342 + 16.92) = 16.92 / 42.18 = 0.4011"; `others`: scores in the sum that are no column's. */
export function softmaxText(
  row: readonly number[],
  column: number,
  others: readonly number[] = [],
): string {
  const z = row[column] ?? Number.NEGATIVE_INFINITY;
  if (z === Number.NEGATIVE_INFINITY) return 'exp(−∞) = 0: exactly zero';
  const all = [...row, ...others];
  const max = Math.max(...all);
  const shift = max > largestPlainExponent || max < -largestPlainExponent ? max : 0;
  const exps = all.map((value) => Math.exp(value - shift));
  const sum = exps.reduce((a, b) => a + b, 0);
  const short = (value: number) => String(Number(value.toPrecision(4)));
  const inside = shift === 0 ? shown(z, 2) : `${shown(z, 2)} − ${shown(shift, 2)}`;
  const e = exps[column] ?? 0;
  const terms = exps.filter((value) => value > 0).map(short);
  return `exp(${inside}) / (${terms.join(' + ')}) = ${short(e)} / ${short(sum)} = ${shown(e / sum)}`;
}

export function flat(a: Matrix): Float32Array {
  return Float32Array.from(a.flat());
}

/** [rows, columns] out of what a kernel gave. */
export function rowsOf(values: Float32Array, columns: number): number[][] {
  const rows: number[][] = [];
  for (let i = 0; i < values.length; i += columns) rows.push([...values.subarray(i, i + columns)]);
  return rows;
}

export function largestDifference(a: Matrix, b: Matrix): number {
  return Math.max(0, ...a.flatMap((row, i) => row.map((x, j) => Math.abs(x - (b[i]?.[j] ?? 0)))));
}
