// What the browser's storage holds, as people see it: models, not files. The files of a split model are one. No DOM.
import type { StoredModel } from 'headlight-wasm';
import { formatBytes } from '../shared/format.js';
import type { ModelChoice } from '../shared/model_source.js';

export interface StoredGroup {
  /** Without ending and shard number. */
  name: string;
  /** For people who have two of the same name. */
  host: string;
  urls: string[];
  bytes: number;
  /** Undefined while a length is unknown or a file of it was not begun. */
  totalBytes: number | undefined;
  isWhole: boolean;
}

const SHARD = /-(\d{5})-of-(\d{5})(?=\.gguf$)/i;

function fileName(url: string): string {
  const last = new URL(url).pathname.split('/').at(-1) ?? '';
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

/** In the order in which the store gives them. */
export function groupStored(models: readonly StoredModel[]): StoredGroup[] {
  const groups = new Map<string, StoredModel[]>();
  for (const model of models) {
    const { origin, pathname, search } = new URL(model.url);
    const key = origin + pathname.replace(SHARD, '-of-$2') + search;
    groups.set(key, [...(groups.get(key) ?? []), model]);
  }
  return [...groups.values()].map(group);
}

function group(files: readonly StoredModel[]): StoredGroup {
  const sorted = [...files].sort((a, b) => (a.url < b.url ? -1 : 1));
  const first = sorted[0] as StoredModel;
  const name = fileName(first.url);
  const nFiles = Number(SHARD.exec(name)?.[2] ?? 1);
  const all = sorted.length === nFiles;
  const sum = (pick: (file: StoredModel) => number) =>
    sorted.reduce((total, file) => total + pick(file), 0);
  const isKnown = all && sorted.every(({ totalBytes }) => totalBytes !== undefined);
  return {
    name: name.replace(SHARD, '').replace(/\.gguf$/i, '') || new URL(first.url).host,
    host: new URL(first.url).host,
    urls: sorted.map(({ url }) => url),
    bytes: sum(({ bytes }) => bytes),
    totalBytes: isKnown ? sum(({ totalBytes }) => totalBytes ?? 0) : undefined,
    isWhole: all && sorted.every(({ isWhole }) => isWhole),
  };
}

/** "3.0 MB", or what is there of an interrupted download. */
export function describeStored({ bytes, totalBytes, isWhole }: StoredGroup): string {
  if (isWhole) return formatBytes(bytes);
  const of = totalBytes === undefined ? '' : ` of ${formatBytes(totalBytes)}`;
  return `${formatBytes(bytes)}${of}, download not finished`;
}

export function choiceFromStored({ name, urls }: StoredGroup): ModelChoice {
  const [first = ''] = urls;
  // The first file may not have been begun when a later one was; its name is known all the same.
  const source = new URL(first);
  source.pathname = source.pathname.replace(SHARD, '-00001-of-$2');
  return { kind: 'url', name, source };
}
