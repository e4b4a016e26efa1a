#include "kernels/matmul_reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

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

void QuantiseReference(const float* x, size_t n_cols, int8_t* codes, float* scales, int32_t* sums) {
  for (size_t b = 0; b * kBlockCols < n_cols; ++b) {
    const float* block = x + b * kBlockCols;
    const size_t n = std::min(kBlockCols, n_cols - b * kBlockCols);
    float max = 0.0f;
    for (size_t i = 0; i < n; ++i) max = std::max(max, std::fabs(block[i]));
    const bool is_zero = max < 1e-30f;
    const float inverse = is_zero ? 0.0f : 127.0f / max;
    scales[b] = is_zero ? 0.0f : max / 127.0f;
    sums[b] = 0;
    for (size_t i = 0; i < kBlockCols; ++i) {
      // nearbyint: to nearest even, the mode that every program starts in.
      const float code = i < n ? std::nearbyint(block[i] * inverse) : 0.0f;
      codes[b * kBlockCols + i] = static_cast<int8_t>(code);
      sums[b] += static_cast<int32_t>(code);
    }
  }
}

void MatVecCodesReference(const FileMatrix& w, const int8_t* codes, const float* scales, float* y) {
  const TensorTypeTraits& traits = *FindTensorType(static_cast<uint32_t>(w.type));
  const size_t n_blocks = w.n_cols / kBlockCols;
  const uint8_t* block = w.bytes;
  for (size_t row = 0; row < w.n_rows; ++row) {
    float total = 0.0f;
    for (size_t b = 0; b < n_blocks; ++b) {
      int32_t sum = 0;
      for (size_t c = 0; c < kBlockCols; ++c) {
        sum += BlockCode(w.type, block, c) * codes[b * kBlockCols + c];
      }
      const float w_scale = F32FromF16(static_cast<uint16_t>(block[0] | (block[1] << 8)));
      total += static_cast<float>(sum) * (w_scale * scales[b]);
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
