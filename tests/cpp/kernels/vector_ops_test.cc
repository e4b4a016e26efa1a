// Norms, sums and gated activations against double precision.
#include "kernels/vector_ops.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "kernels/activation.h"
#include "kernels/random_matrix.h"

namespace headlight {
namespace {

constexpr size_t kWidths[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 64, 172, 576, 1537};

TEST_CASE("RmsNorm: equals the double reference to 1e-6 relative, in place too") {
  for (const size_t n : kWidths) {
    for (const float sigma : {1e-3f, 1.0f, 1e4f}) {
      auto x = test::RandomFloats(n, sigma, 61);
      const auto w = test::RandomFloats(n, 1.0f, 62);
      std::vector<float> y(n);
      constexpr float kEps = 1e-5f;
      RmsNorm(x.data(), w.data(), n, kEps, y.data());
      double sum = 0.0;
      for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
      const double scale =
          1.0 / std::sqrt(sum / static_cast<double>(n) + static_cast<double>(kEps));
      for (size_t i = 0; i < n; ++i) {
        const double expected = static_cast<double>(x[i]) * scale * static_cast<double>(w[i]);
        CHECK(std::fabs(static_cast<double>(y[i]) - expected) <= 1e-6 * std::fabs(expected));
      }
      RmsNorm(x.data(), w.data(), n, kEps, x.data());
      CHECK(x == y);
    }
  }
}

TEST_CASE("RmsNorm: a zero row stays zero") {
  const std::vector<float> x(37, 0.0f), w(37, 2.0f);
  std::vector<float> y(37, 1.0f);
  RmsNorm(x.data(), w.data(), 37, 1e-6f, y.data());
  for (const float v : y) CHECK(v == 0.0f);
}

TEST_CASE("AddTo: adds element by element and nothing beyond") {
  for (const size_t n : kWidths) {
    auto x = test::RandomFloats(n + 4, 1.0f, 63);
    const auto before = x;
    const auto y = test::RandomFloats(n + 4, 1.0f, 64);
    AddTo(x.data(), y.data(), n);
    for (size_t i = 0; i < n; ++i) CHECK(x[i] == before[i] + y[i]);
    for (size_t i = n; i < n + 4; ++i) CHECK(x[i] == before[i]);
  }
}

TEST_CASE(
    "ActivateMul: SiLU equals the double reference, in place too, and is finite for all finite "
    "gates") {
  for (const size_t n : kWidths) {
    auto gate = test::RandomFloats(n, 8.0f, 65);
    const auto up = test::RandomFloats(n, 1.0f, 66);
    if (n > 8) {
      gate[0] = 1000.0f;
      gate[1] = -1000.0f;
      gate[2] = -88.0f;
      gate[3] = 0.0f;
      gate[4] = 1e37f;
      gate[5] = -1e37f;
    }
    std::vector<float> y(n);
    ActivateMul(Activation::kSilu, gate.data(), up.data(), n, y.data());
    for (size_t i = 0; i < n; ++i) {
      const double g = static_cast<double>(gate[i]);
      const double expected = g / (1.0 + std::exp(-g)) * static_cast<double>(up[i]);
      // ExpF32's 2.5 ulp, and half an ulp each for sum, quotient and product; below e^-87 the clamp
      // leaves |g| * 3e-39.
      const double tolerance = 4.5 * 1.2e-7 * std::fabs(expected) + 3e-36 + std::fabs(g) * 1e-38;
      CHECK(std::fabs(static_cast<double>(y[i]) - expected) <= tolerance);
      CHECK(std::isfinite(y[i]));
    }
    ActivateMul(Activation::kSilu, gate.data(), up.data(), n, gate.data());
    CHECK(gate == y);
  }
}

}  // namespace
}  // namespace headlight
