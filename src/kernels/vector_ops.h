// The float work between the matrix products, one row at a time: norms, sums, scaling. Activations:
// activation.h.
#ifndef HEADLIGHT_KERNELS_VECTOR_OPS_H_
#define HEADLIGHT_KERNELS_VECTOR_OPS_H_

#include <cstddef>

namespace headlight {

// y[n] = x / sqrt(mean(x^2) + eps) * w; w [n]. y may be x. (arXiv 1910.07467)
void RmsNorm(const float* x, const float* w, size_t n, float eps, float* y) noexcept;

// y[n] = (x - mean(x)) / sqrt(variance(x) + eps) * w + b; w [n], b [n] or null. y may be x. The
// variance is that of the n elements, as they are. (arXiv 1607.06450)
void LayerNorm(const float* x, const float* w, const float* b, size_t n, float eps,
               float* y) noexcept;

// x[n] += y[n].
void AddTo(float* x, const float* y, size_t n) noexcept;

// x[n] *= factor.
void Scale(float* x, float factor, size_t n) noexcept;

// x[n] cut to [-limit, limit].
void Clamp(float* x, float limit, size_t n) noexcept;

// x[n] *= 1 / (1 + e^-gate), gate [n].
void MulSigmoid(float* x, const float* gate, size_t n) noexcept;

// x[n] = cap * tanh(x / cap).
void Softcap(float* x, float cap, size_t n) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_VECTOR_OPS_H_
