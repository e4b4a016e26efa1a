// How a vector of packed codes (4 rows x 4 or 8 columns) meets the activations of the same columns:
// one struct a combination of family and arithmetic, all giving the same integers. For
// matmul_codes.cc.
//
// A struct has:
// - kBlockBytes: codes of a block.
// - Activation: int8_t or int16_t, the codes that it reads (Activations::codes or wide_codes, the
//   latter multiplied already).
// - kParts: 2 if the halves of a block are summed apart and multiplied then, else 1. kPartSteps:
//   steps of a part.
// - kOffset: factor of the block's sum in Activations that turns stored codes into weights.
// - Constants: vectors that it needs throughout a tile.
// - Sum, Begin, Finish: the running sum of a part, zero, and turned into four int32 (lane = row);
//   with two parts times the part's multiplier.
// - Weights, Inputs: operands of a step of a part. Weights are made of a group's codes of the
// block,
//   Inputs of the token's codes of it.
// - Accumulate: sum + their products.
#ifndef HEADLIGHT_KERNELS_CODE_DOTS_INL_H_
#define HEADLIGHT_KERNELS_CODE_DOTS_INL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/matmul.h"
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

struct NoConstants {};

// Sums in int32 of products that are multiplied already.
template <class Constants>
struct WideSums {
  static constexpr size_t kParts = 1;
  using Sum = VecI32;
  static HWY_INLINE Sum Begin() { return hn::Zero(I32x4()); }
  static HWY_INLINE VecI32 Finish(Sum sum, int16_t /*multiplier*/, const Constants&) { return sum; }
};

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
  static constexpr size_t kPartSteps = kBlockSteps;
  static constexpr int32_t kOffset = -kP8Offset;
  using Activation = int16_t;
  using Constants = MaskConstant<0x00FF>;
  template <size_t kPart>
  struct Weights {
    VecU16 even, odd;
    HWY_INLINE Weights(const uint8_t* codes, size_t step, const Constants& constants) {
      const VecU16 w = LoadCodes(codes + step * kVectorBytes);
      even = hn::And(w, constants.mask);
      odd = hn::ShiftRight<8>(w);
    }
  };
  template <size_t kPart>
  struct Inputs : WideInputs {
    HWY_INLINE Inputs(const int16_t* x, size_t step) : WideInputs(x + step * kStepCols) {}
  };
  static HWY_INLINE Sum Accumulate(const Weights<0>& w, const Inputs<0>& x, Sum sum) {
    return WideDot(w.odd, x.odd, WideDot(w.even, x.even, sum));
  }
};

// 4-bit weights (w + 8) widened to 16 bits. A 16-bit lane holds four codes: columns c and c + 16 in
// its low byte, c + 1 and c + 17 in its high one, so that masks and shifts alone make the operands.
struct P4Wide : WideSums<MaskConstant<0x000F>> {
  static constexpr size_t kBlockBytes = kP4BlockBytes;
  static constexpr size_t kPartSteps = kBlockSteps / 2;
  static constexpr int32_t kOffset = -kP4Offset;
  using Activation = int16_t;
  using Constants = MaskConstant<0x000F>;
  template <size_t kPart>
  struct Weights {
    VecU16 low_even, low_odd, high_even, high_odd;
    HWY_INLINE Weights(const uint8_t* codes, size_t step, const Constants& constants) {
      const VecU16 w = LoadCodes(codes + step * kVectorBytes);
      const VecU16 mask = constants.mask;
      low_even = hn::And(w, mask);
      high_even = hn::And(hn::ShiftRight<4>(w), mask);
      low_odd = hn::And(hn::ShiftRight<8>(w), mask);
      high_odd = hn::ShiftRight<12>(w);
    }
  };
  template <size_t kPart>
  struct Inputs {
    WideInputs low, high;
    HWY_INLINE Inputs(const int16_t* x, size_t step)
        : low(x + step * kStepCols), high(x + kHalfCols + step * kStepCols) {}
  };
  static HWY_INLINE Sum Accumulate(const Weights<0>& w, const Inputs<0>& x, Sum sum) {
    sum = WideDot(w.low_even, x.low.even, sum);
    sum = WideDot(w.low_odd, x.low.odd, sum);
    sum = WideDot(w.high_even, x.high.even, sum);
    return WideDot(w.high_odd, x.high.odd, sum);
  }
};

#if HEADLIGHT_HAS_DOT4

// The halves of a block one after the other.
struct Halves {
  static constexpr size_t kParts = kBlockHalves;
  static constexpr size_t kPartSteps = kHalfCols / kStepCols;
  using Activation = int8_t;
  template <size_t kPart>
  struct Inputs {
    VecI8 columns;
    HWY_INLINE Inputs(const int8_t* x, size_t step)
        : columns(SplatBytes(x + kPart * kHalfCols + step * kStepCols)) {}
  };
};

// Dots of four bytes into int32, multiplied at a half's end.
template <class ConstantsOfCodes>
struct HalfSums : Halves {
  using Constants = ConstantsOfCodes;
  using Sum = VecI32;
  static HWY_INLINE Sum Begin() { return hn::Zero(I32x4()); }
  static HWY_INLINE VecI32 Finish(Sum sum, int16_t multiplier, const Constants&) {
    return hn::Mul(sum, hn::Set(I32x4(), multiplier));
  }
};

struct P8Halves : HalfSums<NoConstants> {
  static constexpr size_t kBlockBytes = kP8BlockBytes;
  template <size_t kPart>
  struct Weights {
    VecI8 codes;
    HWY_INLINE Weights(const uint8_t* at, size_t step, const Constants&)
        : codes(hn::BitCast(I8x16(), LoadCodes(at + (kPart * kPartSteps + step) * kVectorBytes))) {}
  };
};

// 8-bit weights (w + 128) as second operand of a dot that reads it as unsigned bytes.
struct P8Unsigned : P8Halves {
  static constexpr int32_t kOffset = -kP8Offset;
  template <size_t kPart>
  static HWY_INLINE Sum Accumulate(const Weights<kPart>& w, const Inputs<kPart>& x, Sum sum) {
    return UnsignedDot4(x.columns, w.codes, sum);
  }
};

// 8-bit weights as second operand of a dot that reads it as signed bytes.
struct P8Signed : P8Halves {
  static constexpr int32_t kOffset = 0;
  template <size_t kPart>
  static HWY_INLINE Sum Accumulate(const Weights<kPart>& w, const Inputs<kPart>& x, Sum sum) {
    return SignedDot4(x.columns, w.codes, sum);
  }
};

// 4-bit weights (w + 8, 0..15): the low nibbles are a block's first half, the high ones its second.
template <class Mask>
struct P4Nibbles {
  template <size_t kPart>
  struct Weights {
    VecI8 codes;
    HWY_INLINE Weights(const uint8_t* at, size_t step, const Mask& constants) {
      VecU16 w = LoadCodes(at + step * kVectorBytes);
      if constexpr (kPart == 1) w = hn::ShiftRight<4>(w);
      codes = hn::BitCast(I8x16(), hn::And(w, constants.mask));
    }
  };
};

// As second operand of a dot of four, as the specification defines it: for engines that do such a
// dot in one instruction.
struct P4Quads : HalfSums<MaskConstant<0x0F0F>>, P4Nibbles<MaskConstant<0x0F0F>> {
  static constexpr size_t kBlockBytes = kP4BlockBytes;
  static constexpr int32_t kOffset = -kP4Offset;
  template <size_t kPart>
  static HWY_INLINE Sum Accumulate(const Weights<kPart>& w, const Inputs<kPart>& x, Sum sum) {
    return UnsignedDot4(x.columns, w.codes, sum);
  }
};

// The same by dots of byte pairs, for engines that make a dot of four from three instructions (x86
// without VNNI): a lane collects 8 products of at most 127 * 15 in a half, 15240, which fits in
// int16; the multiplication of a half's end adds the pairs up as well.
struct P4Pairs : Halves, P4Nibbles<MaskConstant<0x0F0F>> {
  static constexpr size_t kBlockBytes = kP4BlockBytes;
  static constexpr int32_t kOffset = -kP4Offset;
  using Constants = MaskConstant<0x0F0F>;
  using Sum = VecI16;
  static HWY_INLINE Sum Begin() { return hn::Zero(I16x8()); }
  static HWY_INLINE VecI32 Finish(Sum sum, int16_t multiplier, const Constants&) {
    return hn::WidenMulPairwiseAdd(I32x4(), sum, hn::Set(I16x8(), multiplier));
  }
  template <size_t kPart>
  static HWY_INLINE Sum Accumulate(const Weights<kPart>& w, const Inputs<kPart>& x, Sum sum) {
    return hn::Add(sum, RelaxedDot2(x.columns, w.codes));
  }
};

#endif  // HEADLIGHT_HAS_DOT4

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_CODE_DOTS_INL_H_
