// Online softmax (arXiv 1805.02867, 2205.14135): the (max, sum, acc) state of scores seen so far, with Update for the next
// tile of scores and Merge for two parts of a row. Both fast kernels are made of it: in attention_tiled a lane is a
// query, in attention_decode the four lanes are four keys of one query. It knows nothing of keys, values or masks.
#ifndef HEADLIGHT_ATTENTION_ONLINE_SOFTMAX_INL_H_
#define HEADLIGHT_ATTENTION_ONLINE_SOFTMAX_INL_H_

#include <cstddef>
#include <limits>

#include "simd/exp-inl.h"
#include "simd/relaxed.h"

namespace headlight {

// For scores s_j and values v_j seen so far: max = max s_j, sum = sum e^(s_j - max), and the kernel holds
// acc = sum e^(s_j - max) v_j. The row's result is acc / sum.
struct SoftmaxState {
  VecF32 max;
  VecF32 sum;
};

// A masked score: its weight is exactly 0.
inline constexpr float kMaskedScore = -std::numeric_limits<float>::infinity();

// Nothing seen. The maximum starts finite, so that a row whose scores are all masked so far never meets inf - inf.
HWY_INLINE SoftmaxState EmptySoftmax() {
  constexpr F32x4 kF32;
  return {hn::Set(kF32, std::numeric_limits<float>::lowest()), hn::Zero(kF32)};
}

// Raises the maximum to cover scores up to tile_max and returns the factor that turns what was accumulated under the old
// maximum into what it is under the new one; 1 if the maximum stays.
HWY_INLINE VecF32 RaiseMax(VecF32 tile_max, SoftmaxState& state) {
  constexpr F32x4 kF32;
  const VecF32 max = hn::Max(state.max, tile_max);
  const VecF32 factor = ExpF32(kF32, hn::Sub(state.max, max));
  state.sum = hn::Mul(state.sum, factor);
  state.max = max;
  return factor;
}

// Whether the lanes are rows of their own, or four interleaved parts of one row that need a common maximum.
enum class SoftmaxLanes { kRows, kOneRow };

// Takes the next n vectors of scores, `stride` floats apart, into the state, replaces each by its weight e^(s - max), and
// returns the factor for acc. With kOneRow `sum` holds four partial sums (hn::SumOfLanes at the end).
template <SoftmaxLanes kLanes>
HWY_INLINE VecF32 UpdateSoftmax(float* scores, size_t n, size_t stride, SoftmaxState& state) {
  constexpr F32x4 kF32;
  VecF32 tile_max = hn::Set(kF32, kMaskedScore);
  for (size_t i = 0; i < n; ++i) tile_max = hn::Max(tile_max, hn::Load(kF32, scores + i * stride));
  if constexpr (kLanes == SoftmaxLanes::kOneRow) tile_max = hn::MaxOfLanes(kF32, tile_max);
  const VecF32 factor = RaiseMax(tile_max, state);
  for (size_t i = 0; i < n; ++i) {
    float* s = scores + i * stride;
    const VecF32 weight = ExpF32(kF32, hn::Sub(hn::Load(kF32, s), state.max));
    state.sum = hn::Add(state.sum, weight);
    hn::Store(weight, kF32, s);
  }
  return factor;
}

// What acc of either part has to be multiplied with before they are added.
struct MergeFactors {
  VecF32 into;
  VecF32 part;
};

// Joins another part of the same row into `state`.
HWY_INLINE MergeFactors MergeSoftmax(const SoftmaxState& part, SoftmaxState& state) {
  constexpr F32x4 kF32;
  const VecF32 into = RaiseMax(part.max, state);
  const VecF32 factor = ExpF32(kF32, hn::Sub(part.max, state.max));
  state.sum = hn::Add(state.sum, hn::Mul(part.sum, factor));
  return {into, factor};
}

// 1 / sum, and 0 for a row that saw no unmasked score, whose result is then zeros.
HWY_INLINE VecF32 InverseSum(VecF32 sum) {
  constexpr F32x4 kF32;
  return hn::IfThenElseZero(hn::Gt(sum, hn::Zero(kF32)), hn::Div(hn::Set(kF32, 1.0f), sum));
}

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_ONLINE_SOFTMAX_INL_H_
