// How a vector of packed codes (4 rows x 4 or 8 columns) meets the activations of the same columns:
// one struct a combination of family and arithmetic, all giving the same integers. For
// matmul_codes.cc.
//
// A struct has:
// - kBlockBytes: codes of a block.
// - Activation: int8_t or int16_t, the codes that it reads (Activations::codes or wide_codes).
// - kOffset: factor of the sum of the activations that turns stored codes into weights.
// - Constants: vectors that it needs throughout a tile.
// - Sum, Begin, Finish: the running sum of a block, made from and turned into four int32 (lane =
//   row). `start` is kOffset * sum(x) in every lane, and has to be in the result.
// - Weights, Inputs: operands made of vector v of a block's codes, and of x at its column 4v.
// - Accumulate: sum + their products.
#ifndef HEADLIGHT_KERNELS_CODE_DOTS_INL_H_
#define HEADLIGHT_KERNELS_CODE_DOTS_INL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/packed_layout.h"
#include "simd/relaxed.h"

namespace headlight {

using U16x8 = hn::FixedTag<uint16_t, 8>;
using VecU16 = hn::Vec<U16x8>;

// Four consecutive activations of 8 bits, or two of 16, in each 32-bit lane.
template <typename Activation>
HWY_INLINE VecI32 SplatWord(const Activation* x) {
  int32_t word;
  std::memcpy(&word, x, sizeof(word));
  return hn::Set(I32x4(), word);
}

HWY_INLINE VecI8 SplatBytes(const int8_t* x) { return hn::BitCast(I8x16(), SplatWord(x)); }

HWY_INLINE VecU16 LoadCodes(const uint8_t* codes) {
  return hn::BitCast(U16x8(), hn::Load(U8x16(), codes));
}

// Sums in int32 that start at their offset.
template <class Constants>
struct WideSums {
  using Sum = VecI32;
  static HWY_INLINE Sum Begin(VecI32 start) { return start; }
  static HWY_INLINE VecI32 Finish(Sum sum, VecI32 /*start*/, const Constants&) { return sum; }
};

struct NoConstants {};

// A mask of the same 16 bits in each lane.
template <uint16_t kBits>
struct MaskConstant {
  alignas(16) static constexpr uint16_t kMask[8] = {kBits, kBits, kBits, kBits,
                                                    kBits, kBits, kBits, kBits};
  VecU16 mask = LoadedConstant(U16x8(), kMask);
};

HWY_INLINE VecI32 WideDot(VecU16 w, VecI16 x, VecI32 sum) {
  return hn::Add(sum, hn::WidenMulPairwiseAdd(I32x4(), hn::BitCast(I16x8(), w), x));
}

// Two columns of each 32-bit lane, then the other two (Activations::wide_codes has them in this
// order).
struct WideInputs {
  VecI16 even, odd;
  HWY_INLINE explicit WideInputs(const int16_t* x)
      : even(hn::BitCast(I16x8(), SplatWord(x))), odd(hn::BitCast(I16x8(), SplatWord(x + 2))) {}
};

// 8-bit weights (w + 128) widened to 16 bits: exact everywhere. Even and odd bytes instead of low
// and high halves: a mask and a shift make the operands, and each lane stays with its row.
struct P8Wide : WideSums<MaskConstant<0x00FF>> {
  static constexpr size_t kBlockBytes = kP8BlockBytes;
  static constexpr int32_t kOffset = -kP8Offset;
  using Activation = int16_t;
  using Constants = MaskConstant<0x00FF>;
  struct Weights {
    VecU16 even, odd;
    HWY_INLINE Weights(const uint8_t* codes, const Constants& constants) {
      const VecU16 w = LoadCodes(codes);
      even = hn::And(w, constants.mask);
      odd = hn::ShiftRight<8>(w);
    }
  };
  using Inputs = WideInputs;
  static HWY_INLINE Sum Accumulate(const Weights& w, const Inputs& x, Sum sum) {
    return WideDot(w.odd, x.odd, WideDot(w.even, x.even, sum));
  }
};

// 4-bit weights (w + 8) widened to 16 bits. A 16-bit lane holds four codes: columns c and c + 16 in
// its low byte, c + 1 and c + 17 in its high one, so that masks and shifts alone make the operands.
struct P4Wide : WideSums<MaskConstant<0x000F>> {
  static constexpr size_t kBlockBytes = kP4BlockBytes;
  static constexpr int32_t kOffset = -kP4Offset;
  using Activation = int16_t;
  using Constants = MaskConstant<0x000F>;
  struct Weights {
    VecU16 low_even, low_odd, high_even, high_odd;
    HWY_INLINE Weights(const uint8_t* codes, const Constants& constants) {
      const VecU16 w = LoadCodes(codes);
      const VecU16 mask = constants.mask;
      low_even = hn::And(w, mask);
      high_even = hn::And(hn::ShiftRight<4>(w), mask);
      low_odd = hn::And(hn::ShiftRight<8>(w), mask);
      high_odd = hn::ShiftRight<12>(w);
    }
  };
  struct Inputs {
    WideInputs low, high;
    HWY_INLINE explicit Inputs(const int16_t* x) : low(x), high(x + kBlockCols / 2) {}
  };
  static HWY_INLINE Sum Accumulate(const Weights& w, const Inputs& x, Sum sum) {
    sum = WideDot(w.low_even, x.low.even, sum);
    sum = WideDot(w.low_odd, x.low.odd, sum);
    sum = WideDot(w.high_even, x.high.even, sum);
    return WideDot(w.high_odd, x.high.odd, sum);
  }
};

#if HEADLIGHT_HAS_DOT4

struct P8Operands {
  static constexpr size_t kBlockBytes = kP8BlockBytes;
  using Activation = int8_t;
  using Constants = NoConstants;
  struct Weights {
    VecI8 codes;
    HWY_INLINE Weights(const uint8_t* at, const Constants&)
        : codes(hn::BitCast(I8x16(), LoadCodes(at))) {}
  };
  struct Inputs {
    VecI8 columns;
    HWY_INLINE explicit Inputs(const int8_t* x) : columns(SplatBytes(x)) {}
  };
};

// 8-bit weights (w + 128) as second operand of a dot that reads it as unsigned bytes.
struct P8Unsigned : P8Operands, WideSums<NoConstants> {
  static constexpr int32_t kOffset = -kP8Offset;
  static HWY_INLINE Sum Accumulate(const Weights& w, const Inputs& x, Sum sum) {
    return UnsignedDot4(x.columns, w.codes, sum);
  }
};

// 8-bit weights as second operand of a dot that reads it as signed bytes.
struct P8Signed : P8Operands, WideSums<NoConstants> {
  static constexpr int32_t kOffset = 0;
  static HWY_INLINE Sum Accumulate(const Weights& w, const Inputs& x, Sum sum) {
    return SignedDot4(x.columns, w.codes, sum);
  }
};

struct P4Constants : MaskConstant<0x0F0F> {
  alignas(16) static constexpr int16_t kOnes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  VecI16 ones = LoadedConstant(I16x8(), kOnes);
};

struct P4Operands {
  static constexpr size_t kBlockBytes = kP4BlockBytes;
  static constexpr int32_t kOffset = -kP4Offset;
  using Activation = int8_t;
  using Constants = P4Constants;
  struct Weights {
    VecI8 low, high;
    HWY_INLINE Weights(const uint8_t* codes, const Constants& constants) {
      const VecU16 w = LoadCodes(codes);
      const VecU16 mask = constants.mask;
      low = hn::BitCast(I8x16(), hn::And(w, mask));
      high = hn::BitCast(I8x16(), hn::And(hn::ShiftRight<4>(w), mask));
    }
  };
  struct Inputs {
    VecI8 low, high;
    HWY_INLINE explicit Inputs(const int8_t* x)
        : low(SplatBytes(x)), high(SplatBytes(x + kBlockCols / 2)) {}
  };
};

// 4-bit weights (w + 8, 0..15) as second operand, as the specification defines it: for engines that
// do such a dot in one instruction.
struct P4Quads : P4Operands, WideSums<P4Constants> {
  static HWY_INLINE Sum Accumulate(const Weights& w, const Inputs& x, Sum sum) {
    return UnsignedDot4(x.high, w.high, UnsignedDot4(x.low, w.low, sum));
  }
};

// The same by dots of byte pairs, for engines that make a dot of four from three instructions (x86
// without VNNI): a lane collects 16 products of at most 127 * 15 in a block, 30480, which fits in
// int16.
struct P4Pairs : P4Operands {
  using Sum = VecI16;
  static HWY_INLINE Sum Begin(VecI32 /*start*/) { return hn::Zero(I16x8()); }
  static HWY_INLINE Sum Accumulate(const Weights& w, const Inputs& x, Sum sum) {
    sum = hn::Add(sum, RelaxedDot2(x.low, w.low));
    return hn::Add(sum, RelaxedDot2(x.high, w.high));
  }
  static HWY_INLINE VecI32 Finish(Sum sum, VecI32 start, const Constants& constants) {
    return hn::Add(start, hn::WidenMulPairwiseAdd(I32x4(), sum, constants.ones));
  }
};

#endif  // HEADLIGHT_HAS_DOT4

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_CODE_DOTS_INL_H_
