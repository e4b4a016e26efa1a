#include "kv/int8_rows.h"

#include <algorithm>
#include <cstring>

#include "base/dtype.h"
#include "simd/int8-inl.h"

namespace headlight {
namespace {

constexpr float kMaxF16 = 65504.0f;  // the largest finite binary16

}  // namespace

void StoreInt8Row(const Int8Rows& rows, size_t row, const float* x, size_t d) noexcept {
  constexpr I32x4 kI32;
  const uint16_t scale = F16FromF32(std::min(MaxMagnitude(x, d) / kMaxInt8Code, kMaxF16));
  rows.scales[row] = scale;
  const float stored = F32FromF16(scale);
  const float inverse = stored == 0.0f ? 0.0f : 1.0f / stored;
  uint8_t* first = rows.codes + Int8At(rows.placement, rows.stride, row, 0);
  for (size_t i = 0; i < d; i += 4) {
    const auto stored_codes = hn::Add(Int8Codes(x + i, d - i, inverse), hn::Set(kI32, kInt8Offset));
    const hn::FixedTag<uint8_t, 4> bytes;
    alignas(4) uint8_t four[4];
    hn::Store(hn::DemoteTo(bytes, stored_codes), bytes, four);
    uint8_t* to = first + i * 4;
    if (rows.placement == Int8Placement::kKeys) {
      std::memcpy(to, four, sizeof(four));
    } else {
      for (size_t j = 0; j < 4; ++j) to[j * 4] = four[j];
    }
  }
}

}  // namespace headlight
