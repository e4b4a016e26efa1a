#include "position/absolute.h"

#include <bit>
#include <cmath>

namespace headlight {

std::vector<float> AlibiSlopes(size_t n_heads, double max_bias) {
  const size_t n = std::bit_floor(n_heads);
  std::vector<float> slopes(n_heads);
  for (size_t h = 0; h < n_heads; ++h) {
    // In steps of which n, or 2 n, make max_bias.
    const bool is_first = h < n;
    const double step = max_bias / static_cast<double>(is_first ? n : 2 * n);
    const size_t n_steps = is_first ? h + 1 : 2 * (h - n) + 1;
    slopes[h] = static_cast<float>(std::exp2(-step * static_cast<double>(n_steps)));
  }
  return slopes;
}

void AddSinusoid(size_t pos, size_t d, float* x) noexcept {
  for (size_t i = 0; i < d; ++i) {
    const double exponent = -static_cast<double>(i / 2 * 2) / static_cast<double>(d);
    const double angle = static_cast<double>(pos) * std::pow(10000.0, exponent);
    x[i] += static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
  }
}

}  // namespace headlight
