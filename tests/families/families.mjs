// Tiny models of the families that Headlight runs: which keys and tensors a file of each has, after the names of GGUF
// (ggml-org/llama.cpp, gguf-py/gguf/constants.py). Shapes are chosen so that every parameter matters: several layers,
// head counts that differ, keys and values of widths of their own where the family allows it, windows shorter than the
// longest prompt. Weights are random (make_family.mjs).
import { kTypes } from '../gguf_header.mjs';
import {
  attention,
  feedForward,
  fusedAttention,
  mixture,
  norm,
  plainFeedForward,
  tensor,
} from './parts.mjs';

const { u32, f32, bool, string } = kTypes;

/** @typedef {{arch: string, layers: number, d: number, heads: number, kv: number, dqk: number, dv: number, ff: number,
 *   nCtx?: number, keys: [string, number, unknown][], top: object[], block: (i: number) => object[]}} Family */

// Embeddings of this gain make the logits of a tied head spread by a few units: probabilities by orders of magnitude.
const common = {
  layers: 4,
  d: 96,
  heads: 6,
  kv: 2,
  dqk: 16,
  dv: 16,
  ff: 160,
  vocab: 288,
  embeddingGain: 1.1,
};
const rms = ['attention.layer_norm_rms_epsilon', f32, 1e-5];
const layerNorm = ['attention.layer_norm_epsilon', f32, 1e-5];
const theta = (value) => ['rope.freq_base', f32, value];
const widths = ({ dqk, dv }) => [
  ['attention.key_length', u32, dqk],
  ['attention.value_length', u32, dv],
];
const rotary = (n) => ['rope.dimension_count', u32, n];

const preNorm = (s) => [norm('attn_norm', s.d), norm('ffn_norm', s.d)];
const untied = (s, gain = 2) => tensor('output', [s.d, s.vocab], { gain });
const outputNorm = (s, options) => norm('output_norm', s.d, options);

function family(settings, build) {
  const shape = { ...common, ...settings };
  return { ...shape, ...build(shape) };
}

/** A pre-norm block of RMS norms, attention and a gated feed-forward: most of today's families. */
function llamaLike(
  settings,
  { base = 10000, keys = [], top = [], attend = {}, also = () => [] } = {},
) {
  return family(settings, (s) => ({
    keys: [rms, theta(base), ...widths(s), rotary(s.dqk), ...keys],
    top: [outputNorm(s), ...top],
    block: (i) => [...preNorm(s), ...attention(s, attend), ...feedForward(s), ...also(s, i)],
  }));
}

const sandwich = (s) => [norm('post_attention_norm', s.d), norm('post_ffw_norm', s.d)];
const headNorms = (s) => [norm('attn_q_norm', s.dqk), norm('attn_k_norm', s.dqk)];

const llama3Factors = [1, 1, 1.25, 2, 3.5, 6, 8, 8];
const longFactors = [1, 1.1, 1.4, 2.2, 3.7, 6.1, 9.5, 14];
const shortFactors = [1, 1, 1.02, 1.05, 1.1, 1.2, 1.3, 1.4];

const phi3 = (original, nCtx) =>
  family({ arch: 'phi3', nCtx }, (s) => ({
    keys: [
      rms,
      theta(10000),
      rotary(s.dqk),
      ['rope.scaling.original_context_length', u32, original],
      ['rope.scaling.attn_factor', f32, 1.19],
    ],
    top: [
      outputNorm(s),
      // Small: llama.cpp's rounding of queries and weights to f16 must stay below the bound.
      untied(s, 0.7),
      tensor('rope_factors_long', [s.dqk / 2], { values: longFactors }),
      tensor('rope_factors_short', [s.dqk / 2], { values: shortFactors }),
    ],
    block: () => [
      ...preNorm(s),
      ...fusedAttention(s, { gain: 1.1 }),
      tensor('ffn_up', [s.d, 2 * s.ff]),
      tensor('ffn_down', [s.ff, s.d]),
    ],
  }));

/** Fused QKV, LayerNorms and biases everywhere, a plain GELU feed-forward: the families of GPT-2's time. */
function gptLike(settings, { keys = [], top = () => [], bias = true } = {}) {
  const shape = { heads: 5, kv: 5, d: 80, ...settings };
  return family(shape, (s) => ({
    keys: [layerNorm, ...keys],
    top: [outputNorm(s, { bias }), ...top(s)],
    block: () => [
      norm('attn_norm', s.d, { bias }),
      norm('ffn_norm', s.d, { bias }),
      ...fusedAttention(s, { bias }),
      ...plainFeedForward(s, { bias }),
    ],
  }));
}

// Where experts are many, an f16 cache's rounding would change which are chosen: attention adds little there.
const kSmallOutput = 0.2;

const mla = { layers: 3, d: 64, heads: 4, kv: 1, nope: 16, rope: 8, rank: 24, v: 12 };
function deepseek2({ qRank, sigmoid, keys = [] }) {
  const { nope, rope, rank, v } = mla;
  // llama.cpp knows a model without a compressed query by its number of layers.
  const layers = qRank ? mla.layers : 27;
  const settings = { ...mla, layers, arch: 'deepseek2', dqk: rank + rope, dv: rank };
  return family(settings, (s) => ({
    keys: [
      rms,
      theta(10000),
      ...widths(s),
      rotary(rope),
      ['attention.key_length_mla', u32, nope + rope],
      ['attention.value_length_mla', u32, v],
      ['attention.kv_lora_rank', u32, rank],
      ...(qRank ? [['attention.q_lora_rank', u32, qRank]] : []),
      ['leading_dense_block_count', u32, 1],
      ['expert_feed_forward_length', u32, 40],
      ['expert_count', u32, 6],
      ['expert_used_count', u32, 2],
      ['expert_shared_count', u32, 2],
      ['expert_weights_scale', f32, 1.5],
      ['expert_weights_norm', bool, sigmoid],
      ['expert_gating_func', u32, sigmoid ? 2 : 1],
      ...keys,
    ],
    top: [outputNorm(s), untied(s, qRank ? 1 : 0.5)],
    block: (i) => [
      ...preNorm(s),
      ...(qRank
        ? [
            tensor('attn_q_a', [s.d, qRank]),
            norm('attn_q_a_norm', qRank),
            tensor('attn_q_b', [qRank, s.heads * (nope + rope)], { gain: 2 }),
          ]
        : [tensor('attn_q', [s.d, s.heads * (nope + rope)], { gain: 2 })]),
      tensor('attn_kv_a_mqa', [s.d, rank + rope]),
      norm('attn_kv_a_norm', rank),
      tensor('attn_k_b', [nope, rank, s.heads]),
      tensor('attn_v_b', [rank, v, s.heads]),
      tensor('attn_output', [s.heads * v, s.d], { gain: qRank ? 1 : kSmallOutput / 8 }),
      ...(i < 1
        ? feedForward(s)
        : [
            ...mixture(s, { experts: 6, ff: 40, bias: sigmoid }),
            ...feedForward({ ...s, ff: 80 }, '_shexp'),
          ]),
    ],
  }));
}

/** @type {Record<string, Family>} */
export const families = {
  llama: llamaLike({ arch: 'llama', dqk: 24, dv: 24, heads: 9, kv: 3 }),
  llama3: llamaLike(
    { arch: 'llama' },
    { keys: [], top: [tensor('rope_freqs', [8], { values: llama3Factors })] },
  ),
  llama_yarn: llamaLike(
    { arch: 'llama' },
    {
      keys: [
        ['rope.scaling.type', string, 'yarn'],
        ['rope.scaling.factor', f32, 4],
        ['rope.scaling.original_context_length', u32, 64],
      ],
    },
  ),
  llama_linear: llamaLike(
    { arch: 'llama' },
    {
      keys: [
        ['rope.scaling.type', string, 'linear'],
        ['rope.scaling.factor', f32, 3],
      ],
    },
  ),
  qwen2: llamaLike({ arch: 'qwen2' }, { attend: { qkvBias: true } }),
  qwen3: llamaLike({ arch: 'qwen3', dqk: 24, dv: 24 }, { also: headNorms }),
  gemma: llamaLike({ arch: 'gemma', dqk: 24, dv: 24, embeddingGain: 1 }),
  gemma2: llamaLike(
    { arch: 'gemma2', dqk: 24, dv: 24 },
    {
      keys: [
        ['attention.sliding_window', u32, 12],
        ['attn_logit_softcapping', f32, 3],
        ['final_logit_softcapping', f32, 5],
      ],
      also: sandwich,
    },
  ),
  gemma3: llamaLike(
    { arch: 'gemma3', layers: 7, dqk: 24, dv: 24, embeddingGain: 1 },
    {
      // Of the one layer without a window; the others have a base of 10000 and no scaling.
      base: 1e6,
      keys: [
        ['attention.sliding_window', u32, 12],
        ['rope.scaling.type', string, 'linear'],
        ['rope.scaling.factor', f32, 4],
      ],
      also: (s) => [...sandwich(s), ...headNorms(s)],
    },
  ),
  phi3_long: phi3(128, 256),
  phi3_short: phi3(4096, 256),
  gpt2: gptLike({ arch: 'gpt2' }, { top: (s) => [tensor('position_embd', [s.d, 256])] }),
  bloom: gptLike({ arch: 'bloom' }, { top: (s) => [norm('token_embd_norm', s.d, { bias: true })] }),
  mpt: gptLike({ arch: 'mpt' }, { bias: false, keys: [['attention.max_alibi_bias', f32, 8]] }),
  gptneox: gptLike(
    { arch: 'gptneox', dqk: 16 },
    {
      keys: [theta(10000), rotary(8), ['use_parallel_residual', bool, true]],
      top: (s) => [untied(s, 1.5)],
    },
  ),
  smollm3: llamaLike({ arch: 'smollm3', layers: 5 }),
  olmo2: family({ arch: 'olmo2' }, (s) => ({
    keys: [rms, theta(10000), rotary(s.dqk)],
    top: [outputNorm(s), untied(s, 1.5)],
    block: () => [
      ...attention(s),
      ...sandwich(s),
      norm('attn_q_norm', s.heads * s.dqk),
      norm('attn_k_norm', s.kv * s.dqk),
      ...feedForward(s),
    ],
  })),
  stablelm: family({ arch: 'stablelm' }, (s) => ({
    keys: [layerNorm, theta(10000), rotary(8), ['use_parallel_residual', bool, true]],
    top: [outputNorm(s, { bias: true }), untied(s, 1.5)],
    block: () => [
      norm('attn_norm', s.d, { bias: true }),
      norm('ffn_norm', s.d, { bias: true }),
      ...attention(s, { qkvBias: true }),
      ...feedForward(s),
    ],
  })),
  starcoder2: family({ arch: 'starcoder2' }, (s) => ({
    keys: [layerNorm, theta(10000), rotary(s.dqk)],
    top: [outputNorm(s, { bias: true })],
    block: () => [
      norm('attn_norm', s.d, { bias: true }),
      norm('ffn_norm', s.d, { bias: true }),
      ...attention(s, { qkvBias: true, outBias: true }),
      ...plainFeedForward(s, { bias: true }),
    ],
  })),
  qwen3moe: family({ arch: 'qwen3moe' }, (s) => ({
    keys: [
      rms,
      theta(10000),
      ...widths(s),
      rotary(s.dqk),
      ['expert_count', u32, 6],
      ['expert_used_count', u32, 2],
      ['expert_feed_forward_length', u32, 40],
    ],
    top: [outputNorm(s), untied(s, 1.2)],
    block: () => [
      ...preNorm(s),
      ...attention(s),
      ...headNorms(s),
      ...mixture(s, { experts: 6, ff: 40 }),
    ],
  })),
  deepseek2: deepseek2({ qRank: 32, sigmoid: true }),
  deepseek2_lite: deepseek2({ qRank: 0, sigmoid: false }),
  // Whose scores are scaled by mscale^2 instead of the rotation's magnitude.
  deepseek2_yarn: deepseek2({
    qRank: 32,
    sigmoid: true,
    keys: [
      ['rope.scaling.type', string, 'yarn'],
      ['rope.scaling.factor', f32, 4],
      ['rope.scaling.original_context_length', u32, 64],
      ['rope.scaling.yarn_log_multiplier', f32, 0.0707],
    ],
  }),
  gpt_oss: family({ arch: 'gpt-oss' }, (s) => ({
    keys: [
      rms,
      theta(10000),
      ...widths(s),
      ['attention.sliding_window', u32, 12],
      ['expert_count', u32, 4],
      ['expert_used_count', u32, 2],
      ['expert_feed_forward_length', u32, 40],
      ['rope.scaling.type', string, 'yarn'],
      ['rope.scaling.factor', f32, 4],
      ['rope.scaling.original_context_length', u32, 64],
    ],
    top: [outputNorm(s), untied(s, 0.7)],
    block: () => [
      norm('attn_norm', s.d),
      norm('post_attention_norm', s.d),
      ...attention(s, { qkvBias: true, outBias: true, outGain: kSmallOutput }),
      tensor('attn_sinks', [s.heads], { gain: 4 }),
      ...mixture(s, { experts: 4, ff: 40, biases: true }),
    ],
  })),
};

/** The key-values of a family's file, the vocabulary apart. */
export function familyKeys(name) {
  const f = families[name];
  const own = [
    ['block_count', u32, f.layers],
    ['context_length', u32, 256],
    ['embedding_length', u32, f.d],
    ['feed_forward_length', u32, f.ff],
    ['attention.head_count', u32, f.heads],
    ['attention.head_count_kv', u32, f.kv],
    ['vocab_size', u32, f.vocab],
    ...f.keys,
  ];
  return [
    ['general.architecture', string, f.arch],
    // llama.cpp takes some names for a vocabulary's.
    ['general.name', string, 'random weights'],
    ...own.map(([key, type, value]) => [`${f.arch}.${key}`, type, value]),
  ];
}
