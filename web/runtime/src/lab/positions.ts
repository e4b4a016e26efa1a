// Position schemes without a model: what a caller may ask for, checked and with its defaults.
import { BadOptionError } from '../errors.js';
import {
  badOption,
  checkOptions,
  float32Array,
  integer,
  number,
  oneOf,
  type Rules,
} from '../options.js';
import type { RopeWire } from './wire.js';

/** Rows of one width, each with its position. */
export interface PlacedRows {
  /** [n, width] */
  rows: Float32Array;
  /** [n], from 0. */
  positions: ArrayLike<number>;
}

export interface RopeOptions extends Partial<PlacedRows> {
  /** Rotated elements of a row, even, at most its width; the others pass through. */
  nRot: number;
  /** Default 10000. */
  freqBase?: number;
  /** Which elements are a pair: (0, 1), (2, 3), ... (default), or i and i + nRot / 2. */
  style?: 'interleaved' | 'half-split';
  /**
   * For contexts beyond those of training. linear: angles divided by the factor; ntk: the base times
   * factor^(nRot / (nRot - 2)); dynamic: as that, by factor * nCtx / nCtxOriginal - (factor - 1); yarn: slow pairs as linear,
   * fast ones left alone. Default none.
   */
  scaling?: 'none' | 'linear' | 'ntk' | 'dynamic' | 'yarn';
  /** Default 1. */
  factor?: number;
  /** Of training; needed for dynamic and yarn. */
  nCtxOriginal?: number;
  /** Above every position; what dynamic goes by. Default: just enough for the positions. */
  nCtx?: number;
}

export interface RopeResult {
  /** [nRot / 2], radians a position. */
  frequencies: Float64Array;
  /** The rows, rotated. */
  rows: Float32Array;
  /** Cosines and sines are multiplied by it: YaRN's temperature, else 1. */
  magnitude: number;
}

/** The module's own limits (wasm/bind_positions.cc). */
const MAX_CONTEXT = 2 ** 20;
const MAX_ROTATED = 1024;
const LARGEST = 1e12;

const positionList = {
  range: `integers in [0, ${MAX_CONTEXT - 1}]`,
  accepts: (v: unknown) =>
    typeof v === 'object' &&
    v !== null &&
    Array.from(v as ArrayLike<unknown>).every(integer(0, MAX_CONTEXT - 1).accepts),
};
const ROWS_RULES: Rules<PlacedRows> = { rows: float32Array, positions: positionList };
const ROPE_RULES: Rules<RopeOptions> = {
  ...ROWS_RULES,
  nRot: integer(2, MAX_ROTATED),
  freqBase: number(0, LARGEST, true),
  style: oneOf('interleaved', 'half-split'),
  scaling: oneOf('none', 'linear', 'ntk', 'dynamic', 'yarn'),
  factor: number(0, LARGEST, true),
  nCtxOriginal: integer(1, MAX_CONTEXT),
  nCtx: integer(1, MAX_CONTEXT),
};

export interface RopeCall {
  options: RopeWire;
  rows: Float32Array;
  positions: Uint32Array;
}

/** Throws BadOptionError. */
export function ropeCall(given: RopeOptions): RopeCall {
  checkOptions('rope', given, ROPE_RULES);
  const { nRot, scaling = 'none', nCtxOriginal = 0 } = given;
  if (nRot === undefined) throw badOption('rope', 'nRot', nRot, ROPE_RULES.nRot.range);
  if ((scaling === 'dynamic' || scaling === 'yarn') && nCtxOriginal === 0)
    throw badOption('rope', 'nCtxOriginal', undefined, `given with scaling '${scaling}'`);
  const placed = placedCall('rope', given);
  const longest = placed.positions.reduce((most, pos) => Math.max(most, pos), 0);
  return {
    ...placed,
    options: {
      ...{ nRot, scaling, nCtxOriginal },
      style: given.style ?? 'interleaved',
      freqBase: given.freqBase ?? 10_000,
      factor: given.factor ?? 1,
      nCtx: given.nCtx ?? longest + 1,
    },
  };
}

/** Throws BadOptionError. */
export function sinusoidCall(given: PlacedRows): PlacedRows & { positions: Uint32Array } {
  checkOptions('sinusoids', given, ROWS_RULES);
  return placedCall('sinusoids', given);
}

function placedCall(where: string, { rows, positions }: Partial<PlacedRows>) {
  if ((rows === undefined) !== (positions === undefined))
    throw new BadOptionError(`${where}: rows and positions are given together`, {
      option: rows === undefined ? 'rows' : 'positions',
    });
  const [values, places] = [rows ?? new Float32Array(), Uint32Array.from(positions ?? [])];
  if (places.length === 0 ? values.length > 0 : values.length % places.length !== 0)
    throw badOption(where, 'rows', values.length, `whole rows for ${places.length} positions`);
  return { rows: values, positions: places };
}
