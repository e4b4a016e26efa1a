// The float work between the matrix products, one row at a time: norms, residual sums, gated
// activations.
#ifndef HEADLIGHT_KERNELS_VECTOR_OPS_H_
#define HEADLIGHT_KERNELS_VECTOR_OPS_H_

#include <cstddef>

namespace headlight {

// y[n] = x / sqrt(mean(x^2) + eps) * w; w [n]. y may be x. (arXiv 1910.07467)
void RmsNorm(const float* x, const float* w, size_t n, float eps, float* y) noexcept;

// x[n] += y[n].
void AddTo(float* x, const float* y, size_t n) noexcept;

// y[n] = silu(gate) * up, silu(g) = g / (1 + e^-g). y may be gate. (SwiGLU, arXiv 2002.05202)
void SiluMul(const float* gate, const float* up, size_t n, float* y) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_VECTOR_OPS_H_
