// e^x on four floats, for softmax and SiLU. Not for gradients or statistics: the tails are flushed
// or clamped.
#ifndef HEADLIGHT_SIMD_EXP_INL_H_
#define HEADLIGHT_SIMD_EXP_INL_H_

#include "simd/relaxed.h"

namespace headlight {

// Below: 0. ln(2^-126) rounded up, so that no result is subnormal.
inline constexpr float kExpLowest = -87.33654f;
// Above: e^kExpHighest = 3.4e38. ln(2^128) rounded down.
inline constexpr float kExpHighest = 88.72283f;

// x = n ln 2 + r, |r| <= ln 2 / 2; e^x = 2^n (1 + r + r^2 P(r)), P of degree 3 (minimax for the
// relative error, 0.9 ulp).
// - Lanes: float32.
// - Max error: 2.5 ulp on [kExpLowest, kExpHighest], with or without fused multiply-add; exact at
// 0.
// - Range: all floats. Below kExpLowest and -inf: +0. Above kExpHighest and +inf: e^kExpHighest.
//   NaN: NaN.
HWY_INLINE VecF32 ExpF32(F32x4 d, VecF32 x) {
  const I32x4 di;
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low mantissa bits: no
  // conversion instructions.
  const VecF32 magic = hn::Set(d, 12582912.0f);
  const VecF32 clamped =
      hn::IfThenElse(hn::Gt(x, hn::Set(d, kExpHighest)), hn::Set(d, kExpHighest), x);
  const VecF32 shifted = MulAdd(clamped, hn::Set(d, 1.44269504f), magic);
  const VecF32 n = hn::Sub(shifted, magic);
  // ln 2 in two parts; the first has 15 bits, so n times it is exact.
  VecF32 r = MulAdd(n, hn::Set(d, -0x1.62e4p-1f), clamped);
  r = MulAdd(n, hn::Set(d, -1.42860677e-6f), r);
  const VecF32 r2 = hn::Mul(r, r);
  const VecF32 low = MulAdd(r, hn::Set(d, 0x1.5557bp-3f), hn::Set(d, 0x1.fffdfcp-2f));
  const VecF32 high = MulAdd(r, hn::Set(d, 0x1.10625p-7f), hn::Set(d, 0x1.572a64p-5f));
  const VecF32 p = hn::Add(MulAdd(r2, MulAdd(r2, high, low), r), hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  const VecF32 scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kExpLowest)), scaled);
}

}  // namespace headlight

#endif  // HEADLIGHT_SIMD_EXP_INL_H_
