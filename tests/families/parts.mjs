// Groups of tensors that families share. A tensor: its name without `.weight`, its dims (columns first) and what it is
// filled with: a random matrix of spread gain / sqrt(columns), a norm around one, a small bias, or given values.

/** @param {{gain?: number, values?: number[], suffix?: string, kind?: string}} [options] */
export function tensor(name, dims, { suffix = 'weight', ...fill } = {}) {
  return { name: `${name}.${suffix}`, dims, kind: 'matrix', ...fill };
}

const bias = (name, n) => tensor(name, n, { suffix: 'bias', kind: 'bias' });

export function norm(name, n, { bias: withBias = false } = {}) {
  return [tensor(name, [n], { kind: 'norm' }), ...(withBias ? [bias(name, [n])] : [])];
}

/** Queries and keys are larger, so that a row of attention is far from uniform. */
const kQueryGain = 1.4;

export function attention(
  { d, heads, kv, dqk, dv },
  { qkvBias = false, outBias = false, outGain = 1 } = {},
) {
  const product = (name, cols, rows, withBias, gain) => [
    tensor(name, [cols, rows], { gain }),
    ...(withBias ? [bias(name, [rows])] : []),
  ];
  return [
    ...product('attn_q', d, heads * dqk, qkvBias, kQueryGain),
    ...product('attn_k', d, kv * dqk, qkvBias, 1),
    ...product('attn_v', d, kv * dv, qkvBias, 1),
    ...product('attn_output', heads * dv, d, outBias, outGain),
  ];
}

export function fusedAttention(
  { d, heads, kv, dqk, dv },
  { bias: withBias = false, gain = kQueryGain } = {},
) {
  const rows = heads * dqk + kv * (dqk + dv);
  return [
    tensor('attn_qkv', [d, rows], { gain }),
    tensor('attn_output', [heads * dv, d]),
    ...(withBias ? [bias('attn_qkv', [rows]), bias('attn_output', [d])] : []),
  ];
}

export function feedForward({ d, ff }, suffix = '') {
  return [
    tensor(`ffn_gate${suffix}`, [d, ff]),
    tensor(`ffn_up${suffix}`, [d, ff]),
    tensor(`ffn_down${suffix}`, [ff, d]),
  ];
}

export function plainFeedForward({ d, ff }, { bias: withBias = false } = {}) {
  return [
    tensor('ffn_up', [d, ff]),
    tensor('ffn_down', [ff, d]),
    ...(withBias ? [bias('ffn_up', [ff]), bias('ffn_down', [d])] : []),
  ];
}

/** Experts of width `ff`. The router's spread is wide: two engines must not choose differently for a rounding. */
export function mixture({ d }, { experts, ff, bias: choiceBias = false, biases = false }) {
  return [
    tensor('ffn_gate_inp', [d, experts], { gain: 4 }),
    tensor('ffn_gate_exps', [d, ff, experts]),
    tensor('ffn_up_exps', [d, ff, experts]),
    tensor('ffn_down_exps', [ff, d, experts]),
    ...(choiceBias ? [bias('exp_probs_b', [experts])] : []),
    ...(biases
      ? [
          bias('ffn_gate_inp', [experts]),
          bias('ffn_gate_exps', [ff, experts]),
          bias('ffn_up_exps', [ff, experts]),
          bias('ffn_down_exps', [d, experts]),
        ]
      : []),
  ];
}
