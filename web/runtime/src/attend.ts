// attend(): one attention layer on rows that the caller gives, in a worker of its own. Checks shapes and ranges; the
// computing is the module's.
import type { AttendOptions, AttendResult } from './attend_types.js';
import type { Platform } from './endpoint.js';
import { AbortedError } from './errors.js';
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
  type Rule,
  type Rules,
} from './options.js';
import type { AttendSpecWire } from './protocol.js';

/** The module's own limits (wasm/bind_attend.cc): far above any model's. */
const MAX_HEADS = 1024;
const MAX_HEAD_WIDTH = 8192;
const MAX_ROWS = 2 ** 20;
const MAX_FLOAT32 = 3.4e38;

const vectorOfHeads: Rule = {
  range: 'a Float32Array of nQHeads finite numbers',
  accepts: (v) => v instanceof Float32Array && v.every(Number.isFinite),
};

const RULES: Rules<AttendOptions> = {
  nQHeads: integer(1, MAX_HEADS),
  nKvHeads: integer(1, MAX_HEADS),
  dQk: integer(1, MAX_HEAD_WIDTH),
  dV: integer(1, MAX_HEAD_WIDTH),
  q: float32Array,
  k: float32Array,
  v: float32Array,
  firstPosition: integer(0, MAX_ROWS),
  scale: number(0, MAX_FLOAT32, true),
  window: integer(0, MAX_ROWS),
  windowSinks: integer(0, MAX_ROWS),
  prefix: integer(0, MAX_ROWS),
  mask: {
    range: 'a Float32Array to be added to the scores, or a Uint8Array of 0 and 1',
    accepts: (v) => v instanceof Float32Array || v instanceof Uint8Array,
  },
  alibiSlopes: vectorOfHeads,
  sinkLogits: vectorOfHeads,
  softcap: number(0, MAX_FLOAT32),
  causal: boolean,
  kvCache: elsewhere,
  kernel: oneOf('auto', 'reference', 'tiled', 'decode'),
  capture: oneOf('weights', 'scores', 'softcapped', 'scaled'),
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

interface MaskWire {
  mask: Float32Array | null;
  nMaskHeads: number;
  nMaskRows: number;
}

/** The mask's shape by its length; what a Uint8Array says as what is added to scores. */
function maskWire({ mask, nQHeads }: AttendOptions, nTokens: number, nKv: number): MaskWire {
  if (mask === undefined) return { mask: null, nMaskHeads: 0, nMaskRows: 0 };
  const shapes = [
    { nMaskHeads: 1, nMaskRows: 1 },
    { nMaskHeads: 1, nMaskRows: nTokens },
    { nMaskHeads: nQHeads, nMaskRows: nTokens },
  ];
  const shape = shapes.find((one) => one.nMaskHeads * one.nMaskRows * nKv === mask.length);
  if (shape === undefined) {
    const lengths = shapes.map((one) => one.nMaskHeads * one.nMaskRows * nKv).join(', ');
    throw badOption(
      'attend',
      'mask.length',
      mask.length,
      `nKv, nTokens * nKv or nQHeads * nTokens * nKv: ${lengths}`,
    );
  }
  const added =
    mask instanceof Float32Array
      ? mask
      : Float32Array.from(mask, (admits) => (admits === 0 ? Number.NEGATIVE_INFINITY : 0));
  return { mask: added, ...shape };
}

function headVector(
  name: 'alibiSlopes' | 'sinkLogits',
  { nQHeads, [name]: values }: AttendOptions,
): Float32Array | null {
  if (values === undefined) return null;
  if (values.length !== nQHeads)
    throw badOption('attend', `${name}.length`, values.length, `nQHeads = ${nQHeads}`);
  return values;
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
  if (nTokens > nKv && options.firstPosition === undefined) {
    const range = `at most the ${nKv} rows of k, unless firstPosition says where they stand`;
    throw badOption('attend', 'q', `${nTokens} rows`, range);
  }
  return {
    nQHeads,
    nKvHeads,
    dQk,
    dV,
    nTokens,
    nKv,
    firstPosition: options.firstPosition ?? nKv - nTokens,
    scale: options.scale ?? 0,
    window: options.window ?? 0,
    softcap: options.softcap ?? 0,
    causal: options.causal ?? true,
    windowSinks: options.windowSinks ?? 0,
    prefix: options.prefix ?? 0,
    alibiSlopes: headVector('alibiSlopes', options),
    sinkLogits: headVector('sinkLogits', options),
    ...maskWire(options, nTokens, nKv),
    capture: options.capture ?? null,
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
