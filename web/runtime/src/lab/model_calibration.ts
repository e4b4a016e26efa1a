// What heads do on average over a calibration text, as plain data.

/** Relative error of a head's output when a pattern stands in its place: mean of |PV - AV| / |AV|. */
export interface OutputErrors {
  shift: number;
  mean: number;
  first: number;
  table: number;
}

export interface HeadCalibration {
  /** Mean weight of the row o back, where that is not the first row. */
  byOffset: Float32Array;
  /** Mean weight of the first row, for queries after it. */
  firstWeight: number;
  /** Largest standard deviation of an entry of the map over the segments: 0 is the same map for every input. */
  spread: number;
  meanSpread: number;
  /** Of the best shift. */
  likeliestOffset: number;
  outputErrors: OutputErrors;
}

export interface LayerCalibration {
  heads: HeadCalibration[];
  /** Share of each pair of query and key dimensions in the variance of the scores; sums to 1. */
  pairShares: number[];
}

export interface ModelCalibration {
  layers: LayerCalibration[];
  nSegments: number;
  segmentTokens: number;
}
