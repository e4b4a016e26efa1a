// What repeated measurements say, and how far one result is from another.

export interface Spread {
  median: number;
  low: number;
  high: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return { median: middle, low: sorted[0] ?? 0, high: sorted.at(-1) ?? 0 };
}

/** RMS of the differences over that of the exact values. */
export function relativeRms(values: Float32Array, exact: Float32Array): number {
  let [difference, size] = [0, 0];
  for (const [i, value] of exact.entries()) {
    difference += ((values[i] ?? 0) - value) ** 2;
    size += value ** 2;
  }
  return size === 0 ? 0 : Math.sqrt(difference / size);
}
