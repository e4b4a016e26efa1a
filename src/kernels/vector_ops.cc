#include "kernels/vector_ops.h"

#include <hwy/contrib/math/math-inl.h>

#include <cmath>

#include "simd/exp-inl.h"
#include "simd/part.h"

namespace headlight {
namespace {

// Sum of squares in 4 vectors of partial sums: relative error about n / 16 * eps.
float SumOfSquares(const float* x, size_t n) {
  const F32x4 d;
  constexpr size_t kSums = 4;
  VecF32 sums[kSums] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  size_t i = 0;
  for (; i + kSums * kFloatLanes <= n; i += kSums * kFloatLanes) {
    for (size_t s = 0; s < kSums; ++s) {
      const VecF32 v = hn::LoadU(d, x + i + s * kFloatLanes);
      sums[s] = hn::Add(sums[s], hn::Mul(v, v));
    }
  }
  for (; i < n; i += kFloatLanes) {
    const VecF32 v = LoadPart(x + i, n - i);
    sums[0] = hn::Add(sums[0], hn::Mul(v, v));
  }
  return hn::ReduceSum(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])));
}

}  // namespace

void RmsNorm(const float* x, const float* w, size_t n, float eps, float* y) noexcept {
  const float mean = SumOfSquares(x, n) / static_cast<float>(n);
  const VecF32 scale = hn::Set(F32x4(), 1.0f / std::sqrt(mean + eps));
  ForVectors(n, [&](size_t i, size_t n_left) {
    const VecF32 normed = hn::Mul(LoadPart(x + i, n_left), scale);
    StorePart(hn::Mul(normed, LoadPart(w + i, n_left)), y + i, n_left);
  });
}

void AddTo(float* x, const float* y, size_t n) noexcept {
  ForVectors(n, [&](size_t i, size_t n_left) {
    StorePart(hn::Add(LoadPart(x + i, n_left), LoadPart(y + i, n_left)), x + i, n_left);
  });
}

void LayerNorm(const float* x, const float* w, const float* b, size_t n, float eps,
               float* y) noexcept {
  // In double: a mean that is large beside the deviations leaves no digits in float.
  double sum = 0.0;
  for (size_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  const double mean = sum / static_cast<double>(n);
  double squares = 0.0;
  for (size_t i = 0; i < n; ++i) {
    const double deviation = static_cast<double>(x[i]) - mean;
    squares += deviation * deviation;
  }
  const double variance = squares / static_cast<double>(n);
  const F32x4 d;
  const VecF32 center = hn::Set(d, static_cast<float>(mean));
  const VecF32 scale =
      hn::Set(d, static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(eps))));
  ForVectors(n, [&](size_t i, size_t n_left) {
    const VecF32 normed = hn::Mul(hn::Sub(LoadPart(x + i, n_left), center), scale);
    VecF32 out = hn::Mul(normed, LoadPart(w + i, n_left));
    if (b != nullptr) out = hn::Add(out, LoadPart(b + i, n_left));
    StorePart(out, y + i, n_left);
  });
}

void Scale(float* x, float factor, size_t n) noexcept {
  const VecF32 f = hn::Set(F32x4(), factor);
  ForVectors(n, [&](size_t i, size_t n_left) {
    StorePart(hn::Mul(LoadPart(x + i, n_left), f), x + i, n_left);
  });
}

void Clamp(float* x, float limit, size_t n) noexcept {
  const VecF32 high = hn::Set(F32x4(), limit);
  ForVectors(n, [&](size_t i, size_t n_left) {
    StorePart(hn::Clamp(LoadPart(x + i, n_left), hn::Neg(high), high), x + i, n_left);
  });
}

void MulSigmoid(float* x, const float* gate, size_t n) noexcept {
  const F32x4 d;
  ForVectors(n, [&](size_t i, size_t n_left) {
    const VecF32 e = ExpF32(d, hn::Neg(LoadPart(gate + i, n_left)));
    const VecF32 gated = hn::Div(LoadPart(x + i, n_left), hn::Add(hn::Set(d, 1.0f), e));
    StorePart(gated, x + i, n_left);
  });
}

void Softcap(float* x, float cap, size_t n) noexcept {
  const F32x4 d;
  const VecF32 inverse = hn::Set(d, 1.0f / cap);
  ForVectors(n, [&](size_t i, size_t n_left) {
    const VecF32 capped = hn::CallTanh(d, hn::Mul(LoadPart(x + i, n_left), inverse));
    StorePart(hn::Mul(capped, hn::Set(d, cap)), x + i, n_left);
  });
}

}  // namespace headlight
