// Heads of the oracle that blend values by a fixed pattern; for oracle.cc.
#ifndef HEADLIGHT_TESTS_ORACLE_ORACLE_PATTERNS_H_
#define HEADLIGHT_TESTS_ORACLE_ORACLE_PATTERNS_H_

#include <algorithm>
#include <vector>

#include "oracle/oracle.h"

namespace headlight {

inline std::vector<OracleFixedHead> FixedHeadsOf(const OracleModel& model, size_t layer) {
  std::vector<OracleFixedHead> fixed;
  for (const OracleFixedHead& head : model.fixed) {
    if (head.layer == layer) fixed.push_back(head);
  }
  return fixed;
}

// Weights of a pattern for the last of n rows.
inline std::vector<double> WeightsOf(const FixedPattern& pattern, size_t n) {
  const size_t pos = n - 1;
  std::vector<double> weights(n, 0.0);
  switch (pattern.kind) {
    case PatternKind::kShift:
      weights[pos < pattern.offset ? 0 : pos - pattern.offset] = 1.0;
      break;
    case PatternKind::kPrefixMean:
      weights.assign(n, 1.0);
      break;
    case PatternKind::kFirstRow:
      weights[0] = 1.0;
      break;
    case PatternKind::kByOffset:
      weights[0] = static_cast<double>(pattern.first);
      for (size_t o = 0; o < pattern.by_offset.size() && o <= pos; ++o) {
        weights[pos - o] += static_cast<double>(pattern.by_offset[o]);
      }
      break;
  }
  double sum = 0.0;
  for (const double weight : weights) sum += weight;
  for (double& weight : weights) weight /= sum;
  return weights;
}

// out[d_v]: the blend of a KV head's values.
template <class Attention>
void Blend(const Attention& a, const std::vector<double>& weights, size_t kv_head, double* out) {
  const size_t d_v = a.layer.heads.d_v;
  std::fill(out, out + d_v, 0.0);
  for (size_t t = 0; t < weights.size(); ++t) {
    for (size_t i = 0; i < d_v; ++i) out[i] += weights[t] * a.values[t][kv_head * d_v + i];
  }
}

// Fixed heads of the oracle stand in the place of the head they replace; those of a layer's own
// spec follow the others.
template <class Attention>
void BlendFixedHeads(const Attention& a, std::vector<double>& out) {
  const HeadLayout& heads = a.layer.heads;
  for (const OracleFixedHead& fixed : a.fixed) {
    Blend(a, WeightsOf(fixed.pattern, a.values.size()), fixed.head / heads.n_q_per_kv(),
          out.data() + fixed.head * heads.d_v);
  }
  for (const FixedHead& fixed : a.layer.fixed_heads) {
    out.resize(out.size() + heads.d_v);
    Blend(a, WeightsOf(fixed.pattern, a.values.size()), fixed.kv_head,
          out.data() + out.size() - heads.d_v);
  }
}

}  // namespace headlight

#endif  // HEADLIGHT_TESTS_ORACLE_ORACLE_PATTERNS_H_
