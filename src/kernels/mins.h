// What the minima of weights take away from a product: sum over the columns of -min * x, by the
// sums of the activations' codes. For matmul_codes.cc.
#ifndef HEADLIGHT_KERNELS_MINS_H_
#define HEADLIGHT_KERNELS_MINS_H_

#include <cstddef>

#include "kernels/matmul.h"
#include "kernels/widen.h"

namespace headlight {

// The first group's rows of the first token.
struct MinsOut {
  float* y;
  size_t y_stride;
  size_t n_rows;  // from y on, at least one
};

struct TokenRange {
  size_t first;
  size_t n;
};

// y = 0, then for each block in order y -= min * (float(sum of m * c) * x scale): once with the
// block's sum, or, where minima are of 16 columns, for its first half, then for its second.
// n_groups adjacent groups from groups.group on.
void SubtractMins(const CodeGroup& groups, size_t n_groups, const Activations& x, TokenRange tokens,
                  const MinsOut& out) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_MINS_H_
