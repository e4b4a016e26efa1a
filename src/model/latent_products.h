// Products with some rows of a packed matrix, and with their transpose: what latent attention needs
// of matrices that a file joins, or has the other way round. Rows are decoded one by one, which
// costs about as much as they are long; the usual files need none of it.
#ifndef HEADLIGHT_MODEL_LATENT_PRODUCTS_H_
#define HEADLIGHT_MODEL_LATENT_PRODUCTS_H_

#include <cstddef>

#include "quant/packed.h"

namespace headlight {

// Rows [first, first + n) of w; its rows have at most kMaxLatentRank columns.
struct MatrixRows {
  const PackedMatrix* w = nullptr;
  size_t first = 0;
  size_t n = 0;
};
inline constexpr size_t kMaxLatentRank = 1024;

// y[n] = rows * x, x [n_cols].
void MultiplyRows(const MatrixRows& rows, const float* x, float* y) noexcept;
// y[n_cols] = rows^T * x, x [n].
void MultiplyTransposed(const MatrixRows& rows, const float* x, float* y) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_LATENT_PRODUCTS_H_
