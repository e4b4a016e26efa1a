// Files that the text tests read: the committed default model and, where it is there, ../shared.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type MapMetadata, readGgufHeader } from './gguf_header.js';

const ROOT = new URL('../../../', import.meta.url);
const SHARED = new URL('../shared/', ROOT);

export const sharedIsThere = existsSync(fileURLToPath(SHARED));

export function defaultModelMetadata(): MapMetadata {
  return readGgufHeader(readFileSync(new URL('examples/models/default-q8_0.gguf', ROOT)));
}

export function golden<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(`tests/golden/${path}`, ROOT), 'utf8')) as T;
}

export function sharedMetadata(path: string): MapMetadata {
  return readGgufHeader(readFileSync(new URL(path, SHARED)));
}

export function sharedText(path: string): string {
  return readFileSync(new URL(path, SHARED), 'utf8');
}
