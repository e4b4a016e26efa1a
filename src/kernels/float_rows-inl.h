// Walking over a row of floats, four at a time and then the rest. For the float work between the
// matrix products.
#ifndef HEADLIGHT_KERNELS_FLOAT_ROWS_INL_H_
#define HEADLIGHT_KERNELS_FLOAT_ROWS_INL_H_

#include <cstddef>

#include "simd/relaxed.h"

namespace headlight {

inline constexpr size_t kFloatLanes = 4;

// f(i, n) on vectors at i = 0, 4, ..., n == 4, then once on the n < 4 elements that are left.
template <class Body>
HWY_INLINE void ForVectors(size_t n, const Body& body) {
  size_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) body(i, kFloatLanes);
  if (i < n) body(i, n - i);
}

HWY_INLINE VecF32 LoadPart(const float* p, size_t n) {
  return n == kFloatLanes ? hn::LoadU(F32x4(), p) : hn::LoadN(F32x4(), p, n);
}

HWY_INLINE void StorePart(VecF32 v, float* p, size_t n) {
  if (n == kFloatLanes) {
    hn::StoreU(v, F32x4(), p);
  } else {
    hn::StoreN(v, F32x4(), p, n);
  }
}

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_FLOAT_ROWS_INL_H_
