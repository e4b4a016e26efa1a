#include "sample/logit_scan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sample/random.h"

namespace headlight {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("logit_scan: the maximum and a fault are found in every place of every length") {
  for (size_t n = 1; n < 40; ++n) {
    for (size_t place = 0; place < n; ++place) {
      CAPTURE(n);
      CAPTURE(place);
      std::vector<float> logits(n, -2.0f);
      logits[place] = 5.0f;
      CHECK(ScanLogits(logits.data(), n).max == 5.0f);
      CHECK(ScanLogits(logits.data(), n).usable);
      for (const float bad : {kNaN, kInfinity}) {
        logits[place] = bad;
        CHECK_FALSE(ScanLogits(logits.data(), n).usable);
      }
      logits[place] = -kInfinity;
      CHECK(ScanLogits(logits.data(), n).usable == (n > 1));
    }
  }
}

TEST_CASE(
    "logit_scan: FindAbove finds the next greater logit in every place, and nothing where there is "
    "none") {
  for (size_t n = 0; n < 40; ++n) {
    std::vector<float> logits(n, 1.0f);
    CHECK(FindAbove(logits.data(), 0, n, 1.0f) == n);
    CHECK(FindAbove(logits.data(), 0, n, 0.5f) == 0);
    for (size_t place = 0; place < n; ++place) {
      logits[place] = 2.0f;
      for (size_t begin = 0; begin <= n; ++begin) {
        CHECK(FindAbove(logits.data(), begin, n, 1.0f) == (begin <= place ? place : n));
      }
      logits[place] = 1.0f;
    }
  }
}

TEST_CASE("logit_scan: LogSumExp equals the sum in double") {
  Random random(1);
  for (const size_t n : {1u, 3u, 4u, 5u, 97u, 4099u}) {
    CAPTURE(n);
    std::vector<float> logits(n);
    float max = -kInfinity;
    double sum = 0.0;
    for (float& x : logits) {
      x = static_cast<float>(random.NextUniform() * 60.0 - 30.0);
      max = std::max(max, x);
      sum += std::exp(static_cast<double>(x));
    }
    // Terms are off by at most 2.5 ulp of f32, so is their sum, and so absolutely is its log.
    CHECK(std::abs(LogSumExp(logits.data(), n, max) - std::log(sum)) <= 2.5 * 0x1p-23);
  }
}

}  // namespace
}  // namespace headlight
