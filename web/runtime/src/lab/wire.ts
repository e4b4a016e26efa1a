// What crosses to the module about edits, tensors and traces (wasm/headlight.d.ts), where the package's declarations can name it.

/** All fields are required; 0 and empty arrays change nothing. */
export interface ModelEditWire {
  layers: Uint32Array;
  nKvHeads: number;
  dQk: number;
  /** [nLayers, dQk / 2] */
  keptPairs: Uint32Array;
  dV: number;
  window: number;
  nSinks: number;
  /** [n, 2]: layer, head. */
  pruned: Uint32Array;
  /** [n, 4]: layer, head, kind (0 shift, 1 prefix mean, 2 first row, 3 table), offset or length of the table. */
  fixed: Uint32Array;
  /** Of each head with a table, in order: the first row's weight, then the weight of each offset. */
  tables: Float32Array;
}

/** All fields are required. */
export interface RopeWire {
  style: 'interleaved' | 'half-split';
  nRot: number;
  freqBase: number;
  scaling: 'none' | 'linear' | 'ntk' | 'dynamic' | 'yarn';
  factor: number;
  /** Of training, for dynamic and yarn. */
  nCtxOriginal: number;
  nCtx: number;
}

export interface AttentionTensorWire {
  rows: number;
  cols: number;
  /** The packed family's name. */
  family: string;
  packedBytes: number;
  /** Row-major; empty where encoded bytes were asked for. */
  values: Float32Array;
  /** GGUF's number of the type that `bytes` are in. */
  type: number;
  bytes: Uint8Array;
}

export interface BlockTraceWire {
  nPasses: number;
  /** `what` counts LayerTensor of src/model/layer_observer.h. */
  tensors: { what: number; rows: number; cols: number; ms: number }[];
  /** Of all tensors, one after the other. */
  values: Float32Array;
}
