#include "oracle/test_tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace headlight {
namespace {

void AppendLittleEndian(uint32_t value, size_t n_bytes, std::vector<uint8_t>& bytes) {
  for (size_t i = 0; i < n_bytes; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

// binary16 by its definition: sign, 5 exponent bits with bias 15, 10 mantissa bits. Finite only.
double ValueOfHalf(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

// Any binary16 of about x will do: the tensor's value is what it means, not x.
uint16_t HalfNear(double x) {
  const int exponent = std::clamp(std::ilogb(std::abs(x) + 1e-30), -14, 15);
  const int mantissa = static_cast<int>(std::ldexp(std::abs(x), 10 - exponent));
  const int sign = x < 0.0 ? 0x8000 : 0;
  if (mantissa < 1024) return static_cast<uint16_t>(sign | mantissa);  // subnormal
  return static_cast<uint16_t>(sign | ((exponent + 15) << 10) | std::min(mantissa - 1024, 1023));
}

void AppendPlain(TensorType type, double x, TestTensor& tensor) {
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  switch (type) {
    case TensorType::kF16: {
      const uint16_t half = HalfNear(x);
      AppendLittleEndian(half, 2, tensor.bytes);
      tensor.matrix.values.push_back(ValueOfHalf(half));
      return;
    }
    case TensorType::kBF16:
      AppendLittleEndian(bits >> 16, 2, tensor.bytes);
      tensor.matrix.values.push_back(std::bit_cast<float>(bits & 0xFFFF0000u));
      return;
    default:
      AppendLittleEndian(bits, 4, tensor.bytes);
      tensor.matrix.values.push_back(std::bit_cast<float>(bits));
  }
}

// 32 codes under one binary16 scale. Q8_0: 32 bytes. Q4_0: byte i holds element i + 8 in its low
// nibble, element i + 16 in the high one.
void AppendBlock(TensorType type, double sigma, Random& random, TestTensor& tensor) {
  const bool is_q8 = type == TensorType::kQ8_0;
  const int limit = is_q8 ? 127 : 7;  // three standard deviations, so real blocks look alike
  const uint16_t scale = HalfNear(3.0 * sigma / limit * (0.8 + 0.4 * random.NextUniform()));
  int codes[32];
  for (int& code : codes) {
    code =
        std::clamp(static_cast<int>(std::lround(Normal(random) * limit / 3.0)), -limit - 1, limit);
    tensor.matrix.values.push_back(code * ValueOfHalf(scale));
  }
  AppendLittleEndian(scale, 2, tensor.bytes);
  if (is_q8) {
    for (const int code : codes) tensor.bytes.push_back(static_cast<uint8_t>(code));
    return;
  }
  for (int i = 0; i < 16; ++i) {
    tensor.bytes.push_back(static_cast<uint8_t>((codes[i] + 8) | ((codes[i + 16] + 8) << 4)));
  }
}

}  // namespace

double Normal(Random& random) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - random.NextUniform()));
  return radius * std::cos(2.0 * std::numbers::pi * random.NextUniform());
}

TestTensor MakeTensor(TensorType type, size_t n_rows, size_t n_cols, double sigma, Random& random) {
  TestTensor tensor;
  tensor.type = type;
  tensor.matrix.n_rows = n_rows;
  tensor.matrix.n_cols = n_cols;
  const bool has_blocks = type == TensorType::kQ8_0 || type == TensorType::kQ4_0;
  for (size_t i = 0; i < n_rows * n_cols; i += has_blocks ? 32 : 1) {
    if (has_blocks) {
      AppendBlock(type, sigma, random, tensor);
    } else {
      AppendPlain(type, Normal(random) * sigma, tensor);
    }
  }
  return tensor;
}

}  // namespace headlight
