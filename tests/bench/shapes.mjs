// Shapes that benchmarks run on, by name. Weights are random: speed and memory do not depend on them.

/**
 * @typedef {{layers: number, d: number, heads: number, kv: number, dqk: number, dv: number, ffn: number, vocab: number,
 *   ctx: number}} Shape
 * @type {Record<string, Shape>}
 */
export const shapes = {
  // SmolLM2-135M and -360M (their model cards)
  smol135: {
    layers: 30,
    d: 576,
    heads: 9,
    kv: 3,
    dqk: 64,
    dv: 64,
    ffn: 1536,
    vocab: 49152,
    ctx: 2048,
  },
  smol360: {
    layers: 32,
    d: 960,
    heads: 15,
    kv: 5,
    dqk: 64,
    dv: 64,
    ffn: 2560,
    vocab: 49152,
    ctx: 2048,
  },
  // The attention of Needle 3 (12 query heads on 2 KV heads, keys of 48, values of 64) with a gated feed-forward
  needle: {
    layers: 20,
    d: 768,
    heads: 12,
    kv: 2,
    dqk: 48,
    dv: 64,
    ffn: 2048,
    vocab: 8192,
    ctx: 2048,
  },
  // Qwen2.5-0.5B's widths and Llama 3.2 1B's
  qwen05: {
    layers: 24,
    d: 896,
    heads: 14,
    kv: 2,
    dqk: 64,
    dv: 64,
    ffn: 4864,
    vocab: 151936,
    ctx: 2048,
  },
  llama1b: {
    layers: 16,
    d: 2048,
    heads: 32,
    kv: 8,
    dqk: 64,
    dv: 64,
    ffn: 8192,
    vocab: 128256,
    ctx: 2048,
  },
  // For a quick look that the benchmark itself works
  tiny: { layers: 2, d: 192, heads: 6, kv: 2, dqk: 32, dv: 32, ffn: 512, vocab: 2048, ctx: 2048 },
};

/** Weights that take part in one token's matrix products: every matrix once, the embedding as the head. */
export function parametersUsed({ layers, d, heads, kv, dqk, dv, ffn, vocab }) {
  return vocab * d + layers * d * (heads * (dqk + dv) + kv * (dqk + dv) + 3 * ffn);
}

/** Bytes that one token adds to a cache of `type`: padded to 16 bytes a row, int8 rows with a scale of two. */
export function kvBytesPerToken({ layers, kv, dqk, dv }, type) {
  const bytes = { f32: 4, f16: 2, int8: 1 }[type];
  const row = (d) => Math.ceil((d * bytes) / 16) * 16 + (type === 'int8' ? 2 : 0);
  return layers * kv * (row(dqk) + row(dv));
}
