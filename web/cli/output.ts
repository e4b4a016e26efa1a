// How results and progress look: JSON for programs, a few lines for people.
import process from 'node:process';
import type { ErrorDetails, LoadProgress } from 'headlight-wasm';

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

export interface Failure {
  code: string;
  message: string;
  details: ErrorDetails;
}

/** Every error of the package and of the command line has these; anything else is a fault of the program itself. */
export function asFailure(thrown: unknown): Failure {
  const { code, message, details } = thrown as Partial<Failure>;
  if (typeof code === 'string' && typeof message === 'string')
    return { code, message, details: details ?? {} };
  return { code: 'Internal', message: String((thrown as Error)?.stack ?? thrown), details: {} };
}

/** KiB, MiB and GiB are 1024-based. */
export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}

/** Cells in columns, the first row being the titles. */
export function alignedTable(rows: readonly (readonly string[])[], rightFrom?: number): string {
  const widths = (rows[0] ?? []).map((_, i) =>
    Math.max(...rows.map((cells) => cells[i]?.length ?? 0)),
  );
  const cell = (text: string, i: number) =>
    i < (rightFrom ?? widths.length) ? text.padEnd(widths[i] ?? 0) : text.padStart(widths[i] ?? 0);
  return `${rows.map((cells) => cells.map(cell).join('  ').trimEnd()).join('\n')}\n`;
}

const BAR_WIDTH = 30;

/** A bar on stderr while a model loads, where a person looks at it. */
export function progressBar(quiet: boolean): ((progress: LoadProgress) => void) | undefined {
  if (quiet || !process.stderr.isTTY) return undefined;
  return ({ phase, loadedBytes, totalBytes }) => {
    const clear = '\r\u001b[K';
    if (phase === 'ready') {
      process.stderr.write(clear);
      return;
    }
    const share = totalBytes === undefined || totalBytes === 0 ? 0 : loadedBytes / totalBytes;
    const bar = '#'.repeat(Math.round(share * BAR_WIDTH)).padEnd(BAR_WIDTH, '.');
    const of = totalBytes === undefined ? '' : ` of ${bytesText(totalBytes)}`;
    process.stderr.write(`${clear}[${bar}] ${bytesText(loadedBytes)}${of} (${phase})`);
  };
}
