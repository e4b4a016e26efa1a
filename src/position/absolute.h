// Positions that do not rotate: ALiBi's slopes, and the sinusoidal rows that are added to
// embeddings. (Learned rows are weights: model/.)
#ifndef HEADLIGHT_POSITION_ABSOLUTE_H_
#define HEADLIGHT_POSITION_ABSOLUTE_H_

#include <cstddef>
#include <vector>

namespace headlight {

// ALiBi (arXiv 2108.12409), [n_heads]. With n the largest power of two up to n_heads, heads 0..n-1
// have 2^(-max_bias (h + 1) / n), the others every second of the slopes that 2 n heads would have.
// The paper's max_bias is 8.
std::vector<float> AlibiSlopes(size_t n_heads, double max_bias);

// x[d] += sin(pos / 10000^(2i / d)) at 2i, cos of the same angle at 2i + 1 (arXiv 1706.03762).
void AddSinusoid(size_t pos, size_t d, float* x) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_POSITION_ABSOLUTE_H_
