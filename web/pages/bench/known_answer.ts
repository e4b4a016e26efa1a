// A question whose answer is known: greedy continuations of three prompts by the default model. The expected ids were
// computed in float32 by a program that shares nothing with Headlight (tests/golden/default_model.json, which a test
// holds against this file); only their hash is here, so the page cannot show them without having computed them.

/** Token ids of a prompt and how many tokens are to follow. */
export interface KnownPrompt {
  ids: readonly number[];
  nTokens: number;
}

export const knownPrompts: readonly KnownPrompt[] = [
  { ids: [1, 3, 384, 270, 15, 630, 354, 293, 1998, 4, 15, 3, 559, 577, 480, 15], nTokens: 25 },
  {
    ids: [
      1, 3, 384, 270, 15, 408, 400, 272, 476, 1021, 1983, 298, 522, 262, 720, 1659, 320, 267, 1127,
      622, 1983, 4, 15, 3, 559, 577, 480, 15, 1794, 294, 1276, 293, 1994, 476, 1021, 2008, 4, 15, 3,
      384, 270, 15, 324, 272, 1971, 2028, 571, 1971, 2022, 1998, 4, 15, 3, 559, 577, 480, 15, 2028,
      571, 1971, 2022, 272, 1971, 2006, 2013, 1983, 4, 15, 3, 384, 270, 15, 324, 518, 272, 316,
      1659, 1998, 4, 15, 3, 559, 577, 480, 15,
    ],
    nTokens: 5,
  },
  {
    ids: [
      1, 3, 384, 270, 15, 992, 1994, 316, 400, 272, 873, 1974, 200, 176, 1983, 802, 1331, 272, 385,
      1971, 200, 139, 1977, 200, 189, 1971, 245, 164, 158, 135, 1983, 4, 15, 3, 559, 577, 480, 15,
      992, 1994, 873, 1974, 200, 176, 2008, 4, 15, 3, 384, 270, 15, 1108, 575, 315, 2009, 326, 1992,
      2044, 1971, 233, 194, 165, 234, 170, 194, 336, 200, 180, 306, 4, 15, 3, 559, 577, 480, 15,
    ],
    nTokens: 15,
  },
];

/** SHA-256 of answerText() of the expected ids. */
export const knownSha256 = '5b88b22adc8db81264d4055ae6312de546078034185e4e7c2a7c53766f958620';

/** What is hashed: the ids of one continuation a line, separated by commas. */
export function answerText(continuations: readonly (readonly number[])[]): string {
  return continuations.map((ids) => ids.join(',')).join('\n');
}
