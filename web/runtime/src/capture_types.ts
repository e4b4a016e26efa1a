// What can be looked at inside a computation, and the form in which it comes. Part of types.ts.

/** What is captured of a forward pass or of a generation; see Captured. */
export interface CaptureOptions {
  /** Layers whose attention is captured, from 0. Default 'all'; [] for none. */
  layers?: 'all' | readonly number[];
  /** Query heads of each of those layers, from 0. Default 'all'. */
  heads?: 'all' | readonly number[];
  /**
   * Query rows: positions in the tokens that are computed. 'all' takes memory with the square of their number. Default
   * 'last'. While text is generated: rows of the prompt; every token after it brings its own row.
   */
  rows?: 'last' | 'all' | readonly number[];
  /**
   * 'weights' (default): after the softmax; a row sums to 1, less the weight of a learned sink. 'scores': what the softmax
   * sees, -Infinity where a key is not admitted; 'softcapped': before ALiBi and masks are added; 'scaled': q.k times the
   * scale.
   */
  what?: 'weights' | 'scores' | 'softcapped' | 'scaled';
  /** What each of those heads puts out, before W_O. Default false. */
  headOutputs?: boolean;
  /** How long the residual stream is, after the embedding and after every layer. Default false. */
  residualNorms?: boolean;
  /** Layers after which the final norm and the head are applied: what the model would say there. Default none. */
  logitLens?: 'all' | readonly number[];
}

/** Row-major. */
export interface CapturedArray {
  data: Float32Array;
  shape: number[];
}

export interface CapturedLayer {
  layer: number;
  /** Query heads, in the order of the arrays' first axis. Query head h reads KV head floor(h * nKvHeads / nQHeads). */
  heads: Uint32Array;
  /** [nHeads, nRows, nKv]: of the row at `positions[row]` and key position `key`. By the kernels that computed the result. */
  attention: CapturedArray;
  /** [nHeads, nRows]: what a learned sink took of each row; 0 in models without. */
  sinkMass: CapturedArray;
  /** [nHeads, nRows, dV], where it was asked for; of latent attention the blend of latents, as wide as one. */
  headOutputs?: CapturedArray;
}

export interface Captured {
  what: 'weights' | 'scores' | 'softcapped' | 'scaled';
  /** Of the query rows, in the order in which they were asked for. */
  positions: Uint32Array;
  /** Keys: the tokens computed so far. */
  nKv: number;
  /** In the order in which they were asked for. */
  layers: CapturedLayer[];
  /** [nLayers + 1, nRows] Euclidean norms, where they were asked for. */
  residualNorms?: CapturedArray;
  /** logits [nRows, vocabSize], where it was asked for. */
  logitLens?: { layer: number; logits: CapturedArray }[];
}
