// attend(): one attention layer on rows that the caller gives, in a worker of its own. Checks shapes and ranges; the
// computing is the module's.
import type { Platform } from './endpoint.js';
import { AbortedError, BadOptionError } from './errors.js';
import { launch } from './launch.js';
import { MAX_THREADS } from './modules.js';
import {
  badOption,
  boolean,
  checkKvCache,
  checkOptions,
  elsewhere,
  float32Array,
  integer,
  number,
  oneOf,
  type Rules,
} from './options.js';
import type { AttendSpecWire } from './protocol.js';
import type { AttendOptions, AttendResult } from './types.js';

/** The module's own limits (wasm/bind_attend.cc): far above any model's. */
const MAX_HEADS = 1024;
const MAX_HEAD_WIDTH = 8192;
const MAX_ROWS = 2 ** 20;
const MAX_FLOAT32 = 3.4e38;

const RULES: Rules<AttendOptions> = {
  nQHeads: integer(1, MAX_HEADS),
  nKvHeads: integer(1, MAX_HEADS),
  dQk: integer(1, MAX_HEAD_WIDTH),
  dV: integer(1, MAX_HEAD_WIDTH),
  q: float32Array,
  k: float32Array,
  v: float32Array,
  scale: number(0, MAX_FLOAT32, true),
  window: integer(0, MAX_ROWS),
  softcap: number(0, MAX_FLOAT32),
  causal: boolean,
  kvCache: elsewhere,
  kernel: oneOf('auto', 'reference', 'tiled', 'decode'),
  module: oneOf('auto', 'simd', 'relaxed'),
  threads: integer(1, MAX_THREADS),
};
const REQUIRED = ['nQHeads', 'nKvHeads', 'dQk', 'dV', 'q', 'k', 'v'] as const;

/** Rows in `values` of `width` elements each; at least one, and no part of a row left over. */
function rowCount(
  name: 'q' | 'k' | 'v',
  values: Float32Array,
  shape: string,
  width: number,
): number {
  const nRows = values.length / width;
  if (!Number.isInteger(nRows) || nRows < 1 || nRows > MAX_ROWS) {
    throw badOption(
      'attend',
      `${name}.length`,
      values.length,
      `1 to ${MAX_ROWS} rows of ${shape} = ${width} elements`,
    );
  }
  return nRows;
}

export function attendSpec(options: AttendOptions): AttendSpecWire {
  checkOptions('attend', options, RULES);
  for (const name of REQUIRED) {
    if (options[name] === undefined) throw badOption('attend', name, undefined, RULES[name].range);
  }
  checkKvCache('attend', options.kvCache);
  const { nQHeads, nKvHeads, dQk, dV, q, k, v } = options;
  if (nQHeads % nKvHeads !== 0)
    throw badOption('attend', 'nKvHeads', nKvHeads, `a divisor of nQHeads = ${nQHeads}`);
  const nTokens = rowCount('q', q, 'nQHeads * dQk', nQHeads * dQk);
  const nKv = rowCount('k', k, 'nKvHeads * dQk', nKvHeads * dQk);
  const nValues = rowCount('v', v, 'nKvHeads * dV', nKvHeads * dV);
  if (nValues !== nKv)
    throw badOption('attend', 'v', `${nValues} rows`, `as many rows as k, ${nKv}`);
  if (nTokens > nKv)
    throw badOption('attend', 'q', `${nTokens} rows`, `at most the ${nKv} rows of k`);
  if (options.kernel === 'decode' && nTokens !== 1) {
    throw new BadOptionError(`attend: kernel 'decode' serves one query row, q has ${nTokens}`, {
      option: 'kernel',
    });
  }
  return {
    nQHeads,
    nKvHeads,
    dQk,
    dV,
    nTokens,
    nKv,
    scale: options.scale ?? 0,
    window: options.window ?? 0,
    softcap: options.softcap ?? 0,
    causal: options.causal ?? true,
    kvCacheK: options.kvCache?.k ?? 'f32',
    kvCacheV: options.kvCache?.v ?? 'f32',
    kernel: options.kernel ?? 'auto',
  };
}

export async function attendOn(platform: Platform, options: AttendOptions): Promise<AttendResult> {
  const spec = attendSpec(options);
  const { q, k, v } = options;
  const wishes = { module: options.module ?? 'auto', threads: options.threads ?? 1 };
  return launch(platform, wishes, undefined, async ({ connection }) => {
    const result = await connection.request('attend', { spec, q, k, v });
    await connection.close(new AbortedError());
    return result;
  });
}
