// Checks what a user wants captured and puts it into the module's form. That layers, heads and rows are there, the module
// checks: it knows the prompt's length.
import type { CaptureOptions } from './capture_types.js';
import { badOption, boolean, checkOptions, oneOf, type Rule, type Rules } from './options.js';
import type { CaptureRequestWire } from './protocol.js';

const MAX_UINT32 = 2 ** 32 - 1;

function isIndices(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((index) => Number.isInteger(index) && index >= 0 && index <= MAX_UINT32)
  );
}

function wordOrIndices(...words: readonly string[]): Rule {
  return {
    range: `${words.map((word) => `'${word}'`).join(', ')} or an array of integers from 0`,
    accepts: (v) => (typeof v === 'string' ? words.includes(v) : isIndices(v)),
  };
}

const RULES: Rules<CaptureOptions> = {
  layers: wordOrIndices('all'),
  heads: wordOrIndices('all'),
  rows: wordOrIndices('last', 'all'),
  what: oneOf('weights', 'scores', 'softcapped', 'scaled'),
  headOutputs: boolean,
  residualNorms: boolean,
  logitLens: wordOrIndices('all'),
};

function layerIndices(layers: 'all' | readonly number[], nLayers: number): Uint32Array {
  return layers === 'all'
    ? Uint32Array.from({ length: nLayers }, (_, i) => i)
    : Uint32Array.from(layers);
}

/** Undefined where nothing is to be captured. Throws BadOptionError. */
export function captureWire(
  where: string,
  options: CaptureOptions | undefined,
  nLayers: number,
): CaptureRequestWire | undefined {
  if (options === undefined) return undefined;
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw badOption(where, 'capture', options, 'an object such as { layers: [0], rows: "last" }');
  checkOptions(`${where}: capture`, options, RULES);
  const { layers = 'all', heads = 'all', rows = 'last', logitLens = [] } = options;
  return {
    what: options.what ?? 'weights',
    layers: layerIndices(layers, nLayers),
    allHeads: heads === 'all',
    heads: Uint32Array.from(heads === 'all' ? [] : heads),
    headOutputs: options.headOutputs ?? false,
    residualNorms: options.residualNorms ?? false,
    logitLens: layerIndices(logitLens, nLayers),
    rowsOf: typeof rows === 'string' ? rows : 'listed',
    rows: Uint32Array.from(typeof rows === 'string' ? [] : rows),
  };
}
