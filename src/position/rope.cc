#include "position/rope.h"

#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "simd/simd.h"

namespace headlight {
namespace {

size_t HalfOf(const RopeSpec& spec) { return spec.style == RopeStyle::kNone ? 0 : spec.n_rot / 2; }

void CheckPositive(const char* name, double value) {
  if (std::isfinite(value) && value > 0.0) return;
  throw Error(ErrorCode::kBadOption,
              "rope " + std::string(name) + " is " + std::to_string(value) +
                  "; it has to be a finite number above 0",
              {{"option", name}, {"value", std::to_string(value)}});
}

void CheckFactors(const char* name, const std::vector<float>& factors, size_t n_rot) {
  if (factors.empty()) return;
  if (factors.size() != n_rot / 2) {
    throw Error(ErrorCode::kBadOption,
                "rope " + std::string(name) + " has " + std::to_string(factors.size()) +
                    " entries; n_rot / 2 = " + std::to_string(n_rot / 2) + " are needed",
                {{"option", name}, {"value", std::to_string(factors.size())}});
  }
  for (const float factor : factors) CheckPositive(name, factor);
}

void CheckRopeSpec(const RopeSpec& spec) {
  if (spec.style == RopeStyle::kNone) return;
  if (spec.n_rot % 2 != 0) {
    throw Error(ErrorCode::kBadOption,
                "rope n_rot is " + std::to_string(spec.n_rot) +
                    "; elements are rotated in pairs, so it has to be even",
                {{"option", "n_rot"}, {"value", std::to_string(spec.n_rot)}});
  }
  CheckPositive("freq_base", spec.freq_base);
  CheckPositive("linear_scale", spec.linear_scale);
  CheckPositive("factor", spec.factor);
  CheckPositive("magnitude", spec.magnitude);
  CheckFactors("freq_factors", spec.freq_factors, spec.n_rot);
  CheckFactors("long_factors", spec.long_factors, spec.n_rot);
  const bool needs_original = spec.scaling == RopeScaling::kDynamicNtk ||
                              spec.scaling == RopeScaling::kYarn || !spec.long_factors.empty();
  if (needs_original) CheckPositive("n_ctx_original", static_cast<double>(spec.n_ctx_original));
}

// One pair by the angle whose cosine is c and sine is s. The vectors below do the same operations
// in the same order, and none of them is fused, so a pair's result does not depend on which of the
// two paths it took.
inline void RotatePair(float c, float s, float& a, float& b) {
  const float rotated = a * c - b * s;
  b = a * s + b * c;
  a = rotated;
}

template <class V>
inline void RotateVectors(V c, V s, V& a, V& b) {
  const V rotated = hn::Sub(hn::Mul(a, c), hn::Mul(b, s));
  b = hn::Add(hn::Mul(a, s), hn::Mul(b, c));
  a = rotated;
}

// c, s [n_half]; x [2 * n_half].
void RotateInterleaved(const float* c, const float* s, size_t n_half, float* x) {
  constexpr F32x4 kF32;
  size_t i = 0;
  for (; i + 4 <= n_half; i += 4) {
    hn::VFromD<F32x4> a, b;
    hn::LoadInterleaved2(kF32, x + 2 * i, a, b);
    RotateVectors(hn::LoadU(kF32, c + i), hn::LoadU(kF32, s + i), a, b);
    hn::StoreInterleaved2(a, b, kF32, x + 2 * i);
  }
  for (; i < n_half; ++i) RotatePair(c[i], s[i], x[2 * i], x[2 * i + 1]);
}

// c, s [n_half]; x [2 * n_half].
void RotateHalfSplit(const float* c, const float* s, size_t n_half, float* x) {
  constexpr F32x4 kF32;
  size_t i = 0;
  for (; i + 4 <= n_half; i += 4) {
    auto a = hn::LoadU(kF32, x + i);
    auto b = hn::LoadU(kF32, x + n_half + i);
    RotateVectors(hn::LoadU(kF32, c + i), hn::LoadU(kF32, s + i), a, b);
    hn::StoreU(a, kF32, x + i);
    hn::StoreU(b, kF32, x + n_half + i);
  }
  for (; i < n_half; ++i) RotatePair(c[i], s[i], x[i], x[n_half + i]);
}

}  // namespace

RopeTable::RopeTable(const RopeSpec& spec, size_t n_ctx)
    : style_(spec.style), n_half_(HalfOf(spec)), magnitude_(spec.magnitude) {
  CheckRopeSpec(spec);
  frequencies_ = RopeFrequencies(spec, n_ctx);
  if (n_half_ != 0 && n_ctx > std::numeric_limits<size_t>::max() / n_half_) {
    throw Error(ErrorCode::kOutOfMemory, "rope tables for n_ctx = " + std::to_string(n_ctx) +
                                             " do not fit in memory; use a smaller n_ctx");
  }
  cos_ = AlignedArray<float>(n_ctx * n_half_);
  sin_ = AlignedArray<float>(n_ctx * n_half_);
}

size_t RopeTable::Bytes(const RopeSpec& spec, size_t n_ctx) {
  return 2 * n_ctx * HalfOf(spec) * sizeof(float);
}

void RopeTable::Ensure(size_t n_pos) noexcept {
  // In double throughout: a float angle near 131071 is off by up to 1/256 of a radian.
  for (; n_filled_ < n_pos; ++n_filled_) {
    const double pos = static_cast<double>(n_filled_);
    float* c = cos_.data() + n_filled_ * n_half_;
    float* s = sin_.data() + n_filled_ * n_half_;
    for (size_t i = 0; i < n_half_; ++i) {
      c[i] = static_cast<float>(magnitude_ * std::cos(pos * frequencies_[i]));
      s[i] = static_cast<float>(magnitude_ * std::sin(pos * frequencies_[i]));
    }
  }
}

void RopeTable::Rotate(float* x, size_t pos) const noexcept { RotateHeads(x, 1, 0, pos); }

void RopeTable::RotateHeads(float* x, size_t n_heads, size_t d_qk, size_t pos) const noexcept {
  const float* c = cos_.data() + pos * n_half_;
  const float* s = sin_.data() + pos * n_half_;
  for (size_t head = 0; head < n_heads; ++head) {
    float* head_x = x + head * d_qk;
    switch (style_) {
      case RopeStyle::kNone:
        return;
      case RopeStyle::kInterleaved:
        RotateInterleaved(c, s, n_half_, head_x);
        break;
      case RopeStyle::kHalfSplit:
        RotateHalfSplit(c, s, n_half_, head_x);
        break;
    }
  }
}

}  // namespace headlight
