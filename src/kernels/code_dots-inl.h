// How a vector of packed codes (4 rows x 4 or 8 columns) meets the activations of the same columns:
// one struct a combination of family and arithmetic, all giving the same integers. For
// code_tile.cc.
//
// A struct has:
// - kBlockBytes: codes of a block.
// - Activation: int8_t or int16_t, the codes that it reads (Activations::codes, or wide_codes,
// which
//   are multiplied already).
// - kParts: 2 if the halves of a block are summed one after the other, else 1; kPartSteps: steps of
//   a part.
// - kOffset: factor of the block's sum in Activations that turns stored codes into weights.
// - Constants: vectors that it needs throughout a tile.
// - Sum, Begin, Finish: the running sum of a part, zero, and turned into four int32 (lane = row)
// that
//   the multipliers (the block's two) are in.
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
#include "kernels/widen.h"
#include "quant/packed_layout.h"
#include "simd/relaxed.h"

namespace headlight {

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
struct WideSums {
  static constexpr size_t kParts = 1;
  using Activation = int16_t;
  using Sum = VecI32;
  static HWY_INLINE Sum Begin() { return hn::Zero(I32x4()); }
  template <size_t kPart>
  static HWY_INLINE VecI32 Finish(Sum sum, const int16_t* /*multipliers*/) {
    return sum;
  }
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

// Word `word` of a token's block: its bytes 0 and 2, then 1 and 3, for all four rows.
struct WideWord {
  VecI16 even, odd;
  HWY_INLINE WideWord(const int16_t* x, size_t word)
      : even(hn::BitCast(I16x8(), SplatWord(x + word * kWordCols))),
        odd(hn::BitCast(I16x8(), SplatWord(x + word * kWordCols + 2))) {}
};

// 8-bit weights (w + 128) widened to 16 bits: exact everywhere. Even and odd bytes instead of low
// and high halves: a mask and a shift make the operands, and each lane stays with its row.
struct P8Wide : WideSums {
  static constexpr size_t kBlockBytes = kP8BlockBytes;
  static constexpr size_t kPartSteps = kBlockWords;
  static constexpr int32_t kOffset = -kP8Offset;
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
  using Inputs = WideWord;
  static HWY_INLINE Sum Accumulate(const Weights<0>& w, const WideWord& x, Sum sum) {
    return WideDot(w.odd, x.odd, WideDot(w.even, x.even, sum));
  }
};

// 4-bit weights (w + 8) widened to 16 bits.
struct P4Wide : WideSums {
  static constexpr size_t kBlockBytes = kP4BlockBytes;
  static constexpr size_t kPartSteps = kBlockWords / 2;
  static constexpr int32_t kOffset = -kP4Offset;
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
    WideWord low, high;
    HWY_INLINE Inputs(const int16_t* x, size_t step)
        : low(x, P4Word(DotForm::kWide, step, 0)), high(x, P4Word(DotForm::kWide, step, 1)) {}
  };
  static HWY_INLINE Sum Accumulate(const Weights<0>& w, const Inputs<0>& x, Sum sum) {
    sum = WideDot(w.low_even, x.low.even, sum);
    sum = WideDot(w.low_odd, x.low.odd, sum);
    sum = WideDot(w.high_even, x.high.even, sum);
    return WideDot(w.high_odd, x.high.odd, sum);
  }
};

// Codes of any family that widen.h made int16 weights.
struct PanelWords : WideSums {
  static constexpr size_t kBlockBytes = kPanelBlockBytes;
  static constexpr size_t kPartSteps = kBlockWords;
  static constexpr int32_t kOffset = 0;
  using Constants = NoConstants;
  template <size_t kPart>
  struct Weights {
    VecU16 even, odd;
    HWY_INLINE Weights(const uint8_t* words, size_t step, const Constants&)
        : even(LoadCodes(words + step * 2 * kVectorBytes)),
          odd(LoadCodes(words + (step * 2 + 1) * kVectorBytes)) {}
  };
  template <size_t kPart>
  using Inputs = WideWord;
  static HWY_INLINE Sum Accumulate(const Weights<0>& w, const WideWord& x, Sum sum) {
    return WideDot(w.odd, x.odd, WideDot(w.even, x.even, sum));
  }
};

#if HEADLIGHT_HAS_DOT4

// Dots of four bytes into int32, the halves of a block one after the other, each multiplied at its
// end.
struct HalfSums {
  static constexpr size_t kParts = kBlockHalves;
  static constexpr size_t kPartSteps = kHalfCols / kWordCols;
  using Activation = int8_t;
  using Sum = VecI32;
  template <size_t kPart>
  struct Inputs {
    VecI8 columns;
    HWY_INLINE Inputs(const int8_t* x, size_t step)
        : columns(SplatBytes(x + kPart * kHalfCols + step * kWordCols)) {}
  };
  static HWY_INLINE Sum Begin() { return hn::Zero(I32x4()); }
  template <size_t kPart>
  static HWY_INLINE VecI32 Finish(Sum sum, const int16_t* multipliers) {
    return hn::Mul(sum, hn::Set(I32x4(), multipliers[kPart]));
  }
};

struct P8Halves : HalfSums {
  static constexpr size_t kBlockBytes = kP8BlockBytes;
  using Constants = NoConstants;
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

// 4-bit weights (w + 8, 0..15) as second operand, as the specification defines it: for engines that
// do such a dot in one instruction. The low nibbles are a block's first half, the high ones its
// second.
struct P4Quads : HalfSums {
  static constexpr size_t kBlockBytes = kP4BlockBytes;
  static constexpr int32_t kOffset = -kP4Offset;
  using Constants = MaskConstant<0x0F0F>;
  template <size_t kPart>
  struct Weights {
    VecI8 codes;
    HWY_INLINE Weights(const uint8_t* at, size_t step, const Constants& constants) {
      VecU16 w = LoadCodes(at + step * kVectorBytes);
      if constexpr (kPart == 1) w = hn::ShiftRight<4>(w);
      codes = hn::BitCast(I8x16(), hn::And(w, constants.mask));
    }
  };
  template <size_t kPart>
  static HWY_INLINE Sum Accumulate(const Weights<kPart>& w, const Inputs<kPart>& x, Sum sum) {
    return UnsignedDot4(x.columns, w.codes, sum);
  }
};

// The same by dots of byte pairs, for engines that make a dot of four from three instructions (x86
// without VNNI): an int16 lane collects 16 products of at most 127 * 15 of one half, 30480, and
// what adds the two lanes of a row multiplies them as well.
struct P4Pairs {
  static constexpr size_t kParts = 1;
  static constexpr size_t kPartSteps = kBlockWords / 2;
  static constexpr size_t kBlockBytes = kP4BlockBytes;
  static constexpr int32_t kOffset = -kP4Offset;
  using Activation = int8_t;
  using Constants = MaskConstant<0x0F0F>;
  using Sum = VecI16;
  template <size_t kPart>
  struct Weights {
    VecI8 low, high;
    HWY_INLINE Weights(const uint8_t* codes, size_t step, const Constants& constants) {
      const VecU16 w = LoadCodes(codes + step * kVectorBytes);
      const VecU16 mask = constants.mask;
      low = hn::BitCast(I8x16(), hn::And(w, mask));
      high = hn::BitCast(I8x16(), hn::And(hn::ShiftRight<4>(w), mask));
    }
  };
  template <size_t kPart>
  struct Inputs {
    VecI8 low, high;
    HWY_INLINE Inputs(const int8_t* x, size_t step)
        : low(SplatBytes(x + P4Word(DotForm::kSplit, step, 0) * kWordCols)),
          high(SplatBytes(x + P4Word(DotForm::kSplit, step, 1) * kWordCols)) {}
  };
  static HWY_INLINE Sum Begin() { return hn::Zero(I16x8()); }
  template <size_t kPart>
  static HWY_INLINE VecI32 Finish(Sum sum, const int16_t* multipliers) {
    return hn::WidenMulPairwiseAdd(I32x4(), sum, hn::BitCast(I16x8(), SplatWord(multipliers)));
  }
  static HWY_INLINE Sum Accumulate(const Weights<0>& w, const Inputs<0>& x, Sum sum) {
    sum = hn::Add(sum, RelaxedDot2(x.low, w.low));
    return hn::Add(sum, RelaxedDot2(x.high, w.high));
  }
};

#endif  // HEADLIGHT_HAS_DOT4

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_CODE_DOTS_INL_H_
