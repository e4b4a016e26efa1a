// Bytes in the units of the place: files in MB (1e6), caches in KiB, MiB and GiB (1024-based), as printed everywhere.

/** 71.0 -> "71.0 MB"; three digits and more without decimals. */
export function megabytes(bytes: number): string {
  if (bytes >= 1e9) return `${trimmed(bytes / 1e9)} GB`;
  if (bytes < 1e6) return `${trimmed(bytes / 1e3)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

const binaryUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** 327680 -> "320 KiB"; 335544320 -> "320 MiB"; four digits at most, none of them cut off silently. */
export function binaryBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < binaryUnits.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${trimmed(value)} ${binaryUnits[unit] ?? 'B'}`;
}

/** Up to four significant digits, without zeros at the end: 0.3125, 2.5, 320. */
export function trimmed(value: number): string {
  const rounded = Number(value.toPrecision(4));
  return rounded.toLocaleString('en-GB', { maximumFractionDigits: 4 });
}

/** 12345678 -> "12.35 million". */
export function largeNumber(value: number): string {
  const steps = [
    [1e12, 'trillion'],
    [1e9, 'billion'],
    [1e6, 'million'],
    [1e3, 'thousand'],
  ] as const;
  for (const [size, name] of steps) if (value >= size) return `${trimmed(value / size)} ${name}`;
  return trimmed(value);
}
