export const families: Record<string, { vocab: number; arch: string; layers: number }>;
