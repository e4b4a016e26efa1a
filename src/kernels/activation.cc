#include "kernels/activation.h"

#include "simd/exp-inl.h"
#include "simd/part.h"

namespace headlight {
namespace {

HWY_INLINE VecF32 Constant(float x) { return hn::Set(F32x4(), x); }

// x / (1 + e^-(slope x))
HWY_INLINE VecF32 TimesSigmoid(VecF32 x, VecF32 slope_x) {
  return hn::Div(x, hn::Add(Constant(1.0f), ExpF32(F32x4(), hn::Neg(slope_x))));
}

// (1 + tanh(u)) / 2 is 1 / (1 + e^(-2 u)): no cancellation.
HWY_INLINE VecF32 Gelu(VecF32 x) {
  constexpr float kTwiceRoot = 1.5957691216f;  // 2 sqrt(2 / pi)
  const VecF32 cubic = hn::Mul(hn::Mul(x, x), Constant(0.044715f));
  const VecF32 inner = hn::Mul(x, hn::Add(Constant(1.0f), cubic));
  return TimesSigmoid(x, hn::Mul(inner, Constant(kTwiceRoot)));
}

HWY_INLINE VecF32 Relu(VecF32 x) { return hn::Max(x, hn::Zero(F32x4())); }

constexpr float kSwigluLimit = 7.0f;
constexpr float kSwigluSlope = 1.702f;

HWY_INLINE VecF32 ClampedGate(VecF32 x) {
  const VecF32 gate = hn::Min(x, Constant(kSwigluLimit));
  return TimesSigmoid(gate, hn::Mul(gate, Constant(kSwigluSlope)));
}

HWY_INLINE VecF32 ClampedUp(VecF32 x) {
  const VecF32 low = hn::Max(x, Constant(-kSwigluLimit));
  return hn::Add(hn::Min(low, Constant(kSwigluLimit)), Constant(1.0f));
}

template <class F>
HWY_INLINE void Map(const float* x, size_t n, float* y, const F& f) {
  ForVectors(
      n, [&](size_t i, size_t n_left) { StorePart(f(LoadPart(x + i, n_left)), y + i, n_left); });
}

HWY_INLINE VecF32 Silu(VecF32 x) { return TimesSigmoid(x, x); }
HWY_INLINE VecF32 SquaredRelu(VecF32 x) { return hn::Mul(Relu(x), Relu(x)); }

}  // namespace

void Activate(Activation activation, const float* x, size_t n, float* y) noexcept {
  switch (activation) {
    case Activation::kSilu:
      return Map(x, n, y, [](VecF32 v) { return Silu(v); });
    case Activation::kGelu:
      return Map(x, n, y, [](VecF32 v) { return Gelu(v); });
    case Activation::kRelu:
      return Map(x, n, y, [](VecF32 v) { return Relu(v); });
    case Activation::kSquaredRelu:
      return Map(x, n, y, [](VecF32 v) { return SquaredRelu(v); });
    case Activation::kClampedSwiglu:
      return Map(x, n, y, [](VecF32 v) { return ClampedGate(v); });
  }
}

void ActivateMul(Activation activation, const float* gate, const float* up, size_t n,
                 float* y) noexcept {
  switch (activation) {
    case Activation::kSilu:  // most models: in one go
      return ForVectors(n, [&](size_t i, size_t n_left) {
        const VecF32 g = Silu(LoadPart(gate + i, n_left));
        StorePart(hn::Mul(g, LoadPart(up + i, n_left)), y + i, n_left);
      });
    case Activation::kClampedSwiglu:
      return ForVectors(n, [&](size_t i, size_t n_left) {
        const VecF32 g = ClampedGate(LoadPart(gate + i, n_left));
        StorePart(hn::Mul(g, ClampedUp(LoadPart(up + i, n_left))), y + i, n_left);
      });
    case Activation::kGelu:
    case Activation::kRelu:
    case Activation::kSquaredRelu:
      Activate(activation, gate, n, y);
      return ForVectors(n, [&](size_t i, size_t n_left) {
        const VecF32 g = LoadPart(y + i, n_left);
        StorePart(hn::Mul(g, LoadPart(up + i, n_left)), y + i, n_left);
      });
  }
}

}  // namespace headlight
