// Random weight matrices twice: as the bytes that a file would hold, and as the numbers that those
// bytes mean by the format's documentation, in double. The second is worked out here, not with
// quant/, so that packing is under test as well.
#ifndef HEADLIGHT_TESTS_ORACLE_TEST_TENSOR_H_
#define HEADLIGHT_TESTS_ORACLE_TEST_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "sample/random.h"

namespace headlight {

// Row-major [n_rows, n_cols].
struct Matrix {
  size_t n_rows = 0;
  size_t n_cols = 0;
  std::vector<double> values;
  const double* row(size_t i) const { return values.data() + i * n_cols; }
};

struct TestTensor {
  TensorType type = TensorType::kF32;
  std::vector<uint8_t> bytes;
  Matrix matrix;
};

// A standard normal number (Box and Muller).
double Normal(Random& random);

// Normal weights of about standard deviation `sigma`. type: F32, F16, BF16, Q8_0 or Q4_0; n_cols a
// multiple of 32 for the last two.
TestTensor MakeTensor(TensorType type, size_t n_rows, size_t n_cols, double sigma, Random& random);

}  // namespace headlight

#endif  // HEADLIGHT_TESTS_ORACLE_TEST_TENSOR_H_
