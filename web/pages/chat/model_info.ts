// What the model dialog says about a loaded model and its runtime, in words. No DOM.
import type { EngineInfo, LayerInfo } from 'headlight-wasm';
import { formatBytes, formatCount, formatInteger, formatMilliseconds } from '../shared/format.js';

export interface InfoRow {
  term: string;
  value: string;
}

/** "4" when all layers agree, else "4 to 8". */
function range(layers: readonly LayerInfo[], pick: (layer: LayerInfo) => number): string {
  const values = layers.map(pick);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? String(low) : `${low} to ${high}`;
}

function describeHeads(layers: readonly LayerInfo[]): string {
  const query = range(layers, ({ nQHeads }) => nQHeads);
  const kv = range(layers, ({ nKvHeads }) => nKvHeads);
  const dQk = range(layers, ({ dQk: width }) => width);
  const dV = range(layers, ({ dV: width }) => width);
  return `${query} query and ${kv} KV heads, ${dQk} wide for Q and K, ${dV} for V`;
}

/** Undefined where there is nothing to tell: a file, or the page's own model. */
function describeOrigin({ download }: EngineInfo): string | undefined {
  if (download === undefined) return undefined;
  const { kept, fromNetworkBytes, fromStoreBytes, notices } = download;
  const said = notices.length === 0 ? '' : ` (${notices.join('; ')})`;
  if (!kept) return said === '' ? undefined : `downloaded${said}`;
  if (fromNetworkBytes === 0) return `this browser's storage${said}`;
  const resumed = fromStoreBytes > 0 ? `, ${formatBytes(fromStoreBytes)} of it earlier` : '';
  return `downloaded${resumed}; kept in this browser${said}`;
}

export function describeModel(info: EngineInfo): InfoRow[] {
  const { model, nCtx, memory } = info;
  const origin = describeOrigin(info);
  const { weightsBytes, kvCacheBytes, workspaceBytes } = memory;
  return [
    ...(model.name === '' ? [] : [{ term: 'Name in the file', value: model.name }]),
    ...(origin === undefined ? [] : [{ term: 'From', value: origin }]),
    { term: 'Architecture', value: model.architecture },
    { term: 'Parameters', value: formatCount(model.parametersUsed) },
    { term: 'Layers', value: String(model.layers.length) },
    ...(model.layers.length > 0 ? [{ term: 'Attention', value: describeHeads(model.layers) }] : []),
    { term: 'Vocabulary', value: `${formatInteger(model.vocabSize)} tokens` },
    {
      term: 'Context',
      value: `${formatInteger(nCtx)} tokens (trained on ${formatInteger(model.nCtxTrain)})`,
    },
    {
      term: 'Memory',
      value:
        `${formatBytes(weightsBytes + kvCacheBytes + workspaceBytes)}: weights ${formatBytes(weightsBytes)}, ` +
        `KV cache ${formatBytes(kvCacheBytes)}, workspace ${formatBytes(workspaceBytes)}`,
    },
    {
      term: 'Chat template',
      value: model.hasChatTemplate ? 'from the file' : 'none: your text is continued as it is',
    },
  ];
}

export function describeRuntime({ runtime, loadMs }: EngineInfo): InfoRow[] {
  return [
    { term: 'Module', value: runtime.module },
    { term: 'Threads', value: String(runtime.threads) },
    { term: '8-bit dot product', value: runtime.dotForm },
    { term: 'Cross-origin isolated', value: runtime.crossOriginIsolated ? 'yes' : 'no' },
    { term: 'Loaded in', value: formatMilliseconds(loadMs) },
  ];
}
