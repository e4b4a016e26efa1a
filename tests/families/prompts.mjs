// What every family is asked: prompts of 1, 7 and 200 tokens, each followed by two tokens fed one at a time.
export const kPromptLengths = [1, 7, 200];
export const kDecoded = 2;
/** Positions of the tests' contexts: some families choose their frequencies by it. */
export const kContext = 256;

/** Token ids of the prompt of `n` tokens and of the tokens decoded after it. */
export function promptOf(n, vocabSize) {
  return Array.from(
    { length: n + kDecoded },
    (_, i) => 3 + ((i * i * 7 + i * 31 + n) % (vocabSize - 3)),
  );
}
