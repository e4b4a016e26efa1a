// What a user says about a change of the loaded model, and what the module is told. Counting and checking only: the edits
// are the module's (src/lab/model_edit.h).
import { badOption, integer } from '../options.js';
import type { LayerInfo } from '../types.js';
import type { HeadCalibration, ModelCalibration } from './model_calibration.js';
import type { ModelEditWire } from './wire.js';

/** A query head, both counted from 0. */
export interface HeadRef {
  layer: number;
  head: number;
}

/**
 * What stands in a head's place: all weight on the row `offset` back, equal weights, all weight on the first row, or a table
 * by relative offset (with a share for the first row), divided by what a row finds of it.
 */
export type FixedPattern =
  | { kind: 'shift'; offset: number }
  | { kind: 'mean' }
  | { kind: 'first' }
  | { kind: 'table'; byOffset: readonly number[]; first: number };
export type PatternKind = FixedPattern['kind'];

/** Undefined leaves a thing as it is. Numbers apply to `layers`, or to all. */
export interface ModelEdit {
  layers?: readonly number[];
  /** Mean-pool to so many KV heads: a divisor of the model's. */
  kvHeads?: number;
  /**
   * Width of queries and keys. Layers with rotary positions keep the pairs with the largest share of the score variance over
   * the calibration text; layers without positions keep the nearest product of W_q and W_k.
   */
  dQk?: number;
  /** The same pairs in every layer, which a GGUF file can hold. Default: each layer its own. */
  samePairs?: boolean;
  /** Width of values: the nearest product of W_o and W_v of each KV head. */
  dV?: number;
  /** Keys that a query sees. */
  window?: number;
  /** With a window: first keys that stay visible. */
  sinks?: number;
  prune?: readonly HeadRef[];
  /** Without a pattern: the best shift, prefix mean or first row over the calibration text. */
  fix?: readonly (HeadRef & { pattern?: FixedPattern | { kind: 'table' } })[];
}

const KINDS: readonly PatternKind[] = ['shift', 'mean', 'first', 'table'];

export function needsCalibration({ dQk, fix = [] }: ModelEdit): boolean {
  return dQk !== undefined || fix.some(({ pattern }) => patternIsOpen(pattern));
}

function patternIsOpen(pattern: FixedPattern | { kind: 'table' } | undefined): boolean {
  return pattern === undefined || (pattern.kind === 'table' && !('byOffset' in pattern));
}

/** The cheap pattern that errs least in the head's place, or its own table. */
export function patternOf(head: HeadCalibration, kind?: 'table'): FixedPattern {
  if (kind === 'table')
    return { kind, byOffset: Array.from(head.byOffset), first: head.firstWeight };
  const { shift, mean, first } = head.outputErrors;
  if (shift <= mean && shift <= first) return { kind: 'shift', offset: head.likeliestOffset };
  return { kind: mean <= first ? 'mean' : 'first' };
}

/** The n pairs with the largest shares, ascending. */
export function largestPairs(shares: readonly number[], n: number): number[] {
  const order = shares.map((share, pair) => ({ share, pair }));
  order.sort((a, b) => b.share - a.share || a.pair - b.pair);
  return order
    .slice(0, n)
    .map(({ pair }) => pair)
    .sort((a, b) => a - b);
}

/** [nLayers][dQk / 2]. */
export function pairsToKeep(
  { dQk = 0, samePairs = false }: ModelEdit,
  calibration: ModelCalibration,
): number[][] {
  const { layers } = calibration;
  const n = Math.floor(dQk / 2);
  const common = layers[0]?.pairShares.map((_, pair) =>
    layers.reduce((sum, { pairShares }) => sum + (pairShares[pair] ?? 0), 0),
  );
  return layers.map(({ pairShares }) =>
    largestPairs(samePairs && common !== undefined ? common : pairShares, n),
  );
}

function checkCounts(edit: ModelEdit, layers: readonly LayerInfo[]): void {
  const rules = { kvHeads: 1, dQk: 1, dV: 1, window: 1, sinks: 0 } as const;
  for (const [name, min] of Object.entries(rules)) {
    const value = edit[name as keyof typeof rules];
    const rule = integer(min, 2 ** 31);
    if (value !== undefined && !rule.accepts(value))
      throw badOption('edit', name, value, rule.range);
  }
  if (edit.sinks !== undefined && edit.window === undefined)
    throw badOption('edit', 'sinks', edit.sinks, 'given together with a window');
  for (const { layer, head } of [...(edit.prune ?? []), ...(edit.fix ?? [])])
    checkHead(layer, head);
  for (const layer of edit.layers ?? []) checkHead(layer, 0);

  function checkHead(layer: number, head: number): void {
    const layerRule = integer(0, layers.length - 1);
    if (!layerRule.accepts(layer)) throw badOption('edit', 'layer', layer, layerRule.range);
    const headRule = integer(0, (layers[layer]?.nQHeads ?? 1) - 1);
    if (!headRule.accepts(head)) throw badOption('edit', 'head', head, headRule.range);
  }
}

/** Throws BadOptionError. `calibration` is asked for only where needsCalibration(). */
export function editWire(
  edit: ModelEdit,
  layers: readonly LayerInfo[],
  calibration: ModelCalibration | undefined,
): ModelEditWire {
  checkCounts(edit, layers);
  const fixed: number[] = [];
  const tables: number[] = [];
  for (const { layer, head, pattern } of edit.fix ?? []) {
    const measured = calibration?.layers[layer]?.heads[head];
    const kind = pattern?.kind === 'table' ? 'table' : undefined;
    const chosen =
      patternIsOpen(pattern) && measured !== undefined
        ? patternOf(measured, kind)
        : (pattern as FixedPattern);
    const extent =
      chosen.kind === 'shift'
        ? chosen.offset
        : chosen.kind === 'table'
          ? chosen.byOffset.length
          : 0;
    fixed.push(layer, head, KINDS.indexOf(chosen.kind), extent);
    if (chosen.kind === 'table') tables.push(chosen.first, ...chosen.byOffset);
  }
  const keptPairs =
    edit.dQk === undefined || calibration === undefined
      ? []
      : pairsToKeep(edit, calibration).flat();
  return {
    layers: Uint32Array.from(edit.layers ?? []),
    nKvHeads: edit.kvHeads ?? 0,
    dQk: edit.dQk ?? 0,
    keptPairs: Uint32Array.from(keptPairs),
    dV: edit.dV ?? 0,
    window: edit.window ?? 0,
    nSinks: edit.sinks ?? 0,
    pruned: Uint32Array.from((edit.prune ?? []).flatMap(({ layer, head }) => [layer, head])),
    fixed: Uint32Array.from(fixed),
    tables: Float32Array.from(tables),
  };
}
