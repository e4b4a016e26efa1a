// Rows of IEEE 754 binary16 for the KV cache: exact vector conversions in both directions, bit for bit those of
// base/dtype.h (subnormals, infinities and NaN included). Four elements at a time; no tails here.
#ifndef HEADLIGHT_KV_F16_INL_H_
#define HEADLIGHT_KV_F16_INL_H_

#include <cstdint>

#include "simd/simd.h"

namespace headlight {

using U32x4 = hn::FixedTag<uint32_t, 4>;
using U16x4 = hn::FixedTag<uint16_t, 4>;
using U16x8 = hn::FixedTag<uint16_t, 8>;

// binary16 in the upper halves of four lanes (lower halves zero) -> binary32.
inline hn::VFromD<F32x4> F32FromF16Upper(hn::VFromD<U32x4> upper) {
  constexpr F32x4 kF32;
  constexpr U32x4 kU32;
  constexpr hn::FixedTag<int32_t, 4> kI32;
  // The arithmetic shift leaves the sign where it is and puts exponent and mantissa where binary32 wants them, with the
  // exponent 112 too small: multiplying by 2^112 repairs that and normalises subnormals (Highway's own conversion for
  // WASM makes infinities finite; the last step keeps them).
  const auto shifted = hn::BitCast(kU32, hn::ShiftRight<3>(hn::BitCast(kI32, upper)));
  const auto bits = hn::And(shifted, hn::Set(kU32, 0x8FFFE000u));
  const auto value = hn::Mul(hn::BitCast(kF32, bits), hn::Set(kF32, 0x1p112f));
  const auto magnitude = hn::And(shifted, hn::Set(kU32, 0x0FFFE000u));
  const auto is_special =
      hn::Gt(hn::BitCast(kI32, magnitude), hn::Set(kI32, 0x0F7FFFFF));  // exponent all ones
  const auto exponent = hn::And(hn::BitCast(kF32, hn::VecFromMask(kI32, is_special)),
                                hn::BitCast(kF32, hn::Set(kU32, 0x7F800000u)));
  return hn::Or(value, exponent);
}

// Eight binary16 at p (16-byte aligned) -> lanes 0..3 in low, 4..7 in high.
inline void LoadF16x8(const uint16_t* p, hn::VFromD<F32x4>& low, hn::VFromD<F32x4>& high) {
  constexpr U16x8 kU16;
  constexpr U32x4 kU32;
  const auto halves = hn::Load(kU16, p);
  const auto zero = hn::Zero(kU16);
  low = F32FromF16Upper(hn::BitCast(kU32, hn::InterleaveLower(kU16, zero, halves)));
  high = F32FromF16Upper(hn::BitCast(kU32, hn::InterleaveUpper(kU16, zero, halves)));
}

// binary32 -> binary16, round to nearest even; overflow gives an infinity, NaN the quiet NaN 0x7E00 with its sign.
inline hn::VFromD<U16x4> F16FromF32Vector(hn::VFromD<F32x4> x) {
  constexpr F32x4 kF32;
  constexpr U32x4 kU32;
  constexpr U16x4 kU16;
  constexpr hn::FixedTag<int32_t, 4> kI32;
  const auto bits = hn::BitCast(kU32, x);
  const auto magnitude = hn::And(bits, hn::Set(kU32, 0x7FFFFFFFu));
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(kU32, 0x8000u));
  const auto signed_magnitude = hn::BitCast(kI32, magnitude);
  // Adding half of the last place less one, and one more if that place is odd, rounds to nearest even.
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(kU32, 1u));
  const auto biased = hn::Add(magnitude, hn::Set(kU32, 0xFFFu - 0x38000000u));  // 112 off the exponent
  auto half = hn::ShiftRight<13>(hn::Add(biased, odd));
  // Below 2^-14: adding 0.5 makes the addition itself round at 2^-24, the place of a subnormal.
  const auto subnormal = hn::Sub(
      hn::BitCast(kU32, hn::Add(hn::BitCast(kF32, magnitude), hn::Set(kF32, 0.5f))),
      hn::Set(kU32, 0x3F000000u));
  const auto is_small = hn::Lt(signed_magnitude, hn::Set(kI32, 0x38800000));
  half = hn::IfThenElse(hn::RebindMask(kU32, is_small), subnormal, half);
  const auto is_big = hn::Gt(signed_magnitude, hn::Set(kI32, 0x477FEFFF));  // >= 65520
  half = hn::IfThenElse(hn::RebindMask(kU32, is_big), hn::Set(kU32, 0x7C00u), half);
  const auto is_nan = hn::Gt(signed_magnitude, hn::Set(kI32, 0x7F800000));
  half = hn::IfThenElse(hn::RebindMask(kU32, is_nan), hn::Set(kU32, 0x7E00u), half);
  return hn::TruncateTo(kU16, hn::Or(half, sign));
}

}  // namespace headlight

#endif  // HEADLIGHT_KV_F16_INL_H_
