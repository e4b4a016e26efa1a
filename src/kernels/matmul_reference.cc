#include "kernels/matmul_reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/aligned.h"
#include "kernels/matmul.h"
#include "quant/blocks.h"
#include "quant/file_blocks.h"
#include "quant/packed.h"

namespace headlight {
namespace {

// Row `row` of w, taken apart.
std::vector<BlockParts> SplitRow(const FileMatrix& w, size_t row) {
  const TensorTypeTraits& traits = *FindTensorType(static_cast<uint32_t>(w.type));
  std::vector<BlockParts> blocks(w.n_cols / traits.n_block);
  const uint8_t* block = w.bytes + row * blocks.size() * traits.block_bytes;
  for (BlockParts& parts : blocks) {
    SplitBlock(w.type, block, parts);
    block += traits.block_bytes;
  }
  return blocks;
}

// A block of 32 columns of a row.
struct RowBlock {
  const BlockParts& parts;
  size_t first;  // its first column in `parts`

  size_t Part(size_t c) const { return (first + c) / kPartCols; }
};

float SubtractBlockMins(const CodeFormat& code, const RowBlock& block, const QuantisedReference& x,
                        size_t b, float y) {
  const float min = F32FromF16(block.parts.min);
  const auto subtract = [&](size_t part, int32_t sum) {
    const float part_min = min * static_cast<float>(block.parts.min_factors[part]);
    y -= part_min * (static_cast<float>(sum) * x.scales[b]);
  };
  if (code.scales != ScaleKind::kSuper16) {
    subtract(block.Part(0), x.sums[b]);
  } else {
    subtract(block.Part(0), x.first_sums[b]);
    subtract(block.Part(kPartCols), x.sums[b] - x.first_sums[b]);
  }
  return y;
}

float AddBlock(const CodeFormat& code, const RowBlock& block, const QuantisedReference& x, size_t b,
               float y) {
  const bool in_integer = code.scales == ScaleKind::kSuper16;
  int32_t sum = 0;
  for (size_t c = 0; c < kBlockCols; ++c) {
    const size_t column = b * kBlockCols + c;
    const int32_t value = CodeValue(code, block.parts.codes[block.first + c]);
    const int32_t factor = in_integer ? block.parts.factors[block.Part(c)] : 1;
    sum += value * factor * x.codes[column] * x.multipliers[column / kHalfCols];
  }
  const float factor = in_integer ? 1.0f : static_cast<float>(block.parts.factors[block.Part(0)]);
  const float w_scale = BlockScale(code.scales, block.parts.scale) * factor;
  return y + static_cast<float>(sum) * (w_scale * x.scales[b]);
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
      if (half == b * kBlockCols) out.first_sums.push_back(out.sums.back());
    }
  }
  return out;
}

void MatVecCodesReference(const FileMatrix& w, const QuantisedReference& x, float* y) {
  const CodeFormat& code = *FindCodeFormat(w.type);
  const size_t n_file_block = FindTensorType(static_cast<uint32_t>(w.type))->n_block;
  for (size_t row = 0; row < w.n_rows; ++row) {
    const std::vector<BlockParts> blocks = SplitRow(w, row);
    const auto block = [&](size_t b) {
      const size_t column = b * kBlockCols;
      return RowBlock{blocks[column / n_file_block], column % n_file_block};
    };
    float total = 0.0f;
    for (size_t b = 0; code.has_mins && b < x.scales.size(); ++b) {
      total = SubtractBlockMins(code, block(b), x, b, total);
    }
    for (size_t b = 0; b < x.scales.size(); ++b) total = AddBlock(code, block(b), x, b, total);
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
