// The one place that sets Highway up: static dispatch, header-only (its aligned allocator and Abort
// need a library that does not exist for WASM), and 128-bit vectors on every target, since the
// packed layouts are made of 16-byte vectors.
#ifndef HEADLIGHT_SIMD_SIMD_H_
#define HEADLIGHT_SIMD_SIMD_H_

#ifndef HWY_COMPILE_ONLY_STATIC
#define HWY_COMPILE_ONLY_STATIC
#endif
#include <hwy/highway.h>

namespace headlight {

namespace hn = hwy::HWY_NAMESPACE;

// 16-byte vectors: `hn::Load(kF32x4, p)`.
using F32x4 = hn::FixedTag<float, 4>;
using I32x4 = hn::FixedTag<int32_t, 4>;
using I16x8 = hn::FixedTag<int16_t, 8>;
using I8x16 = hn::FixedTag<int8_t, 16>;
using U16x8 = hn::FixedTag<uint16_t, 8>;
using U8x16 = hn::FixedTag<uint8_t, 16>;
using U32x4 = hn::FixedTag<uint32_t, 4>;

}  // namespace headlight

#endif  // HEADLIGHT_SIMD_SIMD_H_
