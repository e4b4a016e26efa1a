#include "oracle/oracle_ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headlight::oracle {

Vector Rounded(OracleRounding rounding, Vector x) {
  if (rounding == OracleRounding::kNone) return x;
  constexpr size_t kBlock = 32;
  constexpr size_t kHalf = 16;
  const Vector exact = x;
  const auto largest = [&](size_t begin, size_t n) {
    double max = 0.0;
    for (size_t i = begin; i < std::min(begin + n, x.size()); ++i)
      max = std::max(max, std::abs(exact[i]));
    return max;
  };
  for (size_t begin = 0; begin < x.size(); begin += kHalf) {
    const double max = largest(begin / kBlock * kBlock, kBlock);
    if (max == 0.0) continue;
    const double sixteenths = std::max(1.0, std::ceil(largest(begin, kHalf) / max * 16.0));
    const double step = max / 127.0 * sixteenths / 16.0;
    for (size_t i = begin; i < std::min(begin + kHalf, x.size()); ++i) {
      x[i] = std::nearbyint(exact[i] / step) * step;
    }
  }
  return x;
}

Vector MatVec(const Matrix& w, const Vector& x) {
  Vector y(w.n_rows, 0.0);
  for (size_t i = 0; i < w.n_rows; ++i) {
    for (size_t j = 0; j < w.n_cols; ++j) y[i] += w.row(i)[j] * x[j];
  }
  return y;
}

void AddTo(const Vector& y, Vector& x) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

Vector Norm(NormKind kind, double eps, const Vector& x, const Vector& weight, const Vector& bias) {
  const double n = static_cast<double>(x.size());
  double mean = 0.0, square = 0.0;
  if (kind == NormKind::kLayer) {
    for (const double value : x) mean += value / n;
  }
  for (const double value : x) square += (value - mean) * (value - mean) / n;
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = (x[i] - mean) / std::sqrt(square + eps) * weight[i];
    if (!bias.empty()) y[i] += bias[i];
  }
  return y;
}

double ActivationOf(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kGelu:
      return 0.5 * x *
             (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSquaredRelu:
      return x > 0.0 ? x * x : 0.0;
    case Activation::kClampedSwiglu: {
      const double gate = std::min(x, 7.0);
      return gate / (1.0 + std::exp(-1.702 * gate));
    }
  }
  return 0.0;
}

namespace {

// Radians a position by which pair i turns.
double FrequencyOf(const RopeSpec& rope, size_t i, size_t n_ctx) {
  const double d = static_cast<double>(rope.n_rot);
  const double original = static_cast<double>(rope.n_ctx_original);
  double base = rope.freq_base;
  if (rope.scaling == RopeScaling::kNtk) base *= std::pow(rope.factor, d / (d - 2.0));
  if (rope.scaling == RopeScaling::kDynamicNtk && n_ctx > rope.n_ctx_original) {
    const double grown = rope.factor * static_cast<double>(n_ctx) / original - rope.factor + 1.0;
    base *= std::pow(grown, d / (d - 2.0));
  }
  double frequency = 1.0 / std::pow(base, 2.0 * static_cast<double>(i) / d);
  const bool is_long = !rope.long_factors.empty() && n_ctx > rope.n_ctx_original;
  const std::vector<float>& factors = is_long ? rope.long_factors : rope.freq_factors;
  if (!factors.empty()) frequency /= static_cast<double>(factors[i]);
  if (rope.scaling != RopeScaling::kYarn) return frequency / rope.linear_scale;
  // Equation 23 of arXiv 2309.00071, in the form of its code: a ramp over the pairs.
  const auto dim = [&](double turns) {
    return d * std::log(original / (turns * 2.0 * std::numbers::pi)) / (2.0 * std::log(base));
  };
  const double low = std::max(std::floor(dim(rope.yarn.beta_fast)), 0.0);
  const double high = std::min(std::ceil(dim(rope.yarn.beta_slow)), d - 1.0);
  const double ramp =
      std::clamp((static_cast<double>(i) - low) / std::max(high - low, 0.001), 0.0, 1.0);
  const double extrapolated = (1.0 - ramp) * rope.yarn.extrapolation;
  return frequency / rope.linear_scale * (1.0 - extrapolated) + frequency * extrapolated;
}

}  // namespace

void Rotate(const RopeSpec& rope, const Rotation& rotation, Vector& x) {
  if (rope.style == RopeStyle::kNone) return;
  const size_t n_half = rope.n_rot / 2;
  const bool interleaved = rope.style == RopeStyle::kInterleaved;
  for (size_t head = 0; head < rotation.n_heads; ++head) {
    const size_t begin = head * rotation.d + rotation.first;
    for (size_t i = 0; i < n_half; ++i) {
      const double angle = static_cast<double>(rotation.pos) * FrequencyOf(rope, i, rotation.n_ctx);
      double& a = x[begin + (interleaved ? 2 * i : i)];
      double& b = x[begin + (interleaved ? 2 * i + 1 : i + n_half)];
      const double old_a = a;
      a = rope.magnitude * (old_a * std::cos(angle) - b * std::sin(angle));
      b = rope.magnitude * (old_a * std::sin(angle) + b * std::cos(angle));
    }
  }
}

double AlibiSlope(size_t head, size_t n_heads, double max_bias) {
  size_t n = 1;
  while (2 * n <= n_heads) n *= 2;
  const double count = static_cast<double>(n);
  if (head < n) return std::pow(2.0, -max_bias / count * static_cast<double>(head + 1));
  return std::pow(2.0, -max_bias / (2.0 * count) * static_cast<double>(2 * (head - n) + 1));
}

}  // namespace headlight::oracle
