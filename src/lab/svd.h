// Singular values and the best product of lower rank, in double: what the lab needs of linear
// algebra. Sizes are those of attention matrices; nothing here is for the forward pass.
#ifndef HEADLIGHT_LAB_SVD_H_
#define HEADLIGHT_LAB_SVD_H_

#include <cstddef>
#include <vector>

#include "lab/weights.h"

namespace headlight {

// Row-major [n_rows, n_cols].
struct Doubles {
  size_t n_rows = 0;
  size_t n_cols = 0;
  std::vector<double> values;

  Doubles() = default;
  Doubles(size_t rows, size_t cols) : n_rows(rows), n_cols(cols), values(rows * cols) {}
  double* row(size_t i) { return values.data() + i * n_cols; }
  const double* row(size_t i) const { return values.data() + i * n_cols; }
};

// Among all pairs of factors of inner width `rank`, the one whose product is nearest to left^T *
// right in the sum of squares (Eckart and Young 1936). left [d, m] and right [d, n] become [rank,
// m] with orthonormal rows and [rank, n] with orthogonal rows, the longest first. rank <= d.
void CutProduct(size_t rank, Doubles& left, Doubles& right);

// All min(n_rows, n_cols) of them, the largest first; exact to about 1e-8 of the largest, since
// they come from the smaller Gram matrix.
std::vector<double> SingularValues(const Weights& weights);

}  // namespace headlight

#endif  // HEADLIGHT_LAB_SVD_H_
