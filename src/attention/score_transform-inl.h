// What happens to scaled scores q.k between the key product and the softmax, four at a time; the
// one place where score modifiers join, for both fast kernels.
#ifndef HEADLIGHT_ATTENTION_SCORE_TRANSFORM_INL_H_
#define HEADLIGHT_ATTENTION_SCORE_TRANSFORM_INL_H_

#include <hwy/contrib/math/math-inl.h>

#include "simd/part.h"
#include "simd/relaxed.h"

namespace headlight {

// cap * tanh(s / cap) in place on n vectors, `stride` floats apart. Highway's Tanh: at most 4 ulp.
inline void SoftcapScores(float cap, float* scores, size_t n, size_t stride) {
  constexpr F32x4 kF32;
  const VecF32 inverse = hn::Set(kF32, 1.0f / cap);
  for (size_t i = 0; i < n; ++i) {
    float* s = scores + i * stride;
    const VecF32 capped = hn::CallTanh(kF32, hn::Mul(hn::Load(kF32, s), inverse));
    hn::Store(hn::Mul(capped, hn::Set(kF32, cap)), kF32, s);
  }
}

// s -= slope * |pos - key| in place for n vectors from `key` on. Positions are exact below 2^24.
inline void AddAlibi(float slope, size_t pos, size_t key, float* scores, size_t n) {
  constexpr F32x4 kF32;
  const VecF32 factor = hn::Set(kF32, -slope);
  const VecF32 four = hn::Set(kF32, 4.0f);
  VecF32 distance =
      hn::Iota(kF32, static_cast<float>(static_cast<double>(key) - static_cast<double>(pos)));
  for (size_t i = 0; i < n; ++i) {
    const VecF32 bias = hn::Mul(hn::Abs(distance), factor);
    hn::Store(hn::Add(hn::Load(kF32, scores + 4 * i), bias), kF32, scores + 4 * i);
    distance = hn::Add(distance, four);
  }
}

// s += mask in place on n scores; whole vectors of scores are read and written.
inline void AddMask(const float* mask, float* scores, size_t n) {
  constexpr F32x4 kF32;
  for (size_t i = 0; i < n; i += 4) {
    const VecF32 bias = LoadPart(mask + i, n - i);
    hn::Store(hn::Add(hn::Load(kF32, scores + i), bias), kF32, scores + i);
  }
}

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_SCORE_TRANSFORM_INL_H_
