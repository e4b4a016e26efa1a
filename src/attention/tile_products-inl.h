// The two products of attention over tiles of float32 cache rows: queries against keys, weights
// against values. A few query rows share each loaded vector in registers. Private to
// src/attention.
#ifndef HEADLIGHT_ATTENTION_TILE_PRODUCTS_INL_H_
#define HEADLIGHT_ATTENTION_TILE_PRODUCTS_INL_H_

#include <algorithm>
#include <cstddef>

#include "attention/scratch.h"
#include "simd/relaxed.h"

namespace headlight {

// How many keys, and how many vectors of a value, one, two or three query rows take at a time: as
// many accumulators as stay in registers beside the operands (x86 has 16, of which V8 keeps one).
inline constexpr size_t kScoreKeys[] = {0, 8, 4, 3};
inline constexpr size_t kValueVecs[] = {0, 8, 4, 3};

// A few query rows against a tile of keys. `weights` are scores before and weights after the
// softmax.
struct Group {
  const float* q;  // [n, q_stride]
  size_t q_stride;
  float* weights;  // [n, kScoreStride] from the tile's first key
  float* acc;      // [n, acc_stride]
  size_t acc_stride;
};

// Lane i of the result is the sum of the lanes of the i-th argument, (0 + 2) + (1 + 3).
HWY_INLINE VecF32 SumsOfLanes(VecF32 a0, VecF32 a1, VecF32 a2, VecF32 a3) {
  constexpr F32x4 kF32;
  const VecF32 ab = hn::Add(hn::InterleaveLower(kF32, a0, a1), hn::InterleaveUpper(kF32, a0, a1));
  const VecF32 cd = hn::Add(hn::InterleaveLower(kF32, a2, a3), hn::InterleaveUpper(kF32, a2, a3));
  return hn::Add(hn::ConcatLowerLower(kF32, cd, ab), hn::ConcatUpperUpper(kF32, cd, ab));
}

// weights[row][key] = k[key] . q[row] for kRows rows and n_keys keys, kKeys at a time; k [n_keys,
// stride].
template <size_t kRows, size_t kKeys>
HWY_NOINLINE void ScoreTile(const float* k, size_t stride, size_t n_keys, const Group& group) {
  constexpr F32x4 kF32;
  for (size_t key = 0; key < n_keys; key += kKeys) {
    // Past the last key its row is read again: rows that are not live are never touched.
    const float* keys[kKeys];
    for (size_t j = 0; j < kKeys; ++j) keys[j] = k + std::min(key + j, n_keys - 1) * stride;
    VecF32 acc[kRows][RoundUp(kKeys, 4)];
    for (auto& row : acc) {
      for (VecF32& a : row) a = hn::Zero(kF32);
    }
    for (size_t i = 0; i < stride; i += 4) {
      VecF32 q[kRows];
      for (size_t r = 0; r < kRows; ++r) q[r] = hn::Load(kF32, group.q + r * group.q_stride + i);
      for (size_t j = 0; j < kKeys; ++j) {
        const VecF32 x = hn::Load(kF32, keys[j] + i);
        for (size_t r = 0; r < kRows; ++r) acc[r][j] = MulAdd(x, q[r], acc[r][j]);
      }
    }
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t j = 0; j < kKeys; j += 4) {
        hn::StoreU(SumsOfLanes(acc[r][j], acc[r][j + 1], acc[r][j + 2], acc[r][j + 3]), kF32,
                   group.weights + r * kScoreStride + key + j);
      }
    }
  }
}

// acc[row][i] += sum over n_keys keys of weights[row][key] * v[key][i] for kRows rows and kVecs
// vectors from column i.
template <size_t kRows, size_t kVecs>
HWY_INLINE void AccumulateStrip(const float* v, size_t stride, size_t n_keys, const Group& group,
                                size_t column) {
  constexpr F32x4 kF32;
  VecF32 acc[kRows][kVecs];
  for (size_t r = 0; r < kRows; ++r) {
    const float* src = group.acc + r * group.acc_stride + column;
    for (size_t j = 0; j < kVecs; ++j) acc[r][j] = hn::Load(kF32, src + 4 * j);
  }
  for (size_t key = 0; key < n_keys; ++key) {
    const float* value = PinPointer(v + key * stride + column);
    const float* weights = PinPointer(group.weights + key);
    VecF32 weight[kRows];
    for (size_t r = 0; r < kRows; ++r) weight[r] = hn::Set(kF32, weights[r * kScoreStride]);
    for (size_t j = 0; j < kVecs; ++j) {
      const VecF32 x = hn::Load(kF32, value + 4 * j);
      for (size_t r = 0; r < kRows; ++r) acc[r][j] = MulAdd(x, weight[r], acc[r][j]);
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    float* dst = group.acc + r * group.acc_stride + column;
    for (size_t j = 0; j < kVecs; ++j) hn::Store(acc[r][j], kF32, dst + 4 * j);
  }
}

// v [n_keys, width], rows stride apart; width a multiple of 4.
template <size_t kRows, size_t kVecs>
HWY_NOINLINE void AccumulateTile(const float* v, size_t stride, size_t width, size_t n_keys,
                                 const Group& group) {
  size_t column = 0;
  for (; column + 4 * kVecs <= width; column += 4 * kVecs) {
    AccumulateStrip<kRows, kVecs>(v, stride, n_keys, group, column);
  }
  for (; column < width; column += 4) AccumulateStrip<kRows, 1>(v, stride, n_keys, group, column);
}

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_TILE_PRODUCTS_INL_H_
