// What happens to scaled scores q.k between the key product and the softmax, four at a time; the
// one place where score modifiers join, for both fast kernels.
#ifndef HEADLIGHT_ATTENTION_SCORE_TRANSFORM_INL_H_
#define HEADLIGHT_ATTENTION_SCORE_TRANSFORM_INL_H_

#include <hwy/contrib/math/math-inl.h>

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

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_SCORE_TRANSFORM_INL_H_
