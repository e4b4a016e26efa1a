#include "kernels/matmul_reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/aligned.h"
#include "kernels/matmul.h"
#include "quant/blocks.h"
#include "quant/packed.h"

namespace headlight {
namespace {

constexpr size_t kScaleBytes = 2;

// Code of column c of a Q8_0 or Q4_0 block.
int BlockCode(TensorType type, const uint8_t* block, size_t c) {
  const uint8_t* codes = block + kScaleBytes;
  if (type == TensorType::kQ8_0) return static_cast<int8_t>(codes[c]);
  return (c < 16 ? codes[c] & 15 : codes[c - 16] >> 4) - 8;
}

}  // namespace

QuantisedReference QuantiseReference(const float* x, size_t n_cols) {
  const size_t n_blocks = CeilDiv(n_cols, kBlockCols);
  std::vector<float> padded(x, x + n_cols);
  padded.resize(n_blocks * kBlockCols);
  const auto largest = [&](size_t begin, size_t n) {
    float max = 0.0f;
    for (size_t i = begin; i < begin + n; ++i) max = std::max(max, std::fabs(padded[i]));
    return max;
  };
  QuantisedReference out;
  for (size_t b = 0; b < n_blocks; ++b) {
    const float max = largest(b * kBlockCols, kBlockCols);
    const bool is_zero = max < 1e-30f;
    out.scales.push_back(is_zero ? 0.0f : max / 2032.0f);
    out.sums.push_back(0);
    for (size_t half = b * kBlockCols; half < (b + 1) * kBlockCols; half += kHalfCols) {
      const float share = is_zero ? 0.0f : std::ceil(largest(half, kHalfCols) / max * 16.0f);
      const float multiplier = std::max(share, 1.0f);
      const float inverse = is_zero ? 0.0f : 2032.0f / max / multiplier;
      out.multipliers.push_back(static_cast<int16_t>(multiplier));
      for (size_t i = half; i < half + kHalfCols; ++i) {
        // nearbyint: to nearest even, the mode that every program starts in.
        out.codes.push_back(static_cast<int8_t>(std::nearbyint(padded[i] * inverse)));
        out.sums.back() += out.codes.back() * out.multipliers.back();
      }
    }
  }
  return out;
}

void MatVecCodesReference(const FileMatrix& w, const QuantisedReference& x, float* y) {
  const TensorTypeTraits& traits = *FindTensorType(static_cast<uint32_t>(w.type));
  const size_t n_blocks = w.n_cols / kBlockCols;
  const uint8_t* block = w.bytes;
  for (size_t row = 0; row < w.n_rows; ++row) {
    float total = 0.0f;
    for (size_t b = 0; b < n_blocks; ++b) {
      int32_t sum = 0;
      for (size_t c = 0; c < kBlockCols; ++c) {
        const size_t column = b * kBlockCols + c;
        sum += BlockCode(w.type, block, c) * x.codes[column] * x.multipliers[column / kHalfCols];
      }
      const float w_scale = F32FromF16(static_cast<uint16_t>(block[0] | (block[1] << 8)));
      total += static_cast<float>(sum) * (w_scale * x.scales[b]);
      block += traits.block_bytes;
    }
    y[row] = total;
  }
}

void MatVecFloatsReference(const FileMatrix& w, const float* x, double* y, double* magnitude) {
  const TensorTypeTraits& traits = *FindTensorType(static_cast<uint32_t>(w.type));
  std::vector<float> values(traits.n_block);
  const uint8_t* block = w.bytes;
  for (size_t row = 0; row < w.n_rows; ++row) {
    y[row] = 0.0;
    magnitude[row] = 0.0;
    for (size_t c = 0; c < w.n_cols; c += traits.n_block) {
      DecodeBlock(w.type, block, values.data());
      for (size_t i = 0; i < traits.n_block; ++i) {
        const double product = static_cast<double>(values[i]) * static_cast<double>(x[c + i]);
        y[row] += product;
        magnitude[row] += std::fabs(product);
      }
      block += traits.block_bytes;
    }
  }
}

}  // namespace headlight
