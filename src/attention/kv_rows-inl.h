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

// Reads n_bytes, a multiple of 16, once, in address order, and does nothing with them (but for one
// vector written to `sink`, without which no compiler would read). Kernels then walk over the tile
// three rows at a time, a pattern that no prefetcher follows: from memory, decode gets 14 GB/s
// instead of 8.7 and pays 10 to 15 % when the rows are in the second-level cache already (V8, Zen
// 4, three query rows). Two reads a cache line, one after the other: reading one, or unrolling,
// outruns the prefetcher and gains nothing.
inline void ReadInOrder(const void* rows, size_t n_bytes, float* sink) {
  constexpr U8x16 kBytes;
  const uint8_t* bytes = static_cast<const uint8_t*>(rows);
  auto any = hn::Zero(kBytes);
  for (size_t i = 0; i < n_bytes; i += 32) any = hn::Or(any, hn::Load(kBytes, bytes + i));
  hn::Store(hn::BitCast(F32x4(), any), F32x4(), sink);
}

// Scales of int8 rows [keys.begin, keys.end) as f32, in `copy` with room for a multiple of four.
inline const float* ScalesAsF32(const uint16_t* scales, KeyRange keys, float* copy) {
  const F16Constants constants;
  for (size_t i = 0; keys.begin + i < keys.end; i += 4) {
    hn::Store(LoadF16x4(scales + keys.begin + i, constants), F32x4(), copy + i);
  }
  return copy;
}

// Rows [keys.begin, keys.end) of f32 or f16 `rows` [n_ctx, stride]: themselves, or converted into
// `copy` [keys, stride].
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
    case CacheType::kInt8:  // has kernels of its own
      break;
  }
  const float* first = static_cast<const float*>(rows) + keys.begin * stride;
  ReadInOrder(first, (keys.end - keys.begin) * stride * sizeof(float), copy);
  return first;
}

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_KV_ROWS_INL_H_
