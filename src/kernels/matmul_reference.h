// The products of matmul.h by their definition, scalar, straight from a tensor's file bytes: what
// the packed layout and the kernels are tested against. Slow by intent.
#ifndef HEADLIGHT_KERNELS_MATMUL_REFERENCE_H_
#define HEADLIGHT_KERNELS_MATMUL_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/dtype.h"

namespace headlight {

// A tensor as its file has it: [n_rows, n_cols] of `type`, row by row.
struct FileMatrix {
  TensorType type = TensorType::kF32;
  size_t n_rows = 0;
  size_t n_cols = 0;
  const uint8_t* bytes = nullptr;
};

// The contract of Activations, word for word, of one token.
struct QuantisedReference {
  std::vector<int8_t> codes;         // [n_blocks * 32], n_blocks = CeilDiv(n_cols, 32)
  std::vector<int16_t> multipliers;  // [n_blocks * 2]
  std::vector<float> scales;         // [n_blocks]
  std::vector<int32_t> sums;         // [n_blocks]
  std::vector<int32_t> first_sums;   // [n_blocks]
};
QuantisedReference QuantiseReference(const float* x, size_t n_cols);

// y[n_rows], a type with codes. Weights with minima first: for each block of 32 columns in order,
// y -= min * (float(sum of m c) * x scale), half by half where the type has minima of 16 columns.
// Then for each block y += float(exact integer sum of value * m c) * (w scale * x scale); factors
// of 16 columns are part of the integer, those of 32 of the w scale. All in float. The kernels give
// these very bits.
void MatVecCodesReference(const FileMatrix& w, const QuantisedReference& x, float* y);

// y[n_rows] = sum of w * x in double, and magnitude[n_rows] = sum of |w * x|, the scale of rounding
// errors.
void MatVecFloatsReference(const FileMatrix& w, const float* x, double* y, double* magnitude);

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_MATMUL_REFERENCE_H_
