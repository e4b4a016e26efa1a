// What stable ranks say of the article's claim that routing needs few directions and content many. No DOM.
export const MATRICES = ['q', 'k', 'v', 'o'] as const;
export type MatrixName = (typeof MATRICES)[number];
export const MATRIX_LABELS: Record<MatrixName, string> = {
  q: 'W_Q',
  k: 'W_K',
  v: 'W_V',
  o: 'W_O',
};

export interface LayerRanks {
  layer: number;
  /** Stable rank, and the number of singular values. */
  ranks: Record<MatrixName, { stable: number; full: number }>;
}

/** ‖W‖_F² / ‖W‖_2²: from 1 (one direction) to the number of singular values (all alike). */
export function stableRank(singularValues: ArrayLike<number>): number {
  const largest = singularValues[0] ?? 0;
  if (largest === 0) return 0;
  let squares = 0;
  for (let i = 0; i < singularValues.length; i++) squares += (singularValues[i] ?? 0) ** 2;
  return squares / largest ** 2;
}

/** Mean over the layers of the stable rank as a share of the full one. */
export function meanShare(layers: readonly LayerRanks[], names: readonly MatrixName[]): number {
  const shares = layers.flatMap(({ ranks }) =>
    names.map((name) => ranks[name].stable / ranks[name].full),
  );
  return shares.reduce((a, b) => a + b, 0) / Math.max(1, shares.length);
}

export function rankSentence(layers: readonly LayerRanks[]): string {
  const routing = meanShare(layers, ['q', 'k']);
  const content = meanShare(layers, ['v', 'o']);
  const percent = (share: number) => `${(100 * share).toFixed(0)} %`;
  const n = layers.filter(({ ranks: { q, k, v, o } }) => {
    return q.stable / q.full + k.stable / k.full < v.stable / v.full + o.stable / o.full;
  }).length;
  const holds = routing < content;
  return (
    `Routing (W_Q, W_K) uses ${percent(routing)} of its directions, content (W_V, W_O) ${percent(content)}, by stable rank. ` +
    (holds
      ? `The article’s claim holds here, in ${n} of ${layers.length} layers.`
      : `The article’s claim does not hold here: routing is lower in ${n} of ${layers.length} layers only.`)
  );
}
