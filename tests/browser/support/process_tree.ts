// A browser with all its processes that stands still for a while, as on a machine that sleeps (Linux).
import { readdirSync, readFileSync } from 'node:fs';
import process from 'node:process';

/** The process and all that come from it, parents before children. */
function treeOf(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const id = Number(name);
    const parent = Number.isInteger(id) ? parentOf(id) : undefined;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), id]);
  }
  const all = [root];
  for (const id of all) all.push(...(children.get(id) ?? []));
  return all;
}

function parentOf(id: number): number | undefined {
  try {
    // "pid (name) state parent ...": the name may hold anything.
    const fields = readFileSync(`/proc/${id}/stat`, 'utf8').replace(/^.*\) /s, '');
    return Number(fields.split(' ')[1]);
  } catch {
    return undefined; // it has ended meanwhile
  }
}

/** @returns the number of processes that stood still */
export async function sleepFor(root: number, ms: number): Promise<number> {
  const all = treeOf(root);
  const stopped = all.filter((id) => sent(id, 'SIGSTOP'));
  try {
    await new Promise((resolve) => setTimeout(resolve, ms));
  } finally {
    for (const id of stopped.reverse()) sent(id, 'SIGCONT');
  }
  return stopped.length;
}

function sent(id: number, signal: 'SIGSTOP' | 'SIGCONT'): boolean {
  try {
    return process.kill(id, signal);
  } catch {
    return false; // it has ended meanwhile
  }
}
