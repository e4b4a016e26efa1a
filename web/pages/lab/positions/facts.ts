// What the numbers of a position scheme say, in sentences. No DOM.
import { brief, shown } from '../hand/arithmetic.js';
import { baseOf, type Frequencies, stretches, yarnBounds } from './compute.js';
import { SCALINGS, type Setup } from './schemes.js';

export const count = (n: number) => n.toLocaleString('en-GB', { maximumFractionDigits: 2 });

/** "0.0000003", "0.41". */
export function difference(value: number | undefined): string {
  if (value === undefined) return 'the table ends';
  if (value === 0) return '0';
  return value < 1e-5 ? value.toExponential(0).replace('-', '−') : shown(value, 3);
}

function pairsText({ nRot, base, dQk }: Setup, plain: Float64Array): string {
  const last = plain[plain.length - 1] ?? 1;
  const kept = nRot < dQk ? ` The other ${dQk - nRot} of ${dQk} elements pass through.` : '';
  return (
    `${plain.length} pairs: θ from 1 down to ${last.toPrecision(6)} (base ${count(base)}), wavelengths from ` +
    `${(2 * Math.PI).toFixed(2)} to ${count(Math.round((2 * Math.PI) / last))} positions.${kept}`
  );
}

function yarnText(setup: Setup, all: Frequencies): string {
  const { low, high } = yarnBounds(all, setup.factor);
  const n = all.byScaling.none.length;
  const parts = [
    low < 0 ? 'no pair keeps its frequency' : `pairs 0 to ${low} keep theirs`,
    high >= n
      ? 'none is wholly interpolated'
      : `pairs from ${high} on are interpolated (÷ ${setup.factor})`,
  ];
  return (
    `YaRN: ${parts.join(', ')}, those between are blended. Cosines and sines × 0.1 ln ${setup.factor} + 1 = ` +
    `${all.magnitude.toFixed(5)}, so scores × ${(all.magnitude ** 2).toFixed(4)}.`
  );
}

/** One for each way to stretch, the chosen one first. */
export function ropeFacts(setup: Setup, all: Frequencies): string[] {
  const { factor, base, nRot, trained, context, scaling } = setup;
  const { byScaling } = all;
  const exponent = nRot > 2 ? `${nRot}/${nRot - 2}` : '∞';
  const grown = Math.max(trained, context) / trained;
  const texts = {
    none: pairsText(setup, byScaling.none),
    linear: `Position interpolation: every angle ÷ ${factor}, so position ${count(factor * 100)} turns as position 100 did in training.`,
    ntk: `NTK: base ${count(base)} × ${factor}^(${exponent}) = ${count(baseOf(byScaling.ntk))}. Pair 0 stays, the last pair is ${brief(stretches(all, 'ntk').at(-1) ?? 1)} times slower.`,
    dynamic: `Dynamic NTK at ${count(Math.max(trained, context))} of ${count(trained)} positions (${brief(grown)} times): base ${count(baseOf(byScaling.dynamic))}; up to ${count(trained)} nothing changes.`,
    yarn: yarnText(setup, all),
  };
  return [scaling, ...SCALINGS.filter((name) => name !== scaling)].map((name) => texts[name]);
}

export function alibiFacts(slopes: readonly number[]): string[] {
  const n = slopes.length;
  const power = 2 ** Math.floor(Math.log2(n));
  const list = slopes
    .slice(0, 4)
    .map((slope) => brief(slope))
    .join(', ');
  return [
    `Slopes of ${n} head${n === 1 ? '' : 's'}: ${list}${n > 4 ? ', …' : ''}. Each is 2^(−8/${power}) times the one before.`,
    ...(power === n
      ? []
      : [
          `${n} is no power of two: the first ${power} heads have those of ${power}, the other ${n - power} every second one of ${2 * power}.`,
        ]),
  ];
}

/** Rows of positions p and p + k: each pair of the second is the first's, turned by k steps. */
export function turnedError(
  first: readonly number[],
  second: readonly number[],
  k: number,
): number {
  const width = first.length;
  let largest = 0;
  for (let i = 0; i + 1 < width; i += 2) {
    const angle = k * 10_000 ** (-i / width);
    const [sine = 0, cosine = 0] = [first[i], first[i + 1]];
    const expected = [
      sine * Math.cos(angle) + cosine * Math.sin(angle),
      cosine * Math.cos(angle) - sine * Math.sin(angle),
    ];
    expected.forEach((x, at) => {
      largest = Math.max(largest, Math.abs(x - (second[i + at] ?? 0)));
    });
  }
  return largest;
}
