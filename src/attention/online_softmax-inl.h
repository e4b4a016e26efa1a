// Online softmax (arXiv 1805.02867, 2205.14135): the (max, sum, acc) state of the keys seen so far.
// UpdateSoftmax makes it of a chunk of scores, MergeSoftmax joins the states of two parts of a row.
// It knows nothing of keys, values or masks.
#ifndef HEADLIGHT_ATTENTION_ONLINE_SOFTMAX_INL_H_
#define HEADLIGHT_ATTENTION_ONLINE_SOFTMAX_INL_H_

#include <cstddef>
#include <limits>

#include "simd/exp-inl.h"
#include "simd/relaxed.h"

namespace headlight {

// For scores s_j and values v_j seen so far: max = max s_j, sum = sum e^(s_j - max), and whoever
// holds the state holds acc = sum e^(s_j - max) v_j. The row's result is acc / sum.
struct SoftmaxState {
  float max;
  float sum;
};

// A masked score: its weight is exactly 0.
inline constexpr float kMaskedScore = -std::numeric_limits<float>::infinity();

// Nothing seen. The maximum is finite, so that a row whose scores are all masked so far never meets
// inf - inf.
inline constexpr SoftmaxState kEmptySoftmax = {std::numeric_limits<float>::lowest(), 0.0f};

// Replaces the scores of a chunk, n_vecs vectors of four, by their weights e^(s - max) and returns
// the chunk's state. Weights are added by place modulo 4, then 0 + 2 and 1 + 3, then those.
inline SoftmaxState UpdateSoftmax(float* scores, size_t n_vecs) {
  constexpr F32x4 kF32;
  VecF32 max = hn::Set(kF32, kEmptySoftmax.max);
  for (size_t i = 0; i < n_vecs; ++i) max = hn::Max(max, hn::Load(kF32, scores + 4 * i));
  max = hn::MaxOfLanes(kF32, max);
  VecF32 sum = hn::Zero(kF32);
  for (size_t i = 0; i < n_vecs; ++i) {
    const VecF32 weight = ExpF32(kF32, hn::Sub(hn::Load(kF32, scores + 4 * i), max));
    sum = hn::Add(sum, weight);
    hn::Store(weight, kF32, scores + 4 * i);
  }
  const VecF32 halves = hn::Add(sum, hn::Shuffle1032(sum));
  return {hn::GetLane(max), hn::GetLane(hn::Add(halves, hn::Shuffle2301(halves)))};
}

// What acc of either part has to be multiplied with before they are added.
struct MergeFactors {
  VecF32 into;
  VecF32 part;
};

// Joins another part of the same row into `state`.
HWY_INLINE MergeFactors MergeSoftmax(const SoftmaxState& part, SoftmaxState& state) {
  constexpr F32x4 kF32;
  const float max = part.max > state.max ? part.max : state.max;
  const VecF32 into = ExpF32(kF32, hn::Set(kF32, state.max - max));
  const VecF32 factor = ExpF32(kF32, hn::Set(kF32, part.max - max));
  state.sum = state.sum * hn::GetLane(into) + part.sum * hn::GetLane(factor);
  state.max = max;
  return {into, factor};
}

// 1 / sum, and 0 for a row that saw no unmasked score, whose result is then zeros.
inline float InverseSum(const SoftmaxState& state) {
  return state.sum > 0.0f ? 1.0f / state.sum : 0.0f;
}

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_ONLINE_SOFTMAX_INL_H_
