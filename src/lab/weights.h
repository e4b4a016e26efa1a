// Weights as plain numbers on their way out of and back into the packed form: what the lab's edits
// work on.
#ifndef HEADLIGHT_LAB_WEIGHTS_H_
#define HEADLIGHT_LAB_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "model/model.h"
#include "quant/packed.h"

namespace headlight {

// Row-major [n_rows, n_cols].
struct Weights {
  size_t n_rows = 0;
  size_t n_cols = 0;
  std::vector<float> values;

  Weights() = default;
  Weights(size_t rows, size_t cols) : n_rows(rows), n_cols(cols), values(rows * cols) {}
  float* row(size_t i) { return values.data() + i * n_cols; }
  const float* row(size_t i) const { return values.data() + i * n_cols; }
};

// Exactly the values that the kernels multiply with.
Weights DecodeWeights(const PackedMatrix& packed);

// The file type that gives the packed form back; Q8_0 where it is one that no encoder writes, and
// F16 where rows of n_cols do not divide into blocks.
TensorType EncodedType(const PackedShape& shape, size_t n_cols);

// The nearest rows of `type`, as a file holds them.
std::vector<uint8_t> EncodeWeights(const Weights& weights, TensorType type);

// Packs into storage of `model`. Throws Error(kOutOfMemory).
PackedMatrix PackWeights(const Weights& weights, TensorType type, DotForm form, Model& model);

}  // namespace headlight

#endif  // HEADLIGHT_LAB_WEIGHTS_H_
