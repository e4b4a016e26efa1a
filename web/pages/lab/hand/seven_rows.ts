// The seven-token row: what is computed from its scores, and what the second article prints. No DOM.
import { brief, shown, softmax } from './arithmetic.js';

export const sevenTokens = ['What', 'is', 'a', 'quad', 'ratic', 'equation', '?'] as const;
export const articleScores: readonly number[] = [14, 9, 6, 46, 41, 25, 11];
export const articleWidth = 128;
/** As printed; they sum to 0.999. */
export const printedWeights: readonly number[] = [0.029, 0.019, 0.014, 0.52, 0.316, 0.078, 0.023];

/** Rows that make a point of their own. */
export const examples = {
  article: { label: 'The article’s', scores: articleScores },
  three: { label: 'Three equal needs', scores: [0, 0, 0, 400, 400, 400, 0] },
  equal: { label: 'Nothing to choose', scores: [20, 20, 20, 20, 20, 20, 20] },
} as const;
export type ExampleName = keyof typeof examples;

/** As the article does it: scaled scores rounded to one decimal, then softmax. */
export function roundedFirst(scores: readonly number[], dQk: number): number[] {
  return softmax(scores.map((score) => Math.round((10 * score) / Math.sqrt(dQk)) / 10));
}

export function isArticle(scores: readonly number[], dQk: number): boolean {
  return dQk === articleWidth && scores.join() === articleScores.join();
}

/** Sentences about the two largest scores. */
export function gapFacts(
  scores: readonly number[],
  dQk: number,
  weights: readonly number[],
  unscaled: readonly number[],
): string[] {
  const [first = 0, second = 0] = [...scores].sort((a, b) => b - a);
  const gap = first - second;
  const scaledGap = gap / Math.sqrt(dQk);
  const gradient = (w: readonly number[]) => {
    const p = Math.max(...w);
    return shown(p * (1 - p), 4);
  };
  const facts = [
    `Unscaled, a gap of ${brief(gap)} makes the first ${shown(Math.exp(gap), 2)} times as heavy as the second (e^${brief(gap)}).`,
    `Scaled by √${dQk} = ${Math.sqrt(dQk).toFixed(4)} the gap is ${shown(scaledGap)} and the ratio ${shown(Math.exp(scaledGap))}.`,
    `Learning signal p (1 − p) of the largest weight: ${gradient(weights)} scaled, ${gradient(unscaled)} unscaled.`,
  ];
  if (isArticle(scores, dQk)) {
    facts.push(
      'The article rounds the scaled scores to one decimal before the softmax: gap 0.5, ratio e^0.5 = 1.6487 (printed 1.65) ' +
        'instead of 1.5557, and weights that sum to 0.999 as printed. The exact ones stand beside them.',
    );
  }
  return facts;
}
