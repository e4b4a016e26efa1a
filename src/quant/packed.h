// Packed weights: the few in-memory families that serve every file type, laid out for the kernels.
// Shapes and bytes are known from a file's header alone; PackedWriter fills a matrix as its bytes
// arrive, in chunks cut anywhere. Reading for arithmetic is in kernels/; DecodeRow here is the
// exact scalar view of one row.
#ifndef HEADLIGHT_QUANT_PACKED_H_
#define HEADLIGHT_QUANT_PACKED_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "quant/file_blocks.h"
#include "simd/dot_form.h"

namespace headlight {

// kP<n>: codes of n bits, with scales and maybe minima as their CodeFormat says. kF16, kBF16, kF32:
// plain floats.
enum class PackedFamily : uint8_t { kF32, kF16, kBF16, kP8, kP6, kP5, kP4, kP3, kP2 };
const char* PackedFamilyName(PackedFamily family);

inline constexpr size_t kRowGroup = 4;    // rows of a group: one lane of a 16-byte vector each
inline constexpr size_t kBlockCols = 32;  // columns of a block; at least 16 share a scale

// Everything about a packed matrix [n_rows, n_cols] but its bytes. Rows are padded to a multiple of
// kRowGroup and columns to a multiple of kBlockCols with zeros; the padding is part of `bytes`.
struct PackedShape {
  PackedFamily family = PackedFamily::kF32;
  CodeFormat code;                // of kP<n>
  DotForm form = DotForm::kWide;  // how kP8 codes are stored and how codes meet 8-bit activations
  size_t n_rows = 0;
  size_t n_cols = 0;
  size_t n_row_groups = 0;  // CeilDiv(n_rows, kRowGroup)
  size_t n_blocks = 0;      // CeilDiv(n_cols, kBlockCols)
  size_t bytes = 0;         // multiple of kAlignment
};

// Throws Error(kUnsupported) for a type without a decoder, Error(kBadModel) if n_cols is no
// multiple of its block or n_rows * n_cols overflows.
PackedShape PlanPacked(TensorType type, size_t n_rows, size_t n_cols, DotForm form);

// Non-owning view: shape + bytes (64-byte aligned).
struct PackedMatrix {
  PackedShape shape;
  const uint8_t* data = nullptr;
};

// Packs one tensor from its file bytes, appended in order in chunks of any size.
class PackedWriter {
 public:
  // dst: shape.bytes bytes, 64-byte aligned, all zero.
  PackedWriter(TensorType type, const PackedShape& shape, uint8_t* dst);
  // Consumes at most the bytes still missing; returns how many it took. Throws Error(kBadModel) on
  // a scale or weight that is inf or NaN (details: row, column).
  size_t Append(std::span<const uint8_t> bytes);
  bool done() const { return n_done_ == n_total_; }
  uint64_t n_file_bytes() const { return n_total_; }

 private:
  // Packs n_blocks whole file blocks, all in row row_, and moves on.
  void PackBlocks(const uint8_t* src, size_t n_blocks);

  TensorType type_;
  PackedShape shape_;
  uint8_t* dst_;
  size_t n_block_ = 0;      // columns of a file block
  size_t block_bytes_ = 0;  // bytes of a file block
  uint64_t n_done_ = 0;     // file bytes taken
  uint64_t n_total_ = 0;    // file bytes of the tensor
  size_t row_ = 0;          // place of the next block: its row, and its number within the row
  size_t next_block_ = 0;
  size_t n_carry_ = 0;  // bytes of a block cut by a chunk's end
  uint8_t carry_[256] = {};
};

// out[n_cols] = row `row`, exactly the values that the file's type defines (float32).
void DecodeRow(const PackedMatrix& w, size_t row, float* out) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_QUANT_PACKED_H_
