// What the oracle's layers are made of, in double: products, norms, rotation, activations.
#ifndef HEADLIGHT_TESTS_ORACLE_ORACLE_OPS_H_
#define HEADLIGHT_TESTS_ORACLE_ORACLE_OPS_H_

#include <cstddef>
#include <vector>

#include "model/model_spec.h"
#include "oracle/oracle.h"

namespace headlight::oracle {

using Vector = std::vector<double>;

Vector Rounded(OracleRounding rounding, Vector x);
Vector MatVec(const Matrix& w, const Vector& x);
void AddTo(const Vector& y, Vector& x);
// weight, bias: of x's size, or empty.
Vector Norm(NormKind kind, double eps, const Vector& x, const Vector& weight, const Vector& bias);
double ActivationOf(Activation activation, double x);
// Turns the pairs of every head of x [n_heads * d]; those start at element `first` of a head.
struct Rotation {
  size_t n_heads, d, first, pos, n_ctx;
};
void Rotate(const RopeSpec& rope, const Rotation& rotation, Vector& x);
// The slope of ALiBi of a head.
double AlibiSlope(size_t head, size_t n_heads, double max_bias);

}  // namespace headlight::oracle

#endif  // HEADLIGHT_TESTS_ORACLE_ORACLE_OPS_H_
