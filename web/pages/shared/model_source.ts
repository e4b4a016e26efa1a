// Where a model comes from, checked before anything is loaded: the page's own default, files that the user chose or
// dropped, or an address that the user typed. No DOM, no network.
import type { ModelSource } from 'headlight-wasm';

export interface ModelChoice {
  kind: 'default' | 'file' | 'url';
  /** For people: a file name without its ending. */
  name: string;
  source: ModelSource;
}

export type Checked<T> = { ok: true; value: T } | { ok: false; message: string };

export const defaultModelPath = 'models/default-q8_0.gguf';

/** @param base the page's address */
export function defaultChoice(base: string): ModelChoice {
  return { kind: 'default', name: 'Default model', source: new URL(defaultModelPath, base) };
}

const shardName = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i;

interface Named {
  readonly name: string;
}

/** One file, or all shards of one model ("x-00001-of-00003.gguf") in their order. */
export function orderShards<T extends Named>(files: readonly T[]): Checked<T[]> {
  const refuse = (message: string) => ({ ok: false, message }) as const;
  const [first] = files;
  if (first === undefined) return refuse('No file was chosen.');
  const firstShard = shardName.exec(first.name);
  if (firstShard === null) {
    return files.length === 1
      ? { ok: true, value: [first] }
      : refuse('Open one model at a time: one GGUF file, or all parts of a split one.');
  }
  const total = Number(firstShard[3]);
  const ordered: (T | undefined)[] = new Array(total).fill(undefined);
  for (const file of files) {
    const shard = shardName.exec(file.name);
    const index = Number(shard?.[2]) - 1;
    if (shard?.[1] !== firstShard[1] || Number(shard?.[3]) !== total || !(index in ordered)) {
      return refuse(`${file.name} is no part of the model that ${first.name} belongs to.`);
    }
    ordered[index] = file;
  }
  const missing = ordered.flatMap((file, index) => (file ? [] : [index + 1]));
  if (missing.length > 0) {
    return refuse(
      `This model has ${total} parts; choose them all together. Missing: ${missing.join(', ')}.`,
    );
  }
  return { ok: true, value: ordered.filter((file) => file !== undefined) };
}

export function choiceFromFiles(files: readonly File[]): Checked<ModelChoice> {
  const ordered = orderShards(files);
  if (!ordered.ok) return ordered;
  const [first] = ordered.value;
  if (first === undefined) return { ok: false, message: 'No file was chosen.' };
  const source = ordered.value.length === 1 ? first : ordered.value;
  return { ok: true, value: { kind: 'file', name: modelName(first.name), source } };
}

/** @param base the page's address, for addresses without a host */
export function choiceFromUrl(typed: string, base: string): Checked<ModelChoice> {
  const text = typed.trim();
  if (text === '') return { ok: false, message: 'Type the address of a GGUF file.' };
  let url: URL;
  try {
    url = new URL(text, base);
  } catch {
    return { ok: false, message: `"${text}" is no web address.` };
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return { ok: false, message: `The address must begin with https://, not ${url.protocol}` };
  }
  const lastPart = url.pathname.split('/').at(-1) ?? '';
  const name = modelName(decode(lastPart)) || url.hostname;
  return { ok: true, value: { kind: 'url', name, source: url } };
}

/** "a-00001-of-00003.gguf" and "a.gguf" -> "a". */
function modelName(fileName: string): string {
  return shardName.exec(fileName)?.[1] ?? fileName.replace(/\.gguf$/i, '');
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
