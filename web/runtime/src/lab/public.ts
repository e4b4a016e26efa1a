// The public names of headlight-wasm/lab that do not depend on the platform.
export * from './cost.js';
export type { HeadLabOptions, LabAttendOptions } from './head_lab.js';
export * from './presets.js';
export {
  checkShape,
  type FeedForwardKind,
  type ModelShape,
  PLAIN,
  type WeightItem,
  weightItems,
} from './shape.js';
