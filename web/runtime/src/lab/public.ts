// The public names of headlight-wasm/lab that do not depend on the platform.
export * from './cost.js';
export type { HeadLabOptions, LabAttendOptions } from './head_lab.js';
export * from './head_metrics.js';
export { type SurveyedHead, type SurveyOptions, surveyHeads } from './head_survey.js';
export { inductionCircuit } from './induction_circuit.js';
export * from './presets.js';
export {
  checkShape,
  type FeedForwardKind,
  type ModelShape,
  PLAIN,
  type WeightItem,
  weightItems,
} from './shape.js';
