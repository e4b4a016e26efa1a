// Between the entry of the matrix products (matmul.cc) and its two kernels: a stretch of one
// matrix's rows against all tokens, on one thread. Not for use outside kernels/.
#ifndef HEADLIGHT_KERNELS_TILES_H_
#define HEADLIGHT_KERNELS_TILES_H_

#include <cstddef>

#include "kernels/matmul.h"

namespace headlight {

struct RowRange {
  const PackedMatrix* w = nullptr;
  const Activations* x = nullptr;
  float* y = nullptr;  // [n_tokens, n_rows], the matrix's row 0
  size_t y_stride = 0;
  size_t group_begin = 0;  // row groups
  size_t group_end = 0;
};

// What MatMulCodes reads of the activations for a matrix of this shape (one with codes).
CodeUse CodeUseOf(const PackedShape& shape) noexcept;
// Weights with codes, 8-bit activations (quantised already).
void MatMulCodes(const RowRange& range) noexcept;
// Every family, f32 activations.
void MatMulFloats(const RowRange& range) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_TILES_H_
