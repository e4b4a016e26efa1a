// Where things stand inside a packed matrix; for the packer, DecodeRow and the kernels only.
//
// A matrix is a sequence of row groups (kRowGroup rows each), one after the other, so that reading
// it from first to last row is one forward stream. Inside a group, lane r of every 4-lane unit
// belongs to the group's row r:
// - kP8: f16 scales [n_blocks][4], padded to 16 bytes, then codes [n_blocks][8 steps][4 rows][4
//   columns] int8. Step s holds columns 4s..4s+3 of the block. Stored as w ^ 0x80, or as w for
//   DotForm::kSigned.
// - kP4: the same scales, then codes [n_blocks][4 steps][4 rows][4 bytes]. Byte i of step s holds
//   column 4s+i in its low nibble and column 16+4s+i in its high one, each as w + 8.
// - kF32, kF16, kBF16: [n_blocks * 32 columns][4 rows].
// Scales come first: they are read a little before their codes, where a prefetcher that follows the
// stream has them.
#ifndef HEADLIGHT_QUANT_PACKED_LAYOUT_H_
#define HEADLIGHT_QUANT_PACKED_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "base/aligned.h"
#include "quant/packed.h"

namespace headlight {

inline constexpr size_t kVectorBytes = 16;
inline constexpr size_t kStepCols = 4;  // columns of a row in a vector of codes
inline constexpr size_t kBlockSteps = kBlockCols / kStepCols;  // vectors of codes in a block of kP8
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

// Offset of the codes from the group's start; a multiple of 16, so that no vector straddles a cache
// line.
constexpr size_t CodesOffset(size_t n_blocks) {
  return RoundUp(n_blocks * kScaleBlockBytes, kVectorBytes);
}

constexpr size_t GroupBytes(PackedFamily family, size_t n_blocks) {
  return HasCodes(family) ? CodesOffset(n_blocks) + n_blocks * CodeBlockBytes(family)
                          : n_blocks * kBlockCols * kRowGroup * PlainElementBytes(family);
}

constexpr uint8_t P8Flip(DotForm form) { return form == DotForm::kSigned ? 0 : kP8Flip; }

}  // namespace headlight

#endif  // HEADLIGHT_QUANT_PACKED_LAYOUT_H_
