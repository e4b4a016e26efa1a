// Small vector helpers that both matrix kernels share: f16 scales to floats, and reading and
// writing the four rows of a group in y, of which the last group may have fewer.
#ifndef HEADLIGHT_KERNELS_ROWS_INL_H_
#define HEADLIGHT_KERNELS_ROWS_INL_H_

#include <cstddef>
#include <cstdint>

#include "quant/packed_layout.h"
#include "simd/f16-inl.h"
#include "simd/relaxed.h"

namespace headlight {

HWY_INLINE VecF32 LoadBF16x4(const uint8_t* bf16) {
  const hn::FixedTag<int16_t, 4> d16;
  const auto halves = hn::LoadU(d16, reinterpret_cast<const int16_t*>(bf16));
  return hn::BitCast(F32x4(), hn::ShiftLeft<16>(hn::PromoteTo(I32x4(), halves)));
}

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_ROWS_INL_H_
