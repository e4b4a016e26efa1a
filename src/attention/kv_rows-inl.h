// Rows of the cache as float32, whatever they are stored as: the one place where both fast kernels
// meet a cache format.
#ifndef HEADLIGHT_ATTENTION_KV_ROWS_INL_H_
#define HEADLIGHT_ATTENTION_KV_ROWS_INL_H_

#include <cstddef>
#include <cstdint>

#include "attention/key_range.h"
#include "kv/kv_cache.h"
#include "simd/f16-inl.h"

namespace headlight {

// Rows [keys.begin, keys.end) of `rows` [n_ctx, stride]: themselves, or converted into `copy`
// [keys, stride].
inline const float* RowsAsF32(CacheType type, const void* rows, size_t stride, KeyRange keys,
                              float* copy) {
  switch (type) {
    case CacheType::kF16: {
      const uint16_t* src = static_cast<const uint16_t*>(rows) + keys.begin * stride;
      const size_t n = (keys.end - keys.begin) * stride;  // a multiple of 8: rows are padded
      const F16Constants constants;
      for (size_t i = 0; i < n; i += 8) {
        const uint16_t* from = PinPointer(src + i);
        hn::Store(LoadF16x4(from, constants), F32x4(), copy + i);
        hn::Store(LoadF16x4(from + 4, constants), F32x4(), copy + i + 4);
      }
      return copy;
    }
    case CacheType::kF32:
      break;
  }
  return static_cast<const float*>(rows) + keys.begin * stride;
}

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_KV_ROWS_INL_H_
