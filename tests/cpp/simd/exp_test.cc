// ExpF32 against the double-precision exponential, over its whole range.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "simd/exp-inl.h"

namespace headlight {
namespace {

float Exp(float x) {
  const F32x4 d;
  return hn::GetLane(ExpF32(d, hn::Set(d, x)));
}

TEST_CASE("ExpF32: within 2.5 ulp over its range") {
  double worst = 0.0;
  // A step that shares no pattern with the reduction by ln 2; about 700,000 points.
  for (double x = kExpLowest; x < static_cast<double>(kExpHighest); x += 0.000251) {
    const float xf = static_cast<float>(x);
    if (xf < kExpLowest || xf > kExpHighest) continue;
    const double exact = std::exp(static_cast<double>(xf));
    const float nearest = static_cast<float>(exact);
    const double ulp =
        static_cast<double>(std::nextafter(nearest, std::numeric_limits<float>::infinity())) -
        static_cast<double>(nearest);
    worst = std::max(worst, std::fabs(static_cast<double>(Exp(xf)) - exact) / ulp);
  }
  CHECK(worst < 2.5);
}

TEST_CASE("ExpF32: ends of the range, infinities and NaN") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  CHECK(Exp(0.0f) == 1.0f);
  CHECK(Exp(-0.0f) == 1.0f);
  for (const float x :
       {-kInf, -std::numeric_limits<float>::max(), -1e30f, -1000.0f, -88.0f, -87.4f}) {
    CHECK(Exp(x) == 0.0f);
    CHECK_FALSE(std::signbit(Exp(x)));
  }
  CHECK(Exp(kExpLowest) >= std::numeric_limits<float>::min());
  for (const float x : {kExpHighest, 89.0f, 1e30f, kInf}) CHECK(Exp(x) == Exp(kExpHighest));
  CHECK(std::isfinite(Exp(kInf)));
  CHECK(Exp(kInf) > 3.4e38f);
  CHECK(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("ExpF32: lanes do not see each other") {
  const F32x4 d;
  alignas(16) const float in[4] = {-1000.0f, 0.0f, 1000.0f, 1.0f};
  alignas(16) float out[4];
  hn::Store(ExpF32(d, hn::Load(d, in)), d, out);
  for (int i = 0; i < 4; ++i) CHECK(out[i] == Exp(in[i]));
}

}  // namespace
}  // namespace headlight
