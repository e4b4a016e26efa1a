#include "sample/logit_scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "simd/exp-inl.h"

namespace headlight {
namespace {

constexpr F32x4 kD;
constexpr size_t kLanes = 4;

}  // namespace

LogitScan ScanLogits(const float* logits, size_t n) noexcept {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto infinity = hn::Set(kD, kInfinity);
  auto max = hn::Set(kD, -kInfinity);
  // False for NaN (unordered) and for +inf.
  auto all_below = hn::MaskFromVec(hn::BitCast(kD, hn::Set(I32x4(), -1)));
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto x = hn::LoadU(kD, logits + i);
    all_below = hn::And(all_below, hn::Lt(x, infinity));
    max = hn::Max(max, x);
  }
  LogitScan scan;
  scan.max = hn::ReduceMax(kD, max);
  scan.usable = hn::AllTrue(kD, all_below);
  for (; i < n; ++i) {
    scan.usable = scan.usable && logits[i] < kInfinity;
    scan.max = std::max(scan.max, logits[i]);
  }
  scan.usable = scan.usable && scan.max > -kInfinity;
  return scan;
}

size_t FindAbove(const float* logits, size_t begin, size_t n, float threshold) noexcept {
  const auto limit = hn::Set(kD, threshold);
  size_t i = begin;
  // Four vectors a test: hits are rare once a heap of candidates is full.
  constexpr size_t kStride = 4 * kLanes;
  for (; i + kStride <= n; i += kStride) {
    const auto low = hn::Max(hn::LoadU(kD, logits + i), hn::LoadU(kD, logits + i + kLanes));
    const auto high =
        hn::Max(hn::LoadU(kD, logits + i + 2 * kLanes), hn::LoadU(kD, logits + i + 3 * kLanes));
    if (!hn::AllFalse(kD, hn::Gt(hn::Max(low, high), limit))) break;
  }
  while (i < n && !(logits[i] > threshold)) ++i;
  return i;
}

double LogSumExp(const float* logits, size_t n, float max) noexcept {
  const hn::FixedTag<double, 2> f64x2;
  const auto shift = hn::Set(kD, max);
  auto sum_low = hn::Zero(f64x2);
  auto sum_high = hn::Zero(f64x2);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto term = ExpF32(kD, hn::Sub(hn::LoadU(kD, logits + i), shift));
    sum_low = hn::Add(sum_low, hn::PromoteLowerTo(f64x2, term));
    sum_high = hn::Add(sum_high, hn::PromoteUpperTo(f64x2, term));
  }
  double sum = hn::ReduceSum(f64x2, hn::Add(sum_low, sum_high));
  for (; i < n; ++i) sum += std::exp(static_cast<double>(logits[i]) - static_cast<double>(max));
  return static_cast<double>(max) + std::log(sum);
}

}  // namespace headlight
