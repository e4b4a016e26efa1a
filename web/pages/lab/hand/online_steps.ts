// Online softmax, one step a tile: the running maximum m, the running sum l and the running blend acc. No DOM.

export interface OnlineStep {
  /** Keys of this tile, half-open. */
  start: number;
  end: number;
  /** Largest score so far. */
  m: number;
  /** exp(m_old − m_new): what earlier sums are multiplied by; 0 in the first tile. */
  factor: number;
  /** Sum of exp(s − m) so far. */
  l: number;
  /** Sum of exp(s − m) v so far, [dV]. */
  acc: number[];
  /** acc / l: the softmax's result if these were all keys. */
  out: number[];
}

/** @param values [nKv, dV] */
export function onlineSteps(
  scores: readonly number[],
  values: readonly (readonly number[])[],
  tileSize: number,
): OnlineStep[] {
  const dV = values[0]?.length ?? 0;
  let m = Number.NEGATIVE_INFINITY;
  let l = 0;
  let acc: number[] = new Array(dV).fill(0);
  const steps: OnlineStep[] = [];
  for (let start = 0; start < scores.length; start += tileSize) {
    const end = Math.min(start + tileSize, scores.length);
    const tile = scores.slice(start, end);
    const mNew = Math.max(m, ...tile);
    const factor = m === Number.NEGATIVE_INFINITY ? 0 : Math.exp(m - mNew);
    const exps = tile.map((s) => Math.exp(s - mNew));
    l = l * factor + exps.reduce((a, b) => a + b, 0);
    acc = acc.map((old, d) =>
      exps.reduce((sum, e, i) => sum + e * (values[start + i]?.[d] ?? 0), old * factor),
    );
    m = mNew;
    steps.push({ start, end, m, factor, l, acc, out: acc.map((a) => a / l) });
  }
  return steps;
}
