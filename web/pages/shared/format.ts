// Numbers as the pages print them. MB is 1e6 bytes and MiB 1024-based everywhere in Headlight; pages print MB.

const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** 3042400 -> "3.0 MB". */
export function formatBytes(bytes: number): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  while (value >= 999.5 && unit < byteUnits.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${byteUnits[unit] ?? 'B'}`;
}

/** 2810304 -> "2.8 M"; for parameter counts. */
export function formatCount(count: number): string {
  const steps = [
    [1e12, 'T'],
    [1e9, 'B'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const;
  for (const [size, suffix] of steps) {
    if (count >= size) return `${(count / size).toFixed(count / size >= 100 ? 0 : 1)} ${suffix}`;
  }
  return String(count);
}

export function formatInteger(value: number): string {
  return Math.round(value).toLocaleString('en-GB');
}

/** Tokens per second: one decimal below 10, where it matters. */
export function formatRate(perSecond: number): string {
  if (!Number.isFinite(perSecond) || perSecond <= 0) return '–';
  return perSecond < 10 ? perSecond.toFixed(1) : formatInteger(perSecond);
}

export function formatMilliseconds(ms: number): string {
  if (ms < 1) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

/** "1 message", "2 messages". */
export function plural(count: number, singular: string, many = `${singular}s`): string {
  return `${formatInteger(count)} ${count === 1 ? singular : many}`;
}
