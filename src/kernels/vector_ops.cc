#include "kernels/vector_ops.h"

#include <cmath>

#include "simd/exp-inl.h"

namespace headlight {
namespace {

constexpr size_t kLanes = 4;

// f(i, n) on vectors at i = 0, 4, ..., n == 4, then once on the n < 4 elements that are left.
template <class Body>
HWY_INLINE void ForVectors(size_t n, const Body& body) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, n - i);
}

HWY_INLINE VecF32 LoadPart(const float* p, size_t n) {
  return n == kLanes ? hn::LoadU(F32x4(), p) : hn::LoadN(F32x4(), p, n);
}

HWY_INLINE void StorePart(VecF32 v, float* p, size_t n) {
  if (n == kLanes) {
    hn::StoreU(v, F32x4(), p);
  } else {
    hn::StoreN(v, F32x4(), p, n);
  }
}

// Sum of squares in 4 vectors of partial sums: relative error about n / 16 * eps.
float SumOfSquares(const float* x, size_t n) {
  const F32x4 d;
  constexpr size_t kSums = 4;
  VecF32 sums[kSums] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  size_t i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
    for (size_t s = 0; s < kSums; ++s) {
      const VecF32 v = hn::LoadU(d, x + i + s * kLanes);
      sums[s] = hn::Add(sums[s], hn::Mul(v, v));
    }
  }
  for (; i < n; i += kLanes) {
    const VecF32 v = LoadPart(x + i, n - i < kLanes ? n - i : kLanes);
    sums[0] = hn::Add(sums[0], hn::Mul(v, v));
  }
  return hn::ReduceSum(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])));
}

}  // namespace

void RmsNorm(const float* x, const float* w, size_t n, float eps, float* y) noexcept {
  const float mean = SumOfSquares(x, n) / static_cast<float>(n);
  const VecF32 scale = hn::Set(F32x4(), 1.0f / std::sqrt(mean + eps));
  ForVectors(n, [&](size_t i, size_t n_lanes) {
    const VecF32 normed = hn::Mul(LoadPart(x + i, n_lanes), scale);
    StorePart(hn::Mul(normed, LoadPart(w + i, n_lanes)), y + i, n_lanes);
  });
}

void AddTo(float* x, const float* y, size_t n) noexcept {
  ForVectors(n, [&](size_t i, size_t n_lanes) {
    StorePart(hn::Add(LoadPart(x + i, n_lanes), LoadPart(y + i, n_lanes)), x + i, n_lanes);
  });
}

void SiluMul(const float* gate, const float* up, size_t n, float* y) noexcept {
  const F32x4 d;
  ForVectors(n, [&](size_t i, size_t n_lanes) {
    const VecF32 g = LoadPart(gate + i, n_lanes);
    const VecF32 denominator = hn::Add(hn::Set(d, 1.0f), ExpF32(d, hn::Neg(g)));
    StorePart(hn::Mul(hn::Div(g, denominator), LoadPart(up + i, n_lanes)), y + i, n_lanes);
  });
}

}  // namespace headlight
