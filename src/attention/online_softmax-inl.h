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

// Four partial sums, of the terms whose index is 0, 1, 2 and 3 modulo 4, in the order in which both kernels add such sums.
HWY_INLINE VecF32 SumOfFour(VecF32 a0, VecF32 a1, VecF32 a2, VecF32 a3) {
  return hn::Add(hn::Add(a0, a2), hn::Add(a1, a3));
}

// The same of the four lanes, in every lane.
HWY_INLINE VecF32 SumOfFourLanes(VecF32 a) {
  const VecF32 halves = hn::Add(a, hn::Shuffle1032(a));  // 0 + 2, 1 + 3
  return hn::Add(halves, hn::Shuffle2301(halves));
}

// Maximum and sum of a chunk of keys: replaces each of n vectors of scores, `stride` floats apart, by its weight e^(s - max).
// With kRows the vectors are keys and n is their number; with kOneRow a vector is four keys. The first key's place in the
// chunk is a multiple of 4, so that both add the same weights in the same order.
template <SoftmaxLanes kLanes>
HWY_INLINE SoftmaxState SoftmaxOfChunk(float* scores, size_t n, size_t stride) {
  constexpr F32x4 kF32;
  SoftmaxState state = EmptySoftmax();
  for (size_t i = 0; i < n; ++i) state.max = hn::Max(state.max, hn::Load(kF32, scores + i * stride));
  if constexpr (kLanes == SoftmaxLanes::kOneRow) state.max = hn::MaxOfLanes(kF32, state.max);
  const auto weigh = [&](size_t i) HWY_ATTR {
    float* s = scores + i * stride;
    const VecF32 weight = ExpF32(kF32, hn::Sub(hn::Load(kF32, s), state.max));
    hn::Store(weight, kF32, s);
    return weight;
  };
  if constexpr (kLanes == SoftmaxLanes::kOneRow) {
    VecF32 sum = hn::Zero(kF32);
    for (size_t i = 0; i < n; ++i) sum = hn::Add(sum, weigh(i));
    state.sum = SumOfFourLanes(sum);
  } else {
    VecF32 sum[4] = {hn::Zero(kF32), hn::Zero(kF32), hn::Zero(kF32), hn::Zero(kF32)};
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
      for (size_t j = 0; j < 4; ++j) sum[j] = hn::Add(sum[j], weigh(i + j));
    }
    for (size_t j = 0; i < n; ++i, ++j) sum[j] = hn::Add(sum[j], weigh(i));
    state.sum = SumOfFour(sum[0], sum[1], sum[2], sum[3]);
  }
  return state;
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
