export const kPromptLengths: number[];
export const kDecoded: number;
export const kContext: number;
export function promptOf(n: number, vocabSize: number): number[];
