// How a vector of packed codes (4 rows x 4 or 8 columns) meets the activations of the same columns: one struct a
// combination of family and arithmetic, all giving the same integers. For matmul_codes.cc.
//
// A struct has: kBlockBytes of codes a block; Weights / Inputs, the operands made of one 16-byte vector of codes and of
// the activations (x: at column 4 * vector of the block); Accumulate, which adds their products to four sums, lane = row;
// Offset, the factor of sum(x) that the sums start at.
#ifndef HEADLIGHT_KERNELS_CODE_DOTS_INL_H_
#define HEADLIGHT_KERNELS_CODE_DOTS_INL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/packed_layout.h"
#include "simd/relaxed.h"

namespace headlight {

// Four consecutive 8-bit activations in each 32-bit lane.
HWY_INLINE VecI8 SplatColumns(const int8_t* x) {
  int32_t columns;
  std::memcpy(&columns, x, sizeof(columns));
  return hn::BitCast(I8x16(), hn::Set(I32x4(), columns));
}

HWY_INLINE VecI8 LoadCodes(const uint8_t* codes) {
  return hn::BitCast(I8x16(), hn::Load(U8x16(), codes));
}

// Bytes 0 and 2 of each 32-bit lane, and bytes 1 and 3, as int16.
HWY_INLINE VecI16 EvenBytes(VecI8 v) {
  return hn::ShiftRight<8>(hn::ShiftLeft<8>(hn::BitCast(I16x8(), v)));
}
HWY_INLINE VecI16 OddBytes(VecI8 v) { return hn::ShiftRight<8>(hn::BitCast(I16x8(), v)); }

HWY_INLINE VecI32 WideDot(VecI16 a, VecI16 b, VecI32 sum) {
  return hn::Add(sum, hn::WidenMulPairwiseAdd(I32x4(), a, b));
}

// 8-bit weights widened to 16 bits: exact everywhere.
struct P8Wide {
  static constexpr size_t kBlockBytes = kP8BlockBytes;
  struct Weights {
    VecI16 even, odd;
    HWY_INLINE explicit Weights(const uint8_t* codes) {
      const VecI8 w = LoadCodes(codes);
      even = EvenBytes(w);
      odd = OddBytes(w);
    }
  };
  struct Inputs {
    VecI16 even, odd;
    HWY_INLINE explicit Inputs(const int8_t* x) {
      const VecI8 splat = SplatColumns(x);
      even = EvenBytes(splat);
      odd = OddBytes(splat);
    }
  };
  static HWY_INLINE VecI32 Accumulate(const Weights& w, const Inputs& x, VecI32 sum) {
    return WideDot(w.odd, x.odd, WideDot(w.even, x.even, sum));
  }
  static constexpr int32_t Offset(DotForm) { return 0; }
};

// 4-bit weights widened to 16 bits. A 16-bit lane holds four codes: columns c and c + 16 in its low byte, c + 1 and
// c + 17 in its high one, so that masks and shifts alone make the operands.
struct P4Wide {
  static constexpr size_t kBlockBytes = kP4BlockBytes;
  struct Weights {
    VecI16 low_even, low_odd, high_even, high_odd;
    HWY_INLINE explicit Weights(const uint8_t* codes) {
      const hn::FixedTag<uint16_t, 8> du;
      const auto w = hn::BitCast(du, hn::Load(U8x16(), codes));
      const auto mask = hn::Set(du, 15);
      low_even = hn::BitCast(I16x8(), hn::And(w, mask));
      high_even = hn::BitCast(I16x8(), hn::And(hn::ShiftRight<4>(w), mask));
      low_odd = hn::BitCast(I16x8(), hn::And(hn::ShiftRight<8>(w), mask));
      high_odd = hn::BitCast(I16x8(), hn::ShiftRight<12>(w));
    }
  };
  struct Inputs {
    P8Wide::Inputs low, high;
    HWY_INLINE explicit Inputs(const int8_t* x) : low(x), high(x + kBlockCols / 2) {}
  };
  static HWY_INLINE VecI32 Accumulate(const Weights& w, const Inputs& x, VecI32 sum) {
    sum = WideDot(w.low_even, x.low.even, sum);
    sum = WideDot(w.low_odd, x.low.odd, sum);
    sum = WideDot(w.high_even, x.high.even, sum);
    return WideDot(w.high_odd, x.high.odd, sum);
  }
  static constexpr int32_t Offset(DotForm) { return -kP4Offset; }
};

#if defined(__wasm_relaxed_simd__)
// 8-bit weights as second operand of the relaxed dot: read as signed bytes or, stored with the top bit flipped, as
// unsigned ones.
struct P8Relaxed {
  static constexpr size_t kBlockBytes = kP8BlockBytes;
  struct Weights {
    VecI8 codes;
    HWY_INLINE explicit Weights(const uint8_t* at) : codes(LoadCodes(at)) {}
  };
  struct Inputs {
    VecI8 columns;
    HWY_INLINE explicit Inputs(const int8_t* x) : columns(SplatColumns(x)) {}
  };
  static HWY_INLINE VecI32 Accumulate(const Weights& w, const Inputs& x, VecI32 sum) {
    return RelaxedDot4(x.columns, w.codes, sum);
  }
  static constexpr int32_t Offset(DotForm form) {
    return form == DotForm::kUnsigned ? -kP8UnsignedOffset : 0;
  }
};

// 4-bit weights (0..15) as second operand: defined by the specification.
struct P4Relaxed {
  static constexpr size_t kBlockBytes = kP4BlockBytes;
  struct Weights {
    VecI8 low, high;
    HWY_INLINE explicit Weights(const uint8_t* codes) {
      const hn::FixedTag<uint16_t, 8> du;
      const auto w = hn::BitCast(du, hn::Load(U8x16(), codes));
      const auto mask = hn::Set(du, 0x0F0F);
      low = hn::BitCast(I8x16(), hn::And(w, mask));
      high = hn::BitCast(I8x16(), hn::And(hn::ShiftRight<4>(w), mask));
    }
  };
  struct Inputs {
    VecI8 low, high;
    HWY_INLINE explicit Inputs(const int8_t* x)
        : low(SplatColumns(x)), high(SplatColumns(x + kBlockCols / 2)) {}
  };
  static HWY_INLINE VecI32 Accumulate(const Weights& w, const Inputs& x, VecI32 sum) {
    return RelaxedDot4(x.high, w.high, RelaxedDot4(x.low, w.low, sum));
  }
  static constexpr int32_t Offset(DotForm) { return -kP4Offset; }
};
#endif

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_CODE_DOTS_INL_H_
