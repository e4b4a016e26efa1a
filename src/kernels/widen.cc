#include "kernels/widen.h"

#include <cstring>

#include "kernels/code_dots-inl.h"
#include "kernels/rows-inl.h"
#include "quant/file_blocks.h"

namespace headlight {
namespace {

using VecU8 = hn::Vec<U8x16>;

// Bytes of a word of four rows, signed, as 16-bit lanes.
struct WideBytes {
  VecI16 even, odd;
  HWY_INLINE explicit WideBytes(VecU8 bytes)
      : even(hn::ShiftRight<8>(hn::ShiftLeft<8>(hn::BitCast(I16x8(), bytes)))),
        odd(hn::ShiftRight<8>(hn::BitCast(I16x8(), bytes))) {}
};

HWY_INLINE void StoreWord(const WideBytes& bytes, size_t word, uint8_t* panel) {
  int16_t* out = reinterpret_cast<int16_t*>(panel + word * 2 * kVectorBytes);
  hn::Store(bytes.even, I16x8(), out);
  hn::Store(bytes.odd, I16x8(), out + kVectorBytes / sizeof(int16_t));
}

// Factors of a block's halves as 16-bit lanes: of words 0..3 and of words 4..7.
struct HalfFactors {
  VecI16 first, second;
};

HWY_INLINE VecU8 LoadPlane(const uint8_t* codes, size_t vector) {
  return hn::Load(U8x16(), codes + vector * kVectorBytes);
}

// kBits bits of each byte, from bit kShift on, at the byte's bottom. Shifting pairs of bytes is
// what the instruction sets have; the mask drops what came from the neighbour.
template <int kShift, uint8_t kBits>
HWY_INLINE VecU8 BitsOf(VecU8 plane) {
  const U16x8 d16;
  const VecU8 shifted = hn::BitCast(U8x16(), hn::ShiftRight<kShift>(hn::BitCast(d16, plane)));
  return hn::And(shifted, hn::Set(U8x16(), static_cast<uint8_t>((1 << kBits) - 1)));
}

template <int kShift>
HWY_INLINE VecU8 Raise(VecU8 bits) {
  return hn::BitCast(U8x16(), hn::ShiftLeft<kShift>(hn::BitCast(U16x8(), bits)));
}

// Codes of word kWord, not the nibbles of kP4.
template <size_t kBits, size_t kWord>
HWY_INLINE VecU8 PlaneWord(const uint8_t* codes) {
  if constexpr (kBits >= 4) {
    const VecU8 low = BitsOf<kWord % 2 * 4, 4>(LoadPlane(codes, kWord / 2));
    const uint8_t* more = codes + kBlockWords / 2 * kVectorBytes;
    if constexpr (kBits == 6) {
      return hn::Or(low, Raise<4>(BitsOf<kWord % 4 * 2, 2>(LoadPlane(more, kWord / 4))));
    } else {
      return hn::Or(low, Raise<4>(BitsOf<kWord, 1>(LoadPlane(more, 0))));
    }
  } else {
    const VecU8 low = BitsOf<kWord % 4 * 2, 2>(LoadPlane(codes, kWord / 4));
    if constexpr (kBits == 2) return low;
    return hn::Or(low, Raise<2>(BitsOf<kWord, 1>(LoadPlane(codes, 2))));
  }
}

template <size_t kBits>
void WidenPlanes(const uint8_t* codes, uint8_t offset, const HalfFactors* factors, uint8_t* panel) {
  // kP6, kP3 and kP2 have scales of kind kSuper16, kP5 has none.
  constexpr bool kHasFactors = kBits != 5;
  const VecU8 minus = hn::Set(U8x16(), offset);
  const auto widen = [&]<size_t kWord>() __attribute__((always_inline)) {
    WideBytes bytes(hn::Sub(PlaneWord<kBits, kWord>(codes), minus));
    if constexpr (kHasFactors) {
      const VecI16 factor = kWord < kBlockWords / 2 ? factors->first : factors->second;
      bytes.even = hn::Mul(bytes.even, factor);
      bytes.odd = hn::Mul(bytes.odd, factor);
    }
    StoreWord(bytes, kWord, panel);
  };
  [&]<size_t... word>(std::index_sequence<word...>) __attribute__((always_inline)) {
    (widen.template operator()<word>(), ...);
  }(std::make_index_sequence<kBlockWords>());
}

// What the 16 codes of 4 bits stand for.
struct NibbleTable {
  alignas(16) int8_t values[16];
  constexpr explicit NibbleTable(CodeValues kind) : values() {
    for (size_t i = 0; i < 16; ++i) {
      values[i] = static_cast<int8_t>(
          CodeValue({4, ScaleKind::kF16, kind, false}, static_cast<uint8_t>(i)));
    }
  }
};
constexpr NibbleTable kNibbleTables[] = {
    NibbleTable(CodeValues::kCentred), NibbleTable(CodeValues::kUnsigned),
    NibbleTable(CodeValues::kIq4), NibbleTable(CodeValues::kE2m1)};

void WidenNibbles(const PackedShape& shape, const uint8_t* codes, uint8_t* panel) {
  const int8_t* values = kNibbleTables[static_cast<size_t>(shape.code.values)].values;
  const auto table = hn::BitCast(U8x16(), hn::Load(I8x16(), values));
  for (size_t step = 0; step < kBlockWords / 2; ++step) {
    const VecU8 plane = LoadPlane(codes, step);
    const WideBytes low(hn::TableLookupBytes(table, BitsOf<0, 4>(plane)));
    const WideBytes high(hn::TableLookupBytes(table, BitsOf<4, 4>(plane)));
    StoreWord(low, P4Word(shape.form, step, 0), panel);
    StoreWord(high, P4Word(shape.form, step, 1), panel);
  }
}

HWY_INLINE void WidenBytes(const uint8_t* codes, uint8_t flip, size_t n_groups, uint8_t* panel) {
  const auto flips = hn::Set(U8x16(), flip);
  for (size_t g = 0; g < n_groups; ++g) {
    const uint8_t* from = PinPointer(codes + g * kP8BlockBytes);
    for (size_t word = 0; word < kBlockWords; ++word) {
      StoreWord(WideBytes(hn::Xor(LoadPlane(from, word), flips)), word, panel);
    }
    panel += kPanelBlockBytes;
  }
}

// The head of a block: the unit's bytes and the block's number in it.
struct Head {
  HeadUnit unit;
  const uint8_t* bytes;
  size_t block;
  size_t row;  // the group's first

  Head(const CodeGroup& from, size_t i_block)
      : unit(from.shape.code, from.layout.n_groups),
        bytes(from.strip + i_block / unit.n_blocks * unit.bytes),
        block(i_block % unit.n_blocks),
        row(from.group * kRowGroup) {}
  const uint8_t* factors() const { return bytes + unit.factors + block * unit.factor_stride; }
};

// Four bytes, one a row.
template <class D>
HWY_INLINE VecF32 LoadBytes(D d, const uint8_t* bytes) {
  hn::TFromD<D> four[4];
  std::memcpy(four, bytes, sizeof(four));
  return hn::ConvertTo(F32x4(), hn::PromoteTo(I32x4(), hn::LoadU(d, four)));
}

// The factors of a kSuper16 block.
HalfFactors LoadFactors(const CodeGroup& from, size_t block) {
  const Head head(from, block);
  const hn::FixedTag<int8_t, 8> d8;
  const auto bytes =
      hn::LoadU(d8, reinterpret_cast<const int8_t*>(head.factors() + head.row * kBlockHalves));
  VecI16 factors = hn::PromoteTo(I16x8(), bytes);  // [4 rows][2 halves]
  if (from.shape.code.has_mins) factors = hn::And(factors, hn::Set(I16x8(), 15));
  if (WordsMixHalves(from.shape.form)) return {factors, factors};
  return {hn::DupEven(factors), hn::DupOdd(factors)};
}

// One block of one group of a family other than kP8.
void WidenGroup(const CodeGroup& from, size_t block, const uint8_t* codes, uint8_t offset,
                uint8_t* panel) {
  const PackedFamily family = from.shape.family;
  if (family == PackedFamily::kP4) return WidenNibbles(from.shape, codes, panel);
  if (family == PackedFamily::kP5) return WidenPlanes<5>(codes, offset, nullptr, panel);
  const HalfFactors factors = LoadFactors(from, block);
  if (family == PackedFamily::kP6) return WidenPlanes<6>(codes, offset, &factors, panel);
  if (family == PackedFamily::kP3) return WidenPlanes<3>(codes, offset, &factors, panel);
  WidenPlanes<2>(codes, offset, &factors, panel);
}

}  // namespace

void WidenCodes(const CodeGroup& from, size_t n_groups, size_t begin, size_t n_blocks,
                uint8_t* panel) noexcept {
  const PackedShape& shape = from.shape;
  const bool is_centred = shape.code.values == CodeValues::kCentred;
  const auto offset = static_cast<uint8_t>(is_centred ? 1u << (shape.code.n_bits - 1) : 0u);
  const size_t code_bytes = CodeBlockBytes(shape.family);
  const uint8_t* block_codes = from.Codes(begin);
  for (size_t b = 0; b < n_blocks; ++b, block_codes += from.layout.block_bytes) {
    const uint8_t* codes = block_codes;
    if (shape.family == PackedFamily::kP8) {
      // The groups' codes lie side by side, as their words do in the panel.
      WidenBytes(codes, P8Flip(shape.form), n_groups, panel);
      panel += n_groups * kPanelBlockBytes;
      continue;
    }
    CodeGroup group = from;
    for (; group.group < from.group + n_groups; ++group.group) {
      WidenGroup(group, begin + b, codes, offset, panel);
      codes += code_bytes;
      panel += kPanelBlockBytes;
    }
  }
}

void WidenScales(const CodeGroup& from, size_t begin, size_t n_blocks, float* scales,
                 size_t stride) noexcept {
  const F32x4 df;
  const F16Constants constants;
  if (ScalesInBlocks(from.shape)) {
    const uint8_t* at =
        from.strip + begin * from.layout.block_bytes + from.group * kScaleBlockBytes;
    for (size_t b = 0; b < n_blocks; ++b, at += from.layout.block_bytes) {
      hn::Store(LoadF16x4(at, constants), df, scales + b * stride);
    }
    return;
  }
  const ScaleKind kind = from.shape.code.scales;
  for (size_t b = 0; b < n_blocks; ++b, scales += stride) {
    const Head head(from, begin + b);
    if (kind == ScaleKind::kE8m0) {
      for (size_t i = 0; i < kRowGroup; ++i) scales[i] = BlockScale(kind, head.bytes[head.row + i]);
      continue;
    }
    VecF32 scale = LoadF16x4(head.bytes + head.row * sizeof(uint16_t), constants);
    if (kind == ScaleKind::kSuper32) {
      scale = hn::Mul(scale, LoadBytes(hn::FixedTag<int8_t, 4>(), head.factors() + head.row));
    }
    hn::Store(scale, df, scales);
  }
}

namespace {

void WidenBlockMins(const CodeGroup& from, size_t block, float* mins) {
  const F32x4 df;
  const Head head(from, block);
  const HeadUnit& unit = head.unit;
  const VecF32 min =
      LoadF16x4(head.bytes + unit.mins + head.row * sizeof(uint16_t), F16Constants());
  VecF32 halves[kBlockHalves] = {min, min};
  if (from.shape.code.scales == ScaleKind::kSuper32) {
    const uint8_t* factors = head.bytes + unit.min_factors + head.block * unit.min_factor_stride;
    const hn::FixedTag<uint8_t, 4> d8;
    halves[0] = halves[1] = hn::Mul(min, LoadBytes(d8, factors + head.row));
  } else if (from.shape.code.scales == ScaleKind::kSuper16) {
    // A lane has the bytes of a row's two halves; a min factor is the high nibble of its byte.
    const hn::FixedTag<uint16_t, 4> d16;
    uint16_t pairs[kRowGroup];
    std::memcpy(pairs, head.factors() + head.row * kBlockHalves, sizeof(pairs));
    const VecI32 both = hn::PromoteTo(I32x4(), hn::LoadU(d16, pairs));
    const VecI32 first = hn::And(hn::ShiftRight<4>(both), hn::Set(I32x4(), 15));
    halves[0] = hn::Mul(min, hn::ConvertTo(df, first));
    halves[1] = hn::Mul(min, hn::ConvertTo(df, hn::ShiftRight<12>(both)));
  }
  hn::Store(halves[0], df, mins);
  hn::Store(halves[1], df, mins + kRowGroup);
}

}  // namespace

void WidenMins(const CodeGroup& from, size_t begin, size_t n_blocks, float* mins) noexcept {
  for (size_t b = 0; b < n_blocks; ++b) {
    WidenBlockMins(from, begin + b, mins + b * kBlockHalves * kRowGroup);
  }
}

}  // namespace headlight
