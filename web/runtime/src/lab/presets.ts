// Named layouts: those of the articles that this project builds on, with the figures that the articles print, and models
// that everyone knows. The articles are "Where an Attention Head Spends Its Bytes" (head bytes), "Multi-Head Attention
// Explained" (heads) and "Self-attention and positional structure" (attention).
import { BadOptionError } from '../errors.js';
import type { ModelPlan } from '../types.js';
import type { WeightType } from './cost.js';
import { type ModelShape, PLAIN } from './shape.js';

/** What an article prints of a row; its own measurement, not ours. */
export interface PrintedFigures {
  /** MB at 16 bits, as printed. */
  megabytes?: string;
  /** Change of the file against the first row, as printed. */
  fileChange?: string;
  /** Validation cross-entropy. */
  loss?: number;
  /** Change of the loss against the first row, as printed. */
  lossChange?: string;
  /** Cache a token and layer in bytes, a token, at 8,192 and at 131,072 tokens: as printed. */
  kvPerTokenPerLayer?: string;
  kvPerToken?: string;
  kvAt8k?: string;
  kvAt128k?: string;
  parametersVsFirst?: string;
  /** Numbers cached a token and layer; parameters of W_k and W_v. */
  kvNumbersPerToken?: string;
  kvParameters?: string;
}

/** Which width a row of the first article cuts. */
export type Series = 'full' | 'queries and keys' | 'values' | 'both';

export interface PresetRow {
  label: string;
  shape: ModelShape;
  printed: PrintedFigures;
  series?: Series;
}

export interface Preset {
  name: string;
  title: string;
  /** Where the figures come from and what is to be known about them. */
  note: string;
  weights: WeightType;
  rows: readonly PresetRow[];
}

/** The published block of the first article's models, needle: gates, norms, hyper-connections, the further-token block. */
const NEEDLE = {
  vocabSize: 8192,
  tiedHead: true,
  feedForward: 'hadamard',
  dFf: 0,
  nNorms: 3,
  qkNorm: true,
  outputGate: true,
  blockGate: true,
  nLanes: 4,
  nExtraBlocks: 1,
  nMemorySites: 0,
  nMemorySlots: 0,
} as const satisfies Partial<ModelShape>;

const NEEDLE_2 = { ...NEEDLE, nLayers: 27, dModel: 512, nQHeads: 8, nKvHeads: 4 } as const;

type TableRow = readonly [dQk: number, dV: number, series: Series, printed: PrintedFigures];

const TABLE_1: readonly TableRow[] = [
  [64, 64, 'full', { megabytes: '71.0', loss: 2.096 }],
  [
    48,
    64,
    'queries and keys',
    { megabytes: '65.5', fileChange: '7.8', loss: 2.101, lossChange: '0.3' },
  ],
  [
    32,
    64,
    'queries and keys',
    { megabytes: '60.0', fileChange: '15.5', loss: 2.117, lossChange: '1.0' },
  ],
  [
    16,
    64,
    'queries and keys',
    { megabytes: '54.5', fileChange: '23.3', loss: 2.174, lossChange: '3.7' },
  ],
  [58, 58, 'both', { megabytes: '65.5', fileChange: '7.8', loss: 2.12, lossChange: '1.1' }],
  [52, 52, 'both', { megabytes: '60.0', fileChange: '15.5', loss: 2.143, lossChange: '2.2' }],
  [64, 54, 'values', { megabytes: '65.3', fileChange: '8.1', loss: 2.114, lossChange: '0.8' }],
  [64, 44, 'values', { megabytes: '59.5', fileChange: '16.2', loss: 2.156, lossChange: '2.9' }],
  [64, 34, 'values', { megabytes: '53.8', fileChange: '24.2', loss: 2.185, lossChange: '4.3' }],
];

const TABLE_2: readonly TableRow[] = [
  [48, 64, 'full', { megabytes: '185', loss: 2.022 }],
  [48, 96, 'values', { megabytes: '227', fileChange: '23', loss: 1.982, lossChange: '−2.0' }],
  [48, 128, 'values', { megabytes: '270', fileChange: '46', loss: 1.891, lossChange: '−6.5' }],
];

function needleRows(base: Omit<ModelShape, 'dQk' | 'dV'>, table: readonly TableRow[]): PresetRow[] {
  return table.map(([dQk, dV, series, printed]) => ({
    label: `${dQk} / ${dV}`,
    shape: { ...base, dQk, dV },
    printed,
    series,
  }));
}

const LLAMA_8B: ModelShape = {
  ...PLAIN,
  nLayers: 32,
  dModel: 4096,
  nQHeads: 32,
  nKvHeads: 8,
  dQk: 128,
  dV: 128,
  vocabSize: 128256,
  tiedHead: false,
  dFf: 14336,
};
const LLAMA_70B: ModelShape = { ...LLAMA_8B, nLayers: 80, dModel: 8192, nQHeads: 64, dFf: 28672 };

function cacheRows(
  base: ModelShape,
  printed: readonly [PrintedFigures, PrintedFigures, PrintedFigures],
): PresetRow[] {
  const [mha, gqa, mqa] = printed;
  return [
    { label: 'MHA (hypothetical)', shape: { ...base, nKvHeads: base.nQHeads }, printed: mha },
    { label: 'GQA (as it is)', shape: base, printed: gqa },
    { label: 'MQA (hypothetical)', shape: { ...base, nKvHeads: 1 }, printed: mqa },
  ];
}

/** One attention layer of the second article's model and nothing else. */
const HEADS_BASE: ModelShape = {
  ...PLAIN,
  feedForward: 'none',
  dFf: 0,
  nNorms: 0,
  nLayers: 1,
  dModel: 8192,
  nQHeads: 64,
  nKvHeads: 64,
  dQk: 128,
  dV: 128,
  vocabSize: 0,
  tiedHead: true,
};

const ALL: readonly Preset[] = [
  {
    name: 'seedA1',
    title: 'Routing against content (head bytes, first table)',
    note:
      'The article states 20 layers of width 1,024 with 16 query and 2 KV heads; no count of that geometry gives its sizes. ' +
      '27 layers of width 512 with 8 query and 4 KV heads and one further-token block, the published second model of that ' +
      'family, give all nine to the printed digit, so those are used. The count includes what the article does not mention: ' +
      'an output gate as wide as W_o, lane mixing, the further-token block. Losses are the article’s own measurements ' +
      '(5,000 training steps). It ships 48 / 64; in its published code on 12 query and 2 KV heads at width 768.',
    weights: 'f16',
    rows: needleRows(NEEDLE_2, TABLE_1),
  },
  {
    name: 'seedA2',
    title: 'Growing the values (head bytes, second table)',
    note:
      '18 layers of width 1,024 with 16 query and 2 KV heads, as the article says, and two sites of n-gram memory with ' +
      'together 8,192 slots. Losses are the article’s own measurements (3,000 steps). In the same series, it says, moving ' +
      'the sites changed the loss by under 1 %, and tables 3.5 times as large took off 2.2 % for 45 % more file ' +
      '(28,672 slots here: +45.3 %).',
    weights: 'f16',
    rows: needleRows(
      {
        ...NEEDLE,
        nLayers: 18,
        dModel: 1024,
        nQHeads: 16,
        nKvHeads: 2,
        nMemorySites: 2,
        nMemorySlots: 8192,
      },
      TABLE_2,
    ),
  },
  {
    name: 'llama8b',
    title: 'Llama 3 8B, as MHA, GQA and MQA',
    note: 'The cache table of the third article (16-bit cache; KiB and GiB are 1024-based).',
    weights: 'bf16',
    rows: cacheRows(LLAMA_8B, [
      { kvPerToken: '512 KiB', kvAt8k: '4 GiB', kvAt128k: '64 GiB' },
      { kvPerToken: '128 KiB', kvAt8k: '1 GiB', kvAt128k: '16 GiB' },
      { kvPerToken: '16 KiB', kvAt8k: '0.125 GiB', kvAt128k: '2 GiB' },
    ]),
  },
  {
    name: 'llama70b',
    title: 'Llama 3 70B, as MHA, GQA and MQA',
    note:
      'The cache table of the third article. It prints 0.31 GiB for MQA at 8,192 tokens; the exact figure is 0.3125. The ' +
      'second article writes KB, MB and GB for the same 1024-based figures.',
    weights: 'bf16',
    rows: cacheRows(LLAMA_70B, [
      { kvPerToken: '2,560 KiB', kvAt8k: '20 GiB', kvAt128k: '320 GiB' },
      { kvPerToken: '320 KiB', kvAt8k: '2.5 GiB', kvAt128k: '40 GiB' },
      { kvPerToken: '40 KiB', kvAt8k: '0.31 GiB', kvAt128k: '5 GiB' },
    ]),
  },
  {
    name: 'heads',
    title: 'One wide head, MHA, GQA, MQA: one layer of attention',
    note:
      'The configuration table of the second article: d_model 8,192, bf16, one layer’s attention and nothing else. Its MB ' +
      'are 1024-based: 128, 16 and 2 MiB for W_k.',
    weights: 'bf16',
    rows: [
      {
        label: 'Single head of 8,192',
        shape: { ...HEADS_BASE, nQHeads: 1, nKvHeads: 1, dQk: 8192, dV: 8192 },
        printed: { kvPerTokenPerLayer: '32,768', parametersVsFirst: 'identical' },
      },
      {
        label: 'MHA, 64 heads of 128',
        shape: HEADS_BASE,
        printed: { kvPerTokenPerLayer: '32,768', parametersVsFirst: 'baseline' },
      },
      {
        label: 'GQA, groups of 8',
        shape: { ...HEADS_BASE, nKvHeads: 8 },
        printed: { kvPerTokenPerLayer: '4,096', parametersVsFirst: '224 MB smaller' },
      },
      {
        label: 'MQA, one shared KV head',
        shape: { ...HEADS_BASE, nKvHeads: 1 },
        printed: { kvPerTokenPerLayer: '512', parametersVsFirst: '252 MB smaller' },
      },
    ],
  },
  {
    name: 'walk',
    title: 'A layer small enough to count: d_model 16, eight heads',
    note: 'The shape walk of the third article: MHA, GQA and MQA of eight query heads of width 2.',
    weights: 'f16',
    rows: (
      [
        ['MHA (g = 8)', 8, '32', '512'],
        ['GQA (g = 2)', 2, '8', '128'],
        ['MQA (g = 1)', 1, '4', '64'],
      ] as const
    ).map(([label, nKvHeads, kvNumbersPerToken, kvParameters]) => ({
      label,
      shape: { ...HEADS_BASE, dModel: 16, nQHeads: 8, nKvHeads, dQk: 2, dV: 2 },
      printed: { kvNumbersPerToken, kvParameters },
    })),
  },
  {
    name: 'needle2',
    title: 'Needle 2, whole',
    note: 'The published configuration, with two sites of n-gram memory; published as 45 million parameters.',
    weights: 'f16',
    rows: [
      {
        label: 'Needle 2',
        shape: {
          ...NEEDLE_2,
          dQk: 64,
          dV: 64,
          nMemorySites: 2,
          nMemorySlots: 8192,
        },
        printed: {},
      },
    ],
  },
];

export const PRESET_NAMES: readonly string[] = ALL.map(({ name }) => name);

/** Throws BadOptionError with the known names. */
export function layoutPreset(name: string): Preset {
  const preset = ALL.find((candidate) => candidate.name === name);
  if (preset === undefined) {
    throw new BadOptionError(`There is no preset '${name}'. Known: ${PRESET_NAMES.join(', ')}`, {
      option: 'preset',
      value: name,
    });
  }
  return preset;
}

/** Of a loaded or inspected model. Layers that differ in their heads are counted as the first one: `isUniform` says so. */
export function shapeOfModel(model: ModelPlan['model']): {
  shape: ModelShape;
  isUniform: boolean;
} {
  const [first] = model.layers;
  if (first === undefined) throw new BadOptionError('layout: the model has no layers');
  const { nQHeads, nKvHeads, dQk, dV, dFf } = first;
  const isUniform = model.layers.every(
    (layer) =>
      layer.nQHeads === nQHeads &&
      layer.nKvHeads === nKvHeads &&
      layer.dQk === dQk &&
      layer.dV === dV &&
      layer.dFf === dFf,
  );
  const shape: ModelShape = {
    ...PLAIN,
    nLayers: model.layers.length,
    dModel: model.dModel,
    nQHeads,
    nKvHeads,
    dQk,
    dV,
    vocabSize: model.vocabSize,
    tiedHead: model.tiedHead,
    dFf,
  };
  return { shape, isUniform };
}
