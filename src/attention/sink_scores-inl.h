// Scores of sinks behind a window, which meet a query of their own (AttentionArgs::q_sinks). For
// attention_chunk.cc.
#ifndef HEADLIGHT_ATTENTION_SINK_SCORES_INL_H_
#define HEADLIGHT_ATTENTION_SINK_SCORES_INL_H_

#include <algorithm>
#include <cstddef>

#include "attention/attention_chunk.h"
#include "attention/key_range.h"
#include "attention/scratch.h"
#include "simd/relaxed.h"

namespace headlight {

// In the place of the scores of the rows' own queries, which begin at key all.begin. The keys are
// made floats in scratch.rows, at most kMaxSinks of them: few, so a plain dot each.
inline void ScoreSinks(const AttentionSpec& spec, const KvHeadView& kv, const ChunkRows& rows,
                       KeyRange all, const AttentionScratch& scratch) {
  const size_t n_sinks = std::min(spec.n_sinks, all.end);
  const size_t d_qk = spec.layout.d_qk;
  constexpr F32x4 kF32;
  bool has_keys = false;
  for (size_t row = 0; row < rows.n_rows; ++row) {
    const float* q = rows.biases[row].q_sinks;
    const KeyRange own = rows.keys[row];
    if (q == nullptr || own.begin >= std::min(own.end, n_sinks)) continue;
    for (size_t i = 0; !has_keys && i < n_sinks * d_qk; ++i) {
      scratch.rows[i] = kv.KeyAt(i / d_qk, i % d_qk);
    }
    has_keys = true;
    float* scores = scratch.scores + row * kScoreStride;
    for (size_t key = own.begin; key < std::min(own.end, n_sinks); ++key) {
      const float* k = scratch.rows + key * d_qk;
      VecF32 sum = hn::Zero(kF32);
      for (size_t i = 0; i < d_qk; i += 4) {
        const size_t n = std::min<size_t>(d_qk - i, 4);
        sum = MulAdd(hn::LoadN(kF32, k + i, n), hn::LoadN(kF32, q + i, n), sum);
      }
      scores[key - all.begin] = hn::ReduceSum(kF32, sum) * spec.scale;
    }
  }
}

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_SINK_SCORES_INL_H_
