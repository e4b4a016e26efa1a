// What the lab asks the worker for, beside protocol.ts: one request type, told apart by `op`. Variant 0 is the loaded model.
import type { EvictionWire } from '../options.js';
import type { CacheType, ChatMessage, LayerInfo } from '../types.js';
import type { ModelCalibration } from './model_calibration.js';
import type { AttentionTensorWire, BlockTraceWire, ModelEditWire } from './wire.js';

export interface LabCache {
  kvCacheK: CacheType;
  kvCacheV: CacheType;
}

/** What a session over a variant keeps, and how. */
export interface LabSession extends LabCache {
  /** null: as the engine was loaded. */
  eviction: EvictionWire | null;
}

export interface LabOps {
  edit: {
    body: { variant: number; edit: ModelEditWire };
    reply: { layers: LayerInfo[]; weightsBytes: number };
  };
  drop: { body: { variant: number }; reply: null };
  /** A session over the variant, under a number that no other session has. */
  openSession: { body: { variant: number; session: number } & LabSession; reply: null };
  calibrate: {
    body: {
      variant: number;
      dialogues: ChatMessage[][];
      segmentTokens: number;
      maxSegments: number;
    };
    reply: ModelCalibration;
  };
  losses: {
    body: { variant: number; dialogues: ChatMessage[][] } & LabSession;
    reply: LossesReply;
  };
  recall: {
    body: {
      variant: number;
      questions: { messages: ChatMessage[]; expected: string }[];
      maxTokens: number;
    } & LabSession;
    reply: { answers: RecallAnswer[] };
  };
  /** Decoding speed of several variants in turn. */
  speed: {
    body: {
      variants: ({ variant: number } & LabSession)[];
      rounds: number;
      nPrompt: number;
      nTokens: number;
    };
    reply: { variants: VariantSpeed[] };
  };
  /** Of the last token. */
  logits: {
    body: { variant: number; tokens: Uint32Array } & LabSession;
    reply: { logits: Float32Array };
  };
  tensor: {
    body: { variant: number; layer: number; role: number; encoded: boolean };
    reply: AttentionTensorWire;
  };
  singularValues: {
    body: { variant: number; layer: number; role: number };
    reply: { values: Float32Array };
  };
  trace: {
    body: {
      variant: number;
      tokens: Uint32Array;
      layer: number;
      lastOnly: boolean;
      budgetMs: number;
    } & LabCache;
    reply: BlockTraceWire;
  };
}
export type LabOp = keyof LabOps;

/** A number a round. */
export interface VariantSpeed {
  msPerToken: number[];
  /** Attention's own part of it. */
  attentionMsPerToken: number[];
  prefillMsPerToken: number[];
  kvBytesPerToken: number;
  /** Of the whole context, with what the eviction keeps. */
  kvCacheBytes: number;
}

export interface LossesReply {
  /** Sum of -log probability over the counted tokens, in nats. */
  lossSum: number;
  nTokens: number;
  /** Counted tokens that were the model's first choice. */
  nLikeliest: number;
  /** The mean loss of each dialogue. */
  perDialogue: number[];
  /** false: the model has no chat template, and every token was counted. */
  answersOnly: boolean;
}

export interface RecallAnswer {
  question: string;
  expected: string;
  answer: string;
  isRight: boolean;
}

export type LabCall = { [K in LabOp]: { op: K } & LabOps[K]['body'] }[LabOp];

/** Share done, 0 to 1. */
export interface LabProgress {
  done: number;
  what: string;
}
