// The two heads that the third article's question is about: the one whose map changes least with the text, and the one whose
// map changes most. No DOM.
import type { HeadRef, ModelCalibration } from 'headlight-wasm/lab';

export interface ScoredHead extends HeadRef {
  /** Largest standard deviation of an entry of its map over the calibration text. */
  spread: number;
}

/** Undefined for a model without heads. */
export function extremeHeads({
  layers,
}: ModelCalibration): { fixed: ScoredHead; content: ScoredHead } | undefined {
  const all = layers.flatMap(({ heads }, layer) =>
    heads.map(({ spread }, head): ScoredHead => ({ layer, head, spread })),
  );
  all.sort((a, b) => a.spread - b.spread);
  const [fixed, content] = [all[0], all.at(-1)];
  return fixed && content ? { fixed, content } : undefined;
}
