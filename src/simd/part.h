// Reading and writing up to four floats, where a row ends. The rare part is out of line: inlined,
// it is some sixty instructions in every tile of a kernel.
#ifndef HEADLIGHT_SIMD_PART_H_
#define HEADLIGHT_SIMD_PART_H_

#include <cstddef>

#include "simd/relaxed.h"

namespace headlight {

inline constexpr size_t kFloatLanes = 4;

HWY_NOINLINE inline VecF32 LoadTail(const float* p, size_t n) { return hn::LoadN(F32x4(), p, n); }
HWY_NOINLINE inline void StoreTail(VecF32 v, float* p, size_t n) { hn::StoreN(v, F32x4(), p, n); }

// The first min(n, 4) floats at p, n >= 1, and zeros.
HWY_INLINE VecF32 LoadPart(const float* p, size_t n) {
  return n >= kFloatLanes ? hn::LoadU(F32x4(), p) : LoadTail(p, n);
}

// Writes the first min(n, 4) lanes.
HWY_INLINE void StorePart(VecF32 v, float* p, size_t n) {
  if (n >= kFloatLanes) {
    hn::StoreU(v, F32x4(), p);
  } else {
    StoreTail(v, p, n);
  }
}

// body(i, 4) at i = 0, 4, ... and then body(i, n - i) on what is left, for LoadPart and StorePart.
// The calls of the end stand apart: an engine that saw them in the loop would keep no vector of it
// in a register.
template <class Body>
HWY_INLINE void ForVectors(size_t n, const Body& body) {
  size_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) body(i, kFloatLanes);
  if (i < n) body(i, n - i);
}

}  // namespace headlight

#endif  // HEADLIGHT_SIMD_PART_H_
