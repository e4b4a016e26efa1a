// Packed codes of any family as 16-bit integers and what scales them as floats, a group's block at
// a time: what a tile of weights needs before it can meet many tokens, and the one place that reads
// heads and bit planes. For the matrix kernels only.
#ifndef HEADLIGHT_KERNELS_WIDEN_H_
#define HEADLIGHT_KERNELS_WIDEN_H_

#include <cstddef>
#include <cstdint>

#include "quant/packed.h"
#include "quant/packed_layout.h"

namespace headlight {

// Of a group's block: for each of the 8 words bytes 0 and 2, then 1 and 3, of all four rows.
inline constexpr size_t kPanelBlockBytes = kBlockCols * kRowGroup * sizeof(int16_t);

// A row group of a strip of a matrix with codes.
struct CodeGroup {
  const PackedShape& shape;
  StripLayout layout;
  const uint8_t* strip;
  size_t group;  // of the strip

  const uint8_t* Codes(size_t block) const {
    return strip + layout.head_bytes + block * layout.block_bytes + layout.scale_bytes +
           group * CodeBlockBytes(shape.family);
  }
};

// Of n_groups adjacent groups from `from` on and blocks [begin, begin + n_blocks):
// panel[block][group] of kPanelBlockBytes, 16-byte aligned: the values that codes stand for, times
// the factors of their halves where a scale has one for each 16 columns (kSuper16): at most 13 bits
// with sign, so that a block's products with m * c stay inside 32 bits.
void WidenCodes(const CodeGroup& from, size_t n_groups, size_t begin, size_t n_blocks,
                uint8_t* panel) noexcept;

// Of blocks [begin, begin + n_blocks): scales[block][4 rows], blocks `stride` floats apart, 16-byte
// aligned: what the panel's integers are multiplied with, exact.
void WidenScales(const CodeGroup& from, size_t begin, size_t n_blocks, float* scales,
                 size_t stride) noexcept;

// Of the same blocks mins[block][2 halves][4 rows]: what is subtracted from each weight of the
// half, exact. has_mins only.
void WidenMins(const CodeGroup& from, size_t begin, size_t n_blocks, float* mins) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_WIDEN_H_
