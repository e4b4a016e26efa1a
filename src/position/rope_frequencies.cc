// Frequencies of rotary pairs and the ways to stretch them.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "position/rope.h"
#include "position/yarn.h"

namespace headlight {
namespace {

double ToDouble(size_t n) { return static_cast<double>(n); }

// The base that multiplies the longest wavelength by `alpha` and leaves the shortest as it is.
double StretchedBase(const RopeSpec& spec, double alpha) {
  const double n_rot = ToDouble(spec.n_rot);
  if (spec.n_rot <= 2) return spec.freq_base;  // one pair, of frequency 1
  return spec.freq_base * std::pow(alpha, n_rot / (n_rot - 2.0));
}

double BaseOf(const RopeSpec& spec, size_t n_ctx) {
  if (spec.scaling == RopeScaling::kNtk) return StretchedBase(spec, spec.factor);
  if (spec.scaling == RopeScaling::kDynamicNtk && n_ctx > spec.n_ctx_original) {
    const double share = ToDouble(n_ctx) / ToDouble(spec.n_ctx_original);
    return StretchedBase(spec, spec.factor * share - (spec.factor - 1.0));
  }
  return spec.freq_base;
}

// 0: the pair keeps its frequency, 1: it is interpolated; between, in equal steps. The bounds are
// rounded outwards and cut to the pairs there are, as the paper's authors do.
class YarnRamp {
 public:
  explicit YarnRamp(const RopeSpec& spec)
      : low_(std::max(0.0, std::floor(PairThatTurns(spec, spec.yarn.beta_fast)))),
        high_(std::min(ToDouble(spec.n_rot) - 1.0,
                       std::ceil(PairThatTurns(spec, spec.yarn.beta_slow)))) {}
  double at(size_t pair) const {
    constexpr double kSmallestWidth = 1e-3;
    return std::clamp((ToDouble(pair) - low_) / std::max(kSmallestWidth, high_ - low_), 0.0, 1.0);
  }

 private:
  // The pair, as a fraction, that turns n times in the original context.
  static double PairThatTurns(const RopeSpec& spec, double n) {
    const double positions = ToDouble(spec.n_ctx_original);
    return ToDouble(spec.n_rot) * std::log(positions / (n * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(spec.freq_base));
  }
  double low_, high_;
};

}  // namespace

double YarnMagnitude(double factor, double m) {
  return factor <= 1.0 ? 1.0 : 0.1 * m * std::log(factor) + 1.0;
}

std::vector<double> RopeFrequencies(const RopeSpec& spec, size_t n_ctx) {
  const size_t n_half = spec.style == RopeStyle::kNone ? 0 : spec.n_rot / 2;
  const double base = BaseOf(spec, n_ctx);
  const bool is_long = !spec.long_factors.empty() && n_ctx > spec.n_ctx_original;
  const std::vector<float>& factors = is_long ? spec.long_factors : spec.freq_factors;
  std::vector<double> frequencies(n_half);
  for (size_t i = 0; i < n_half; ++i) {
    const double exponent = -2.0 * ToDouble(i) / ToDouble(spec.n_rot);
    const double factor = factors.empty() ? 1.0 : static_cast<double>(factors[i]);
    const double trained = std::pow(base, exponent) / factor;
    frequencies[i] = trained / spec.linear_scale;
    if (spec.scaling != RopeScaling::kYarn) continue;
    const double kept = (1.0 - YarnRamp(spec).at(i)) * spec.yarn.extrapolation;
    frequencies[i] = frequencies[i] * (1.0 - kept) + trained * kept;
  }
  return frequencies;
}

}  // namespace headlight
