// Where things stand inside a packed matrix; for the packer, DecodeRow and the kernels only.
//
// A matrix is a sequence of strips of kStripGroups row groups (the last strip has the groups that
// are left), each a sequence of blocks of kBlockCols columns, so that reading it from first to last
// row is one forward stream even where a kernel takes a whole strip at once. Inside a strip of n
// groups, lane r of every 4-lane unit belongs to the group's row r:
// - kP8 and kP4 with a plain scale and centred codes (Q8_0, Q4_0): blocks of f16 scales [n][4],
//   padded to 16 bytes, then codes of n groups.
// - every other coded format: a head with what scales the codes (HeadUnit), padded to 16 bytes,
// then
//   blocks of codes alone.
// - kF32, kF16, kBF16: [n_blocks * 32 columns][n][4 rows].
//
// Codes of a block of a group; word w holds the columns WordColumn(form, w, 0..3), a byte each:
// - kP8: [8 words][4 rows][4 bytes] int8, as w ^ 0x80, or as w for DotForm::kSigned.
// - kP6, kP5, kP4: [4 steps][4 rows][4 bytes]: the low 4 bits; step s has word NibbleWord(.., s, 0)
//   in its low nibbles and NibbleWord(.., s, 1) in its high ones.
// - then kP6: bits 4 and 5, and kP3, kP2: bits 0 and 1, [2][4 rows][4 bytes]: vector v has words
//   4 v..4 v + 3 in pairs of bits from the lowest.
// - then kP5: bit 4, and kP3: bit 2, [4 rows][4 bytes]: word w in bit w.
#ifndef HEADLIGHT_QUANT_PACKED_LAYOUT_H_
#define HEADLIGHT_QUANT_PACKED_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "base/aligned.h"
#include "quant/packed.h"

namespace headlight {

inline constexpr size_t kVectorBytes = 16;
inline constexpr size_t kWordCols = 4;  // columns of a row in a vector of byte codes
inline constexpr size_t kBlockWords = kBlockCols / kWordCols;  // vectors of codes in a block of kP8
inline constexpr size_t kBlockHalves = 2;                      // activations scale each by itself
inline constexpr size_t kHalfCols = kBlockCols / kBlockHalves;
inline constexpr size_t kP8BlockBytes = kBlockCols * kRowGroup;  // codes of a block of a group
inline constexpr size_t kP4BlockBytes = kP8BlockBytes / 2;
inline constexpr size_t kScaleBlockBytes = kRowGroup * sizeof(uint16_t);
inline constexpr uint8_t kP8Flip = 0x80;  // w ^ kP8Flip is w + kP8Offset as an unsigned byte
inline constexpr int32_t kP8Offset = 128;
inline constexpr int32_t kP4Offset = 8;

// Bytes of one element of the plain families.
constexpr size_t PlainElementBytes(PackedFamily family) {
  return family == PackedFamily::kF32 ? sizeof(float) : sizeof(uint16_t);
}

// 0 for the plain families.
constexpr size_t CodeBits(PackedFamily family) {
  switch (family) {
    case PackedFamily::kP8:
      return 8;
    case PackedFamily::kP6:
      return 6;
    case PackedFamily::kP5:
      return 5;
    case PackedFamily::kP4:
      return 4;
    case PackedFamily::kP3:
      return 3;
    case PackedFamily::kP2:
      return 2;
    default:
      return 0;
  }
}

constexpr bool HasCodes(PackedFamily family) { return CodeBits(family) != 0; }

constexpr size_t CodeBlockBytes(PackedFamily family) {
  return kBlockCols * kRowGroup * CodeBits(family) / 8;
}

// Whether each block carries its scales itself.
constexpr bool ScalesInBlocks(const PackedShape& shape) {
  return shape.code == CodeFormat{8} || shape.code == CodeFormat{4};
}

inline constexpr size_t kSuperBlocks = kMaxFileBlock / kBlockCols;

// A stretch of a strip's head: of one block, or for super-block scales of kSuperBlocks of them. A
// row's entries are numbered r = group * 4 + lane in the strip:
//   scales       [n][4] f16 (kE8m0: a byte)
//   mins         [n][4] f16, with has_mins
//   factors      [block][n][4] int8 for kSuper32; [block][n][4][2 halves] int8 for kSuper16, with
//                mins nibbles factor | min factor << 4
//   min factors  [block][n][4], kSuper32 with has_mins
struct HeadUnit {
  size_t n_blocks;
  size_t mins, factors, min_factors;  // offsets
  size_t factor_stride;               // from a block's factors to the next one's
  size_t min_factor_stride;
  size_t bytes;

  constexpr HeadUnit(const CodeFormat& code, size_t n_groups)
      : n_blocks(IsSuper(code.scales) ? kSuperBlocks : 1),
        mins(n_groups * kRowGroup * (code.scales == ScaleKind::kE8m0 ? 1 : 2)),
        factors(mins + (code.has_mins ? n_groups * kRowGroup * sizeof(uint16_t) : 0)),
        min_factors(0),
        factor_stride(0),
        min_factor_stride(0),
        bytes(factors) {
    if (!IsSuper(code.scales)) return;
    const bool by_halves = code.scales == ScaleKind::kSuper16;
    factor_stride = n_groups * kRowGroup * (by_halves ? 2 : 1);
    min_factors = factors + n_blocks * factor_stride;
    min_factor_stride = code.has_mins && !by_halves ? n_groups * kRowGroup : 0;
    bytes = min_factors + n_blocks * min_factor_stride;
  }
};

// Row groups that a matvec kernel takes at once.
inline constexpr size_t kStripGroups = 4;
inline constexpr size_t kStripRows = kStripGroups * kRowGroup;

// One strip of a matrix: its head, if it has one, then its blocks.
struct StripLayout {
  size_t n_groups;
  size_t head_bytes;
  size_t scale_bytes;  // in each block, before its codes; a multiple of 16, so that no vector of
                       // codes straddles a cache line
  size_t block_bytes;  // of a block of kBlockCols columns, its scales included

  constexpr StripLayout(const PackedShape& shape, size_t groups)
      : n_groups(groups), head_bytes(0), scale_bytes(0), block_bytes(0) {
    if (!HasCodes(shape.family)) {
      block_bytes = groups * kBlockCols * kRowGroup * PlainElementBytes(shape.family);
      return;
    }
    if (ScalesInBlocks(shape)) {
      scale_bytes = RoundUp(groups * kScaleBlockBytes, kVectorBytes);
    } else {
      const HeadUnit unit(shape.code, groups);
      head_bytes = RoundUp(CeilDiv(shape.n_blocks, unit.n_blocks) * unit.bytes, kVectorBytes);
    }
    block_bytes = scale_bytes + groups * CodeBlockBytes(shape.family);
  }
  constexpr size_t Bytes(size_t n_blocks) const { return head_bytes + n_blocks * block_bytes; }
};

// Of the strip that holds row group `group`.
constexpr StripLayout StripOf(const PackedShape& shape, size_t group) {
  const size_t first = group / kStripGroups * kStripGroups;
  const size_t n_left = shape.n_row_groups - first;
  return StripLayout(shape, n_left < kStripGroups ? n_left : kStripGroups);
}

// Offset of that strip from the matrix's start.
constexpr size_t StripOffset(const PackedShape& shape, size_t group) {
  return group / kStripGroups * StripLayout(shape, kStripGroups).Bytes(shape.n_blocks);
}

// Which columns a dot adds up. Dots of four bytes keep the halves of a block apart. Dots of pairs
// have a sum for each half in every lane, the first half's in its lower 16 bits: words are made of
// two columns of either.
constexpr bool WordsMixHalves(DotForm form) {
  return form == DotForm::kWide || form == DotForm::kSplit;
}

// Column of byte 0..3 of word 0..7 of a block of byte codes.
constexpr size_t WordColumn(DotForm form, size_t word, size_t byte) {
  if (!WordsMixHalves(form)) return word * kWordCols + byte;
  return byte / 2 * kHalfCols + word * 2 + byte % 2;
}

// The word in the low (0) or high (1) nibbles of step 0..3 of a block of kP4.
constexpr size_t P4Word(DotForm form, size_t step, size_t nibble) {
  return WordsMixHalves(form) ? step * 2 + nibble : nibble * (kBlockWords / 2) + step;
}

// The same for kP6 and kP5, whose other planes want one order in every form.
constexpr size_t NibbleWord(PackedFamily family, DotForm form, size_t step, size_t nibble) {
  return family == PackedFamily::kP4 ? P4Word(form, step, nibble) : step * 2 + nibble;
}

constexpr uint8_t P8Flip(DotForm form) { return form == DotForm::kSigned ? 0 : kP8Flip; }

}  // namespace headlight

#endif  // HEADLIGHT_QUANT_PACKED_LAYOUT_H_
