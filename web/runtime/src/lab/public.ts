// The public names of headlight-wasm/lab that do not depend on the platform.
export * from './cost.js';
export type { EvaluateOptions, Evaluation, SpeedOptions, SpeedResult } from './evaluate.js';
export type { HeadLabOptions, LabAttendOptions } from './head_lab.js';
export * from './head_metrics.js';
export { type SurveyedHead, type SurveyOptions, surveyHeads } from './head_survey.js';
export { inductionCircuit } from './induction_circuit.js';
export {
  ATTENTION_TENSORS,
  type AttentionTensor,
  type LabCallOptions,
  type SessionKeeps,
} from './lab_call.js';
export type { LabProgress, RecallAnswer } from './lab_protocol.js';
export type {
  HeadCalibration,
  LayerCalibration,
  ModelCalibration,
  OutputErrors,
} from './model_calibration.js';
export {
  type FixedPattern,
  type HeadRef,
  largestPairs,
  type ModelEdit,
  type PatternKind,
  patternOf,
} from './model_edit.js';
export { type CalibrateOptions, type LabModel, ModelLab, type TraceOptions } from './model_lab.js';
export type { PlacedRows, RopeOptions, RopeResult } from './positions.js';
export * from './presets.js';
export { type RandomModelOptions, randomModel, randomModelBytes } from './random_model.js';
export * from './run_layouts.js';
export { type RecallQuestion, sampleQuestions } from './sample_questions.js';
export { sampleDialogues } from './sample_text.js';
export {
  checkShape,
  type FeedForwardKind,
  type ModelShape,
  PLAIN,
  type WeightItem,
  weightItems,
} from './shape.js';
export * from './spread.js';
export { SURVEY_TEXT } from './survey_text.js';
export type { BlockTrace, TracedTensor, TracedTensorName } from './trace.js';
