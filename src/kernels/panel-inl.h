// Packed codes of a tile's row groups as int16 weights, made once for all tokens of a prefill: what
// each product by 16-bit dots would else do again to its operands. One form for every family.
#ifndef HEADLIGHT_KERNELS_PANEL_INL_H_
#define HEADLIGHT_KERNELS_PANEL_INL_H_

#include <cstddef>
#include <cstdint>

#include "base/aligned.h"
#include "kernels/code_dots-inl.h"
#include "quant/packed_layout.h"

namespace headlight {

// Blocks widened at a time: two groups of 24 are 12 KiB, which stay in a first-level cache of 32
// KiB beside the tokens of a tile.
inline constexpr size_t kPanelBlocks = 24;
// Of a group's block: for each of the 8 words bytes 0 and 2, then 1 and 3, of all four rows.
inline constexpr size_t kPanelBlockBytes = kBlockCols * kRowGroup * sizeof(int16_t);

// Weights of a panel against Activations::wide_codes.
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

// One word of four rows.
HWY_INLINE void StorePanelWord(VecI16 even, VecI16 odd, size_t word, uint8_t* panel) {
  int16_t* to = reinterpret_cast<int16_t*>(panel + word * 2 * kVectorBytes);
  hn::Store(even, I16x8(), to);
  hn::Store(odd, I16x8(), to + kVectorBytes / sizeof(int16_t));
}

// A group's block of kP8 or kP4 codes, of a form that mixes halves.
inline void WidenToPanel(const PackedShape& shape, const uint8_t* codes, uint8_t* panel) {
  const I16x8 d16;
  if (shape.family == PackedFamily::kP8) {
    const auto flip = hn::Set(U8x16(), P8Flip(shape.form));
    for (size_t word = 0; word < kBlockWords; ++word) {
      const auto w =
          hn::BitCast(d16, hn::Xor(hn::Load(U8x16(), codes + word * kVectorBytes), flip));
      StorePanelWord(hn::ShiftRight<8>(hn::ShiftLeft<8>(w)), hn::ShiftRight<8>(w), word, panel);
    }
    return;
  }
  const U16x8 du16;
  const auto nibble = hn::Set(du16, 15);
  const auto offset = hn::Set(d16, kP4Offset);
  const auto code = [&](VecU16 w) { return hn::Sub(hn::BitCast(d16, hn::And(w, nibble)), offset); };
  for (size_t step = 0; step < kBlockWords / 2; ++step) {
    const VecU16 w = LoadCodes(codes + step * kVectorBytes);
    StorePanelWord(code(w), code(hn::ShiftRight<8>(w)), P4Word(shape.form, step, 0), panel);
    StorePanelWord(code(hn::ShiftRight<4>(w)), code(hn::ShiftRight<12>(w)),
                   P4Word(shape.form, step, 1), panel);
  }
}

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_PANEL_INL_H_
