// Where things stand inside a packed matrix; for the packer, DecodeRow and the kernels only.
//
// A matrix is a sequence of strips of kStripGroups row groups (the last strip has the groups that
// are left), each a sequence of blocks of kBlockCols columns, so that reading it from first to last
// row is one forward stream even where a kernel takes a whole strip at once. Inside a strip of n
// groups, lane r of every 4-lane unit belongs to the group's row r:
// - kP8: blocks of f16 scales [n][4], padded to 16 bytes, then codes [n][8 words][4 rows][4 bytes]
//   int8. Word w holds the columns WordColumn(form, w, 0..3) of the block. Stored as w ^ 0x80, or
//   as w for DotForm::kSigned.
// - kP4: the same scales, then codes [n][4 steps][4 rows][4 bytes]. Step s holds word
//   P4Word(form, s, 0) in its low nibbles and P4Word(form, s, 1) in its high ones, each code as
//   w + 8.
// - kF32, kF16, kBF16: [n_blocks * 32 columns][n][4 rows].
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

constexpr bool HasCodes(PackedFamily family) {
  return family == PackedFamily::kP8 || family == PackedFamily::kP4;
}

constexpr size_t CodeBlockBytes(PackedFamily family) {
  return family == PackedFamily::kP8 ? kP8BlockBytes : kP4BlockBytes;
}

// Row groups that a matvec kernel takes at once.
inline constexpr size_t kStripGroups = 4;
inline constexpr size_t kStripRows = kStripGroups * kRowGroup;

// One strip of a matrix.
struct StripLayout {
  size_t n_groups;
  size_t scale_bytes;  // kP8, kP4: of a block; a multiple of 16, so that no vector of codes
                       // straddles a cache line
  size_t block_bytes;  // of a block of kBlockCols columns, scales included

  constexpr StripLayout(PackedFamily family, size_t groups)
      : n_groups(groups),
        scale_bytes(HasCodes(family) ? RoundUp(groups * kScaleBlockBytes, kVectorBytes) : 0),
        block_bytes(HasCodes(family)
                        ? scale_bytes + groups * CodeBlockBytes(family)
                        : groups * kBlockCols * kRowGroup * PlainElementBytes(family)) {}
};

// Of the strip that holds row group `group`.
constexpr StripLayout StripOf(const PackedShape& shape, size_t group) {
  const size_t first = group / kStripGroups * kStripGroups;
  const size_t n_left = shape.n_row_groups - first;
  return StripLayout(shape.family, n_left < kStripGroups ? n_left : kStripGroups);
}

// Offset of that strip from the matrix's start.
constexpr size_t StripOffset(const PackedShape& shape, size_t group) {
  return group / kStripGroups * shape.n_blocks *
         StripLayout(shape.family, kStripGroups).block_bytes;
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

constexpr uint8_t P8Flip(DotForm form) { return form == DotForm::kSigned ? 0 : kP8Flip; }

}  // namespace headlight

#endif  // HEADLIGHT_QUANT_PACKED_LAYOUT_H_
