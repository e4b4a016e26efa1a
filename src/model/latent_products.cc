#include "model/latent_products.h"

#include <algorithm>

namespace headlight {

void MultiplyRows(const MatrixRows& rows, const float* x, float* y) noexcept {
  float row[kMaxLatentRank];
  const size_t n_cols = rows.w->shape.n_cols;
  for (size_t i = 0; i < rows.n; ++i) {
    DecodeRow(*rows.w, rows.first + i, row);
    float sum = 0.0f;
    for (size_t j = 0; j < n_cols; ++j) sum += row[j] * x[j];
    y[i] = sum;
  }
}

void MultiplyTransposed(const MatrixRows& rows, const float* x, float* y) noexcept {
  float row[kMaxLatentRank];
  const size_t n_cols = rows.w->shape.n_cols;
  std::fill_n(y, n_cols, 0.0f);
  for (size_t i = 0; i < rows.n; ++i) {
    DecodeRow(*rows.w, rows.first + i, row);
    for (size_t j = 0; j < n_cols; ++j) y[j] += row[j] * x[i];
  }
}

}  // namespace headlight
