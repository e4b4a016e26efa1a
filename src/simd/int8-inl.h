// Rounding floats to 8-bit codes with one scale: x = code * scale. Products and sums only, so every
// module gives the same codes.
#ifndef HEADLIGHT_SIMD_INT8_INL_H_
#define HEADLIGHT_SIMD_INT8_INL_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "simd/part.h"
#include "simd/relaxed.h"

namespace headlight {

// Largest |code|. -128 is not used, so that a row and its negative are rounded alike.
inline constexpr float kMaxInt8Code = 127.0f;

// The nearest integers, ties to even. For |x| < 2^22: adding 1.5 * 2^23 leaves the integer in the
// low mantissa bits.
HWY_INLINE VecI32 NearestInts(VecF32 x) {
  constexpr F32x4 kF32;
  constexpr I32x4 kI32;
  const VecF32 magic = hn::Set(kF32, 12582912.0f);
  return hn::Sub(hn::BitCast(kI32, hn::Add(x, magic)), hn::BitCast(kI32, magic));
}

// Four floats from x, of n (others 0); NaN becomes 0.
HWY_INLINE VecF32 LoadNumbers(const float* x, size_t n) {
  const VecF32 v = LoadPart(x, n);
  return hn::IfThenElseZero(hn::Eq(v, v), v);
}

// max |x_i|; a NaN counts as 0, an infinity as the largest float.
inline float MaxMagnitude(const float* x, size_t n) {
  constexpr F32x4 kF32;
  VecF32 max = hn::Zero(kF32);
  for (size_t i = 0; i < n; i += 4) max = hn::Max(max, hn::Abs(LoadNumbers(x + i, n - i)));
  const float largest = hn::ReduceMax(kF32, max);
  constexpr float kLargest = std::numeric_limits<float>::max();
  return largest < kLargest ? largest : kLargest;
}

// Codes in [-127, 127] of four floats from x, of n: x * inverse rounded to nearest even, clamped.
// NaN gives 0.
HWY_INLINE VecI32 Int8Codes(const float* x, size_t n, float inverse) {
  constexpr F32x4 kF32;
  const VecF32 scaled = hn::Mul(LoadNumbers(x, n), hn::Set(kF32, inverse));
  const VecF32 limit = hn::Set(kF32, kMaxInt8Code);
  return NearestInts(hn::Max(hn::Min(scaled, limit), hn::Neg(limit)));
}

}  // namespace headlight

#endif  // HEADLIGHT_SIMD_INT8_INL_H_
