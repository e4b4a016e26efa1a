// The lab over a loaded model: edited copies, what they cost, what heads do on average, what is inside a block. Everything is
// computed by the engine's module in its worker; the loaded model is never changed.

import { EngineSession, type LoadedEngine, type TokenIds } from '../engine.js';
import { UnsupportedError } from '../errors.js';
import {
  abortSignal,
  badOption,
  boolean,
  callback,
  checkOptions,
  checkTokens,
  elsewhere,
  integer,
  number,
  type Rules,
} from '../options.js';
import type { CacheType, ChatMessage, EngineInfo, LayerInfo } from '../types.js';
import {
  type EvaluateOptions,
  type Evaluation,
  evaluate,
  measureSpeed,
  type SpeedOptions,
  type SpeedResult,
} from './evaluate.js';
import { exportGguf } from './export_gguf.js';
import {
  ATTENTION_TENSORS,
  type AttentionTensor,
  type LabCallOptions,
  labCache,
  labCall,
  labSession,
  type SessionKeeps,
} from './lab_call.js';
import type { LabOps } from './lab_protocol.js';
import type { ModelCalibration } from './model_calibration.js';
import { editWire, type ModelEdit, needsCalibration } from './model_edit.js';
import { sampleDialogues } from './sample_text.js';
import { type BlockTrace, readTrace } from './trace.js';

export interface CalibrateOptions extends LabCallOptions {
  /** Default: the lab's own text. */
  dialogues?: readonly (readonly ChatMessage[])[];
  /** Tokens of a segment, 2 to 64. Default 48. */
  segmentTokens?: number;
  /** Default 40. */
  maxSegments?: number;
}

export interface TraceOptions {
  layer: number;
  /** The last token alone, the others being in the cache. Default: all at once. */
  lastOnly?: boolean;
  kvCache?: { k?: CacheType; v?: CacheType };
  /** Time to measure for. Default 150. */
  budgetMs?: number;
}

const CALL_RULES: Rules<LabCallOptions> = { onProgress: callback, signal: abortSignal };
const KEEPS_RULES: Rules<SessionKeeps> = { kvCache: elsewhere, eviction: elsewhere };
const CALIBRATE_RULES: Rules<CalibrateOptions> = {
  ...CALL_RULES,
  dialogues: elsewhere,
  segmentTokens: integer(2, 64),
  maxSegments: integer(2, 10_000),
};
const TRACE_RULES: Rules<TraceOptions> = {
  layer: integer(0),
  lastOnly: boolean,
  kvCache: elsewhere,
  budgetMs: number(0, 60_000),
};

const ORIGINAL = 0;

/** The loaded model or an edited copy. */
export class LabModel {
  /** What made it; empty for the loaded model. */
  readonly edit: ModelEdit;
  /** Of the copy. `nQHeads` counts the heads that still have a query. */
  readonly layers: readonly LayerInfo[];
  readonly weightsBytes: number;
  /** @internal */
  readonly variant: number;
  /** @internal [nLayers][dQk / 2] of the loaded model's pairs, where queries and keys were cut. */
  readonly keptPairs: readonly (readonly number[])[] | undefined;
  readonly #engine: LoadedEngine;

  /** @internal Made by ModelLab. */
  constructor(
    engine: LoadedEngine,
    variant: number,
    made: {
      edit: ModelEdit;
      layers: readonly LayerInfo[];
      weightsBytes: number;
      keptPairs?: number[][];
    },
  ) {
    this.#engine = engine;
    this.variant = variant;
    this.edit = made.edit;
    this.layers = made.layers;
    this.weightsBytes = made.weightsBytes;
    this.keptPairs = made.keptPairs;
  }

  /** Perplexity and recall on the lab's text or the caller's, bytes, and the answers. */
  evaluate(options: EvaluateOptions = {}): Promise<Evaluation> {
    return evaluate(this.#engine, this, options);
  }

  /** A conversation with this model; close it when done. */
  async session(keeps: SessionKeeps = {}): Promise<EngineSession> {
    checkOptions('session', keeps, KEEPS_RULES);
    const wire = labSession('session', keeps);
    const { link } = this.#engine;
    const session = link.nextSession++;
    await labCall(link.connection, 'openSession', { variant: this.variant, session, ...wire });
    return new EngineSession(link, session);
  }

  /** Logits of the last token with the given cache format: to see what the format costs. */
  async logits(
    tokens: TokenIds,
    kvCache?: { k?: CacheType; v?: CacheType },
  ): Promise<Float32Array> {
    const { connection, info } = this.#engine.link;
    const ids = checkTokens('logits', tokens, info.model.vocabSize);
    const keeps = labSession('logits', kvCache === undefined ? {} : { kvCache });
    const body = { variant: this.variant, tokens: ids, ...keeps };
    return (await labCall(connection, 'logits', body)).logits;
  }

  /** A matrix as the kernels see it, row-major [rows, cols]. */
  async tensor(
    layer: number,
    which: AttentionTensor,
  ): Promise<{
    rows: number;
    cols: number;
    family: string;
    packedBytes: number;
    values: Float32Array;
  }> {
    const body = { ...this.#matrix(layer, which), encoded: false };
    const { rows, cols, family, packedBytes, values } = await labCall(
      this.#engine.link.connection,
      'tensor',
      body,
    );
    return { rows, cols, family, packedBytes, values };
  }

  /** @internal For the export. */
  encodedTensor(layer: number, which: AttentionTensor): Promise<LabOps['tensor']['reply']> {
    const body = { ...this.#matrix(layer, which), encoded: true };
    return labCall(this.#engine.link.connection, 'tensor', body);
  }

  /** Singular values, largest first, with the stable rank: sum of squares / largest square. */
  async spectrum(
    layer: number,
    which: AttentionTensor,
  ): Promise<{ singularValues: Float32Array; stableRank: number }> {
    const body = this.#matrix(layer, which);
    const { values } = await labCall(this.#engine.link.connection, 'singularValues', body);
    const squares = values.reduce((sum, value) => sum + value * value, 0);
    const largest = values[0] ?? 0;
    return { singularValues: values, stableRank: largest > 0 ? squares / (largest * largest) : 0 };
  }

  /** Every tensor of a block while it computes the tokens, and the time from each to the next. */
  async trace(tokens: TokenIds, options: TraceOptions): Promise<BlockTrace> {
    checkOptions('trace', options, TRACE_RULES);
    const { layer, lastOnly = false, kvCache, budgetMs = 150 } = options;
    const { connection, info } = this.#engine.link;
    const ids = checkTokens('trace', tokens, info.model.vocabSize);
    const shape = this.#layer('trace', layer);
    const body = {
      variant: this.variant,
      tokens: ids,
      layer,
      lastOnly,
      budgetMs,
      ...labCache(kvCache),
    };
    return readTrace(await labCall(connection, 'trace', body), shape, ids.length);
  }

  /**
   * The edited model as a GGUF file. `original` is the file that the engine was loaded from: keys, and tensors that did not
   * change, are taken from it. UnsupportedError, with the reason, for what the format cannot hold.
   */
  exportGguf(original: Blob | ArrayBuffer | Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    return exportGguf(this, this.#engine.info, original);
  }

  #layer(where: string, layer: number): LayerInfo {
    const shape = this.layers[layer];
    if (shape !== undefined) return shape;
    throw badOption(where, 'layer', layer, `an integer in [0, ${this.layers.length - 1}]`);
  }

  #matrix(layer: number, which: AttentionTensor) {
    this.#layer('lab', layer);
    return { variant: this.variant, layer, role: roleOf(which) };
  }

  /** Gives its memory back; sessions over it stay usable until they are closed. */
  async drop(): Promise<void> {
    if (this.variant !== ORIGINAL)
      await labCall(this.#engine.link.connection, 'drop', { variant: this.variant });
  }
}

function roleOf(which: AttentionTensor): number {
  const role = ATTENTION_TENSORS.indexOf(which);
  if (role < 0) throw badOption('lab', 'tensor', which, ATTENTION_TENSORS.join(' | '));
  return role;
}

/** Measuring on texts needs a model with a tokenizer; the rest does not. */
export class ModelLab {
  /** The loaded model. */
  readonly original: LabModel;
  readonly info: EngineInfo;
  readonly #engine: LoadedEngine;
  #calibration: Promise<ModelCalibration> | undefined;
  static #nextVariant = ORIGINAL + 1;

  /** Throws UnsupportedError for an engine with several threads: the lab is in the modules of one thread only. */
  constructor(engine: LoadedEngine) {
    const { module } = engine.info.runtime;
    if (module.endsWith('threads')) {
      throw new UnsupportedError(
        `The lab does not run in the module '${module}'. Load the model with Engine.load(source, { threads: 1 }).`,
        { option: 'threads' },
      );
    }
    this.#engine = engine;
    this.info = engine.info;
    const { layers } = engine.info.model;
    const { weightsBytes } = engine.info.memory;
    this.original = new LabModel(engine, ORIGINAL, { edit: {}, layers, weightsBytes });
  }

  /**
   * An edited copy; tensors that do not change are shared. Undo is drop(): the loaded model gives the same bits as ever.
   * Calibrates over the lab's text first where the edit needs it and calibrate() was not called.
   */
  async edit(edit: ModelEdit, options: LabCallOptions = {}): Promise<LabModel> {
    checkOptions('edit', options, CALL_RULES);
    // Once to refuse what is wrong before anything is computed.
    const { layers: before } = this.original;
    editWire({ ...edit, fix: [] }, before, undefined);
    const calibration = needsCalibration(edit) ? await this.calibrate(options) : undefined;
    const wire = editWire(edit, before, calibration);
    const variant = ModelLab.#nextVariant++;
    const { connection } = this.#engine.link;
    const made = await labCall(connection, 'edit', { variant, edit: wire }, options);
    const nPairs = wire.dQk / 2;
    const keptPairs = before.map((_, layer) =>
      Array.from(wire.keptPairs.slice(layer * nPairs, (layer + 1) * nPairs)),
    );
    return new LabModel(this.#engine, variant, {
      ...{ edit, layers: made.layers, weightsBytes: made.weightsBytes },
      ...(wire.keptPairs.length > 0 ? { keptPairs } : {}),
    });
  }

  /** What every head does on average over a text. Without options it is computed once and kept. */
  calibrate(options: CalibrateOptions = {}): Promise<ModelCalibration> {
    checkOptions('calibrate', options, CALIBRATE_RULES);
    const { dialogues, segmentTokens = 48, maxSegments = 40, ...call } = options;
    const isDefault =
      dialogues === undefined &&
      options.segmentTokens === undefined &&
      options.maxSegments === undefined;
    if (isDefault && this.#calibration !== undefined) return this.#calibration;
    const body = {
      ...{ variant: ORIGINAL, segmentTokens, maxSegments },
      dialogues: (dialogues ?? sampleDialogues()) as ChatMessage[][],
    };
    const calibration = labCall(this.#engine.link.connection, 'calibrate', body, call);
    if (isDefault) {
      this.#calibration = calibration;
      // One that was cancelled or failed is tried again.
      calibration.catch(() => {
        this.#calibration = undefined;
      });
    }
    return calibration;
  }

  /** Decoding speed of models in turn, so that what disturbs the machine disturbs all of them. */
  speed(models: readonly LabModel[], options: SpeedOptions = {}): Promise<SpeedResult[]> {
    return measureSpeed(this.#engine, models, options);
  }
}
