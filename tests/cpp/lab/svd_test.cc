#include "lab/svd.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "oracle/test_tensor.h"
#include "sample/random.h"

namespace headlight {
namespace {

double StableRank(const std::vector<double>& sigma) {
  double squares = 0.0;
  for (const double s : sigma) squares += s * s;
  return squares / (sigma[0] * sigma[0]);
}

TEST_CASE("svd: known singular values") {
  Weights identity(7, 7);
  for (size_t i = 0; i < 7; ++i) identity.row(i)[i] = 1.0f;
  const std::vector<double> ones = SingularValues(identity);
  CHECK(ones.size() == 7);
  for (const double s : ones) CHECK(s == doctest::Approx(1.0));
  CHECK(StableRank(ones) == doctest::Approx(7.0));

  Weights outer(5, 9);  // rank 1: |a| |b|
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j < 9; ++j) outer.row(i)[j] = static_cast<float>((i + 1) * (j + 2));
  }
  const std::vector<double> one = SingularValues(outer);
  CHECK(one[0] == doctest::Approx(std::sqrt(55.0 * 384.0)));
  CHECK(one[1] < 1e-6 * one[0]);
  CHECK(StableRank(one) == doctest::Approx(1.0));

  Weights two(2, 2);  // [[3, 0], [4, 5]]: sqrt(45), sqrt(5)
  two.values = {3.0f, 0.0f, 4.0f, 5.0f};
  CHECK(SingularValues(two)[0] == doctest::Approx(std::sqrt(45.0)));
  CHECK(SingularValues(two)[1] == doctest::Approx(std::sqrt(5.0)));
  CHECK(SingularValues(Weights(1, 1))[0] == 0.0);
  CHECK(SingularValues(Weights(3, 2))[1] == 0.0);
}

TEST_CASE("svd: the squares of singular values sum to those of the entries, lying or standing") {
  Random random(4);
  for (const auto& [rows, cols] : {std::pair<size_t, size_t>{40, 17}, {17, 40}, {64, 64}, {1, 9}}) {
    Weights w(rows, cols);
    double squares = 0.0, sum = 0.0;
    for (float& value : w.values) {
      value = static_cast<float>(Normal(random));
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    const std::vector<double> sigma = SingularValues(w);
    CHECK(sigma.size() == std::min(rows, cols));
    for (const double s : sigma) sum += s * s;
    CHECK(sum == doctest::Approx(squares).epsilon(1e-10));
    Weights turned(cols, rows);
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < cols; ++j) turned.row(j)[i] = w.row(i)[j];
    }
    const std::vector<double> other = SingularValues(turned);
    for (size_t i = 0; i < sigma.size(); ++i)
      CHECK(sigma[i] == doctest::Approx(other[i]).epsilon(1e-6));
  }
}

TEST_CASE("svd: the cut product is the nearest one, with orthonormal rows on the left") {
  Random random(5);
  Doubles left(6, 30), right(6, 11);
  for (double& value : left.values) value = Normal(random);
  for (double& value : right.values) value = Normal(random);
  const auto product = [](const Doubles& a, const Doubles& b) {
    Weights out(a.n_cols, b.n_cols);
    for (size_t i = 0; i < a.n_cols; ++i) {
      for (size_t j = 0; j < b.n_cols; ++j) {
        double sum = 0.0;
        for (size_t k = 0; k < a.n_rows; ++k) sum += a.row(k)[i] * b.row(k)[j];
        out.row(i)[j] = static_cast<float>(sum);
      }
    }
    return out;
  };
  const Weights whole = product(left, right);
  const std::vector<double> sigma = SingularValues(whole);
  CutProduct(4, left, right);
  CHECK(left.n_rows == 4);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      double dot = 0.0;
      for (size_t k = 0; k < 30; ++k) dot += left.row(i)[k] * left.row(j)[k];
      CHECK(dot == doctest::Approx(i == j ? 1.0 : 0.0).scale(1.0));
    }
    double length = 0.0;
    for (size_t k = 0; k < 11; ++k) length += right.row(i)[k] * right.row(i)[k];
    CHECK(std::sqrt(length) == doctest::Approx(sigma[i]).epsilon(1e-6));
  }
  Weights rest = product(left, right);
  for (size_t i = 0; i < rest.values.size(); ++i) rest.values[i] -= whole.values[i];
  CHECK(SingularValues(rest)[0] == doctest::Approx(sigma[4]).epsilon(1e-5));
}

}  // namespace
}  // namespace headlight
