// An engine as the flags ask for it, ended in every case.
import { Engine, type LoadOptions } from 'headlight-wasm';
import { evictionOf } from './eviction.js';
import { progressBar } from './output.js';
import { type Call, numberOf, stringOf, type Values } from './usage.js';

/** The package checks the values; only what a flag means is decided here. */
export function loadOptions(values: Values): LoadOptions {
  const cache = stringOf(values, 'kv-cache');
  const options = {
    nCtx: numberOf(values, 'n-ctx'),
    threads: numberOf(values, 'threads'),
    module: stringOf(values, 'module'),
    activations: stringOf(values, 'activations'),
    kvCache: cache === undefined ? undefined : { k: cache, v: cache },
    eviction: evictionOf(values),
  };
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as LoadOptions;
}

export async function withEngine(
  { model, values }: Call,
  options: { json: boolean; signal?: AbortSignal },
  work: (engine: Engine) => Promise<void>,
): Promise<void> {
  const onProgress = progressBar(options.json);
  const engine = await Engine.load(model, {
    ...loadOptions(values),
    ...(onProgress === undefined ? {} : { onProgress }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  try {
    await work(engine);
  } finally {
    await engine.dispose();
  }
}
