// Small helpers of the tests of runs.
import type { GenerateChunk, Run } from '../../../web/runtime/src/types.js';

export async function chunksOf(run: Run): Promise<GenerateChunk[]> {
  const chunks: GenerateChunk[] = [];
  for await (const chunk of run) chunks.push(chunk);
  return chunks;
}

/** Lets everything that is under way between the fake's threads come to rest. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}
