// IEEE 754 binary16 four at a time: vector conversions in both directions, bit for bit those of
// base/dtype.h (subnormals included), except that reading is for finite values.
#ifndef HEADLIGHT_SIMD_F16_INL_H_
#define HEADLIGHT_SIMD_F16_INL_H_

#include <cstdint>

#include "simd/relaxed.h"

namespace headlight {

using U16x4 = hn::FixedTag<uint16_t, 4>;

// What LoadF16x4 needs, made once before a loop.
struct F16Constants {
  alignas(16) static constexpr uint32_t kPlaces[4] = {0x8FFFE000u, 0x8FFFE000u, 0x8FFFE000u,
                                                      0x8FFFE000u};
  alignas(16) static constexpr float kRebias[4] = {0x1p112f, 0x1p112f, 0x1p112f, 0x1p112f};
  VecI32 places = hn::BitCast(I32x4(), LoadedConstant(U32x4(), kPlaces));
  VecF32 rebias = LoadedConstant(F32x4(), kRebias);
};

// Four binary16 at f16 (any alignment) -> binary32: exact for every finite value. Infinities and
// NaNs read as numbers of 2^16 and more: telling them apart would double the work.
//
// Sign-extended (load and extension are one instruction) and shifted left by 13, the sign is in bit
// 31 and exponent and mantissa are where binary32 wants them, but for copies of the sign in
// between, which the mask drops. The exponent is then 112 too small: multiplying by 2^112 repairs
// that and normalises subnormals. Highway's conversion takes three times the instructions under
// WASM.
HWY_INLINE VecF32 LoadF16x4(const void* f16, const F16Constants& constants) {
  constexpr hn::FixedTag<int16_t, 4> kI16;
  const auto halves = hn::LoadU(kI16, static_cast<const int16_t*>(f16));
  const VecI32 wide = hn::ShiftLeft<13>(hn::PromoteTo(I32x4(), halves));
  return hn::Mul(hn::BitCast(F32x4(), hn::And(wide, constants.places)), constants.rebias);
}

// binary32 -> binary16, round to nearest even; overflow gives an infinity, NaN the quiet NaN 0x7E00
// with its sign.
inline hn::VFromD<U16x4> F16FromF32Vector(VecF32 x) {
  constexpr F32x4 kF32;
  constexpr U32x4 kU32;
  constexpr U16x4 kU16;
  constexpr hn::FixedTag<int32_t, 4> kI32;
  const auto bits = hn::BitCast(kU32, x);
  const auto magnitude = hn::And(bits, hn::Set(kU32, 0x7FFFFFFFu));
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(kU32, 0x8000u));
  const auto signed_magnitude = hn::BitCast(kI32, magnitude);
  // Adding half of the last place less one, and one more if that place is odd, rounds to nearest
  // even.
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(kU32, 1u));
  const auto biased =
      hn::Add(magnitude, hn::Set(kU32, 0xFFFu - 0x38000000u));  // 112 off the exponent
  auto half = hn::ShiftRight<13>(hn::Add(biased, odd));
  // Below 2^-14: adding 0.5 makes the addition itself round at 2^-24, the place of a subnormal.
  const auto subnormal =
      hn::Sub(hn::BitCast(kU32, hn::Add(hn::BitCast(kF32, magnitude), hn::Set(kF32, 0.5f))),
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

#endif  // HEADLIGHT_SIMD_F16_INL_H_
