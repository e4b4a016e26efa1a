// `attend`: runs a file of Attention cases, one JSON object a line, through a kernel, and says which come out as expected.
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { HeadLab, type LabAttendOptions } from 'headlight-wasm/lab';
import { BadCase, type CaseJson, callsOf, checkedCase, Skipped } from './attend_case.js';
import { printJson } from './output.js';
import { type Call, numberOf, stringOf, UsageError } from './usage.js';

/** Of any element. An f16 case computes in f16 throughout, the kernels only keep keys and values so. */
const TOLERANCE = { f32: 1e-5, f16: 1e-2 };

interface Outcome {
  name: string;
  ok?: boolean;
  maxAbsError?: number;
  kernel?: string;
  skipped?: string;
}

function readCases(file: string): CaseJson[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`attend ${file}: ${(error as Error).message}`);
  }
  return text.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return [];
    const where = `attend ${file}, line ${i + 1}`;
    try {
      return [checkedCase(JSON.parse(line))];
    } catch (error) {
      const { message } = error as Error;
      throw new UsageError(
        error instanceof BadCase ? `${where}: ${message}` : `${where} is not JSON: ${message}`,
      );
    }
  });
}

/** Equal infinities differ by nothing; NaN differs from everything. */
function maxDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) return Number.POSITIVE_INFINITY;
  let max = 0;
  for (let i = 0; i < a.length; i++) {
    if (a[i] === b[i]) continue;
    const difference = Math.abs((a[i] ?? 0) - (b[i] ?? 0));
    if (!(difference <= max))
      max = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
  }
  return max;
}

async function runCase(
  lab: HeadLab,
  test: CaseJson,
  kernel: LabAttendOptions['kernel'],
): Promise<Outcome> {
  const { name } = test;
  try {
    let maxAbsError = 0;
    let ran: string = kernel ?? 'auto';
    for (const { options, expected, expectedScores } of callsOf(test, kernel)) {
      const { out, captured, kernel: used } = await lab.attend(options);
      ran = used;
      maxAbsError = Math.max(maxAbsError, maxDifference(out, expected));
      if (expectedScores === undefined) continue;
      maxAbsError = Math.max(maxAbsError, maxDifference(captured?.data ?? [], expectedScores));
    }
    const ok = maxAbsError <= TOLERANCE[test.inputs.Q?.type === 'f16' ? 'f16' : 'f32'];
    return { name, ok, maxAbsError, kernel: ran };
  } catch (error) {
    if (error instanceof Skipped) return { name, skipped: error.message };
    throw error;
  }
}

function line({ name, ok, maxAbsError, kernel, skipped }: Outcome): string {
  if (skipped !== undefined) return `skipped  ${name}: ${skipped}\n`;
  return `${ok === true ? 'ok      ' : 'FAILED  '} ${name}  max |error| ${(maxAbsError ?? 0).toExponential(1)}  ${kernel}\n`;
}

export async function attend({ model: file, values }: Call, json: boolean): Promise<void> {
  const cases = readCases(file);
  const threads = numberOf(values, 'threads');
  const module = stringOf(values, 'module');
  const kernel = stringOf(values, 'kernel');
  // The package checks the values.
  const lab = await HeadLab.start({
    ...(threads === undefined ? {} : { threads }),
    ...(module === undefined ? {} : { module: module as 'auto' }),
  });
  const outcomes: Outcome[] = [];
  try {
    for (const test of cases) {
      const outcome = await runCase(lab, test, kernel as LabAttendOptions['kernel']);
      outcomes.push(outcome);
      if (json) printJson(outcome);
      else process.stdout.write(line(outcome));
    }
  } finally {
    await lab.dispose();
  }
  const nFailed = outcomes.filter(({ ok }) => ok === false).length;
  const nSkipped = outcomes.filter(({ skipped }) => skipped !== undefined).length;
  if (!json) {
    const nOk = outcomes.length - nFailed - nSkipped;
    process.stdout.write(`${nOk} ok, ${nFailed} failed, ${nSkipped} skipped\n`);
  }
  if (nFailed > 0) process.exitCode = 1;
}
