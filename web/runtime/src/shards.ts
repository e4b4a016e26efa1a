// The files of a split model, from the name of its first: "x-00001-of-00003.gguf" is followed by "x-00002-of-00003.gguf"
// and so on. Names are all that is looked at; that the files belong together is checked by the loader.
import type { SourceWire } from './protocol.js';

/** As the loader has it (src/model/model_loader.cc). */
const MAX_SHARDS = 1000;
/** At the end of a path, or of a URL's path. */
const FIRST_SHARD = /-00001-of-(\d{5})(?=\.gguf(?:[?#]|$))/i;

/** The addresses of all shards where `name` is that of a first shard, else the name alone. */
export function shardNames(name: string): string[] {
  const total = Number(FIRST_SHARD.exec(name)?.[1] ?? 1);
  if (total < 2 || total > MAX_SHARDS) return [name];
  const digits = (n: number) => String(n).padStart(5, '0');
  return Array.from({ length: total }, (_, i) =>
    name.replace(FIRST_SHARD, `-${digits(i + 1)}-of-${digits(total)}`),
  );
}

/** A URL or path of a first shard stands for the whole model. */
export function withFurtherShards(source: SourceWire): SourceWire[] {
  switch (source.kind) {
    case 'url':
      return shardNames(source.url).map((url) => ({ kind: 'url', url }));
    case 'path':
      return shardNames(source.path).map((path) => ({ kind: 'path', path }));
    default:
      return [source];
  }
}
