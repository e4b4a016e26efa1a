// The nonlinearities of feed-forwards, one row at a time.
#ifndef HEADLIGHT_KERNELS_ACTIVATION_H_
#define HEADLIGHT_KERNELS_ACTIVATION_H_

#include <cstddef>
#include <cstdint>

namespace headlight {

enum class Activation : uint8_t {
  kSilu,         // x / (1 + e^-x)
  kGelu,         // tanh form: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (arXiv 1606.08415)
  kRelu,         // max(x, 0)
  kSquaredRelu,  // max(x, 0)^2
  // Of gpt-oss, gated only: g = min(gate, 7), u = clamp(up, +-7): g / (1 + e^(-1.702 g)) (u + 1).
  kClampedSwiglu,
};

// y[n] = act(x). y may be x.
void Activate(Activation activation, const float* x, size_t n, float* y) noexcept;

// y[n] = act(gate) * up. y may be gate.
void ActivateMul(Activation activation, const float* gate, const float* up, size_t n,
                 float* y) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_ACTIVATION_H_
