// Seeded damage to a line of an Attention test file: it is no case, one that cannot be run, a BadOptionError of the package,
// or a call; in bounded time. HEADLIGHT_FUZZ_RUNS: how often.
import { expect, it } from 'vitest';
import { BadCase, callsOf, checkedCase, Skipped } from '../../../web/cli/attend_case.js';
import { attendSpec } from '../../../web/runtime/src/attend.js';
import { BadOptionError } from '../../../web/runtime/src/errors.js';
import { hostileRuns, type Pick, pickOf } from '../hostile_runs.js';

const RUNS = 20_000;

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

const tensor = (shape: number[], type = 'f32'): Json => ({
  type,
  shape,
  data: Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => i / 8),
});
const SOUND: Json[] = [
  {
    name: '4d',
    op: 'Attention',
    attrs: { is_causal: 1, scale: 0.5, softcap: 2, qk_matmul_output_mode: 1 },
    inputs: {
      ...{ Q: tensor([2, 4, 3, 8]), K: tensor([2, 2, 3, 8]), V: tensor([2, 2, 3, 6]) },
      ...{ past_key: tensor([2, 2, 2, 8]), past_value: tensor([2, 2, 2, 6]) },
      attn_mask: tensor([3, 5], 'bool'),
    },
    outputs: { Y: tensor([2, 4, 3, 6]), qk_matmul_output: tensor([2, 4, 3, 5]) },
  },
  {
    name: '3d',
    attrs: { q_num_heads: 4, kv_num_heads: 2 },
    inputs: {
      ...{ Q: tensor([1, 3, 32], 'f16'), K: tensor([1, 3, 16], 'f16') },
      ...{ V: tensor([1, 3, 12], 'f16'), nonpad_kv_seqlen: tensor([1], 'i64') },
    },
    outputs: { Y: tensor([1, 3, 24]) },
  },
];
const NUMBERS = [0, 1, -1, 2, 3, 0.5, 1e3, 1e6, 2 ** 31, 2 ** 32, 1e15, 1e300];
const STRINGS = ['', 'inf', '-inf', 'nan', 'bool', 'f16', '__proto__', 'constructor'];

function anyJson(pick: Pick): Json {
  switch (pick(6)) {
    case 0:
      return pickOf(pick, STRINGS);
    case 1:
      return pickOf(pick, [null, true, false, [], {}]);
    case 2:
      return Array.from({ length: pick(5) }, () => pickOf(pick, NUMBERS));
    case 3:
      return tensor([1 + pick(3), 1 + pick(3)]);
    default:
      return pickOf(pick, NUMBERS);
  }
}

/** A copy with one node at any depth changed, added or taken away. */
function damaged(pick: Pick, value: Json, depth = 0): Json {
  if (typeof value !== 'object' || value === null || (depth > 1 && pick(3) === 0))
    return anyJson(pick);
  if (Array.isArray(value)) {
    const copy = [...value];
    if (copy.length === 0 || pick(4) === 0)
      copy.splice(pick(copy.length + 1), pick(2), anyJson(pick));
    else copy[pick(copy.length)] = anyJson(pick);
    return copy;
  }
  const copy = { ...value };
  const key = pick(12) === 0 ? pickOf(pick, STRINGS) : pickOf(pick, Object.keys(copy));
  if (pick(8) === 0) delete copy[key];
  else copy[key] = damaged(pick, copy[key] ?? null, depth + 1);
  return copy;
}

it('a damaged case: refused by name, or a call', () => {
  const refused: Record<string, number> = {};
  const { runs, taken } = hostileRuns('attend cases', RUNS, (pick) => {
    let json = pickOf(pick, SOUND);
    for (let n = 1 + pick(2); n > 0; n--) json = damaged(pick, json);
    try {
      // As a line of a file.
      const test = checkedCase(JSON.parse(JSON.stringify(json)));
      for (const { options } of callsOf(test, 'auto')) attendSpec(options);
      return true;
    } catch (error) {
      const known = [BadCase, Skipped, BadOptionError].find((kind) => error instanceof kind);
      if (known === undefined) throw error;
      refused[known.name] = (refused[known.name] ?? 0) + 1;
      return false;
    }
  });
  console.info(`fuzz attend cases: ${runs} runs, ${taken} calls, ${JSON.stringify(refused)}`);
  expect(Object.keys(refused).sort()).toEqual(['BadCase', 'BadOptionError', 'Skipped']);
});
