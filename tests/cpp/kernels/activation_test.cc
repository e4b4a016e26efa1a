// Activations, LayerNorm and the small row operations against double precision.
#include "kernels/activation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/random_matrix.h"
#include "kernels/vector_ops.h"

namespace headlight {
namespace {

constexpr size_t kWidths[] = {1, 3, 4, 5, 8, 17, 64, 172};

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct Case {
  Activation activation;
  double (*of)(double);
};
const Case kCases[] = {
    {Activation::kSilu, [](double x) { return x * Sigmoid(x); }},
    {Activation::kGelu,
     [](double x) {
       return 0.5 * x * (1.0 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
     }},
    {Activation::kRelu, [](double x) { return std::max(x, 0.0); }},
    {Activation::kSquaredRelu, [](double x) { return x > 0.0 ? x * x : 0.0; }},
    {Activation::kClampedSwiglu,
     [](double x) { return std::min(x, 7.0) * Sigmoid(1.702 * std::min(x, 7.0)); }},
};

TEST_CASE("activation: each equals its formula, with and without an up, in place too") {
  for (const Case& c : kCases) {
    for (const size_t n : kWidths) {
      const auto x = test::RandomFloats(n, 4.0f, 5);
      const auto up = test::RandomFloats(n, 6.0f, 6);
      std::vector<float> alone(n), both = x;
      Activate(c.activation, x.data(), n, alone.data());
      ActivateMul(c.activation, both.data(), up.data(), n, both.data());
      for (size_t i = 0; i < n; ++i) {
        const double expected = c.of(static_cast<double>(x[i]));
        double factor = static_cast<double>(up[i]);
        if (c.activation == Activation::kClampedSwiglu)
          factor = std::clamp(factor, -7.0, 7.0) + 1.0;
        const double tolerance = 2e-6 * std::max(std::fabs(expected), 1e-3);
        CHECK(std::fabs(static_cast<double>(alone[i]) - expected) <= tolerance);
        CHECK(std::fabs(static_cast<double>(both[i]) - expected * factor) <=
              tolerance * std::max(1.0, std::fabs(factor)));
      }
    }
  }
}

TEST_CASE("activation: the largest inputs give no NaN, and no infinity but for a square") {
  const float huge = std::numeric_limits<float>::max();
  for (const Case& c : kCases) {
    if (c.activation == Activation::kSquaredRelu) continue;
    for (const float x : {huge, -huge, 1e20f, -1e20f}) {
      float y = 0.0f;
      Activate(c.activation, &x, 1, &y);
      CHECK(std::isfinite(y));
    }
  }
}

TEST_CASE("LayerNorm: equals the double reference, with a mean far from zero too") {
  for (const size_t n : kWidths) {
    for (const float mean : {0.0f, 100.0f}) {
      auto x = test::RandomFloats(n, 1.0f, 7);
      for (float& value : x) value += mean;
      const auto w = test::RandomFloats(n, 1.0f, 8);
      const auto b = test::RandomFloats(n, 1.0f, 9);
      double m = 0.0, v = 0.0;
      for (const float value : x) m += static_cast<double>(value) / static_cast<double>(n);
      for (const float value : x) v += std::pow(value - m, 2.0) / static_cast<double>(n);
      std::vector<float> y = x;
      LayerNorm(x.data(), w.data(), nullptr, n, 1e-5f, y.data());
      LayerNorm(x.data(), w.data(), b.data(), n, 1e-5f, x.data());  // in place
      for (size_t i = 0; i < n; ++i) CHECK(x[i] == y[i] + b[i]);
      const double scale = 1.0 / std::sqrt(v + static_cast<double>(1e-5f));
      const auto again = test::RandomFloats(n, 1.0f, 7);
      for (size_t i = 0; i < n; ++i) {
        const double input = static_cast<double>(again[i] + mean);
        const double expected = (input - m) * scale * static_cast<double>(w[i]);
        const double rounding = 1e-6 + 1e-7 * static_cast<double>(mean) * scale;
        CHECK(std::fabs(static_cast<double>(y[i]) - expected) <=
              rounding * std::max(1.0, std::fabs(static_cast<double>(w[i]))) * 4.0);
      }
    }
  }
}

TEST_CASE("row operations: scale, clamp, sigmoid gate and softcap are their formulas") {
  for (const size_t n : kWidths) {
    const auto x = test::RandomFloats(n, 3.0f, 10);
    const auto gate = test::RandomFloats(n, 3.0f, 11);
    std::vector<float> scaled = x, clamped = x, gated = x, capped = x;
    Scale(scaled.data(), 0.7f, n);
    Clamp(clamped.data(), 1.5f, n);
    MulSigmoid(gated.data(), gate.data(), n);
    Softcap(capped.data(), 2.0f, n);
    for (size_t i = 0; i < n; ++i) {
      CHECK(scaled[i] == x[i] * 0.7f);
      CHECK(clamped[i] == std::clamp(x[i], -1.5f, 1.5f));
      CHECK(gated[i] == doctest::Approx(x[i] * Sigmoid(gate[i])).epsilon(1e-5));
      CHECK(capped[i] == doctest::Approx(2.0 * std::tanh(x[i] / 2.0)).epsilon(1e-5));
    }
  }
}

}  // namespace
}  // namespace headlight
