// Models with random weights of any shape, for tests about time and memory. A character of a text is a token.
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const maker = new URL('../../bench/make_model.mjs', import.meta.url).href;
const folder = fileURLToPath(new URL('../../../build/test/models/', import.meta.url));

export interface Shape {
  layers: number;
  d: number;
  heads: number;
  kv: number;
  dqk: number;
  dv: number;
  ffn: number;
  vocab: number;
  ctx: number;
}

/** Little to compute, and a cache of 1 KiB a token: 16 MiB in all, more than a module begins with. */
export const SMALL: Shape = {
  layers: 2,
  d: 64,
  heads: 2,
  kv: 2,
  dqk: 32,
  dv: 32,
  ffn: 128,
  vocab: 512,
  ctx: 16384,
};

/** Path of the file. */
export async function randomModel(name: string, shape: Shape, type = 'q8_0'): Promise<string> {
  const { makeModel } = (await import(maker)) as {
    makeModel(path: string, shape: Shape, type: string): void;
  };
  mkdirSync(folder, { recursive: true });
  const path = `${folder}${name}-${process.pid}.gguf`;
  makeModel(path, shape, type);
  return path;
}
