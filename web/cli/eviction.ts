// --evict: which keys a session keeps. "sinks=4,window=128" (StreamingLLM), "h2o=64" or "snapkv=64", these with ",window=N".
import type { Eviction } from 'headlight-wasm';
import { stringOf, UsageError, type Values } from './usage.js';

const forms: readonly { names: readonly string[]; make(given: Map<string, number>): Eviction }[] = [
  {
    names: ['sinks', 'window'],
    make: (given) => ({ policy: 'sinks', ...Object.fromEntries(given) }),
  },
  ...(['h2o', 'snapkv'] as const).map((policy) => ({
    names: [policy, 'window'],
    make: (given: Map<string, number>): Eviction => {
      const { [policy]: budget = 0, ...rest } = Object.fromEntries(given);
      return { policy, budget, ...rest };
    },
  })),
];

/** Undefined where the flag was not given. Ranges are checked by the package. Throws UsageError. */
export function evictionOf(values: Values): Eviction | undefined {
  const text = stringOf(values, 'evict');
  if (text === undefined) return undefined;
  const given = new Map<string, number>();
  for (const part of text.split(',')) {
    const found = /^\s*([a-z0-9]+)\s*=\s*(\d+)\s*$/.exec(part);
    if (found !== null) given.set(found[1] ?? '', Number(found[2]));
  }
  const names = [...given.keys()];
  const form = forms.find((one) => names.every((name) => one.names.includes(name)));
  const hasAll = names.length === text.split(',').length;
  if (!hasAll || form === undefined || (names.length === 1 && names[0] === 'window'))
    throw new UsageError(
      `--evict ${text}: sinks=N,window=N, h2o=N or snapkv=N is expected, such as sinks=4,window=128`,
    );
  return form.make(given);
}
