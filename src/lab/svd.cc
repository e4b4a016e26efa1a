#include "lab/svd.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace headlight {
namespace {

double Dot(const double* a, const double* b, size_t n) {
  double sum = 0.0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Turns rows a and b by an angle with cosine c and sine s.
void Turn(double c, double s, size_t n, double* a, double* b) {
  for (size_t i = 0; i < n; ++i) {
    const double old = a[i];
    a[i] = c * old - s * b[i];
    b[i] = s * old + c * b[i];
  }
}

constexpr double kOrthogonal = 1e-15;  // a cosine below it counts as 0
constexpr size_t kMaxSweeps = 60;      // ten are usual

// One-sided Jacobi (Hestenes 1958): makes the rows of m orthogonal by turning two at a time, and
// turns the rows of `along` with them; then sorts both by the length in m, the longest first.
void OrthogonaliseRows(Doubles& m, Doubles& along) {
  const size_t d = m.n_rows;
  bool turned = true;
  for (size_t sweep = 0; turned && sweep < kMaxSweeps; ++sweep) {
    turned = false;
    for (size_t i = 0; i + 1 < d; ++i) {
      for (size_t j = i + 1; j < d; ++j) {
        const double aa = Dot(m.row(i), m.row(i), m.n_cols);
        const double bb = Dot(m.row(j), m.row(j), m.n_cols);
        const double ab = Dot(m.row(i), m.row(j), m.n_cols);
        if (std::abs(ab) <= kOrthogonal * std::sqrt(aa * bb)) continue;
        turned = true;
        const double zeta = (bb - aa) / (2.0 * ab);
        const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta));
        const double c = 1.0 / std::sqrt(1.0 + t * t);
        Turn(c, c * t, m.n_cols, m.row(i), m.row(j));
        Turn(c, c * t, along.n_cols, along.row(i), along.row(j));
      }
    }
  }
  for (size_t i = 0; i < d; ++i) {  // selection sort: d is small and rows are long
    size_t longest = i;
    const auto length = [&](size_t r) { return Dot(m.row(r), m.row(r), m.n_cols); };
    for (size_t j = i + 1; j < d; ++j) {
      if (length(j) > length(longest)) longest = j;
    }
    if (longest == i) continue;
    std::swap_ranges(m.row(i), m.row(i) + m.n_cols, m.row(longest));
    std::swap_ranges(along.row(i), along.row(i) + along.n_cols, along.row(longest));
  }
}

void KeepRows(size_t n, Doubles& m) {
  m.n_rows = n;
  m.values.resize(n * m.n_cols);
}

// The smaller of W W^T and W^T W.
Doubles Gram(const Weights& w) {
  const bool by_rows = w.n_rows <= w.n_cols;
  Doubles gram(std::min(w.n_rows, w.n_cols), std::min(w.n_rows, w.n_cols));
  const size_t n = std::max(w.n_rows, w.n_cols);
  Doubles m(gram.n_rows, n);
  for (size_t i = 0; i < gram.n_rows; ++i) {
    for (size_t k = 0; k < n; ++k) {
      m.row(i)[k] = static_cast<double>(by_rows ? w.row(i)[k] : w.row(k)[i]);
    }
    for (size_t j = 0; j <= i; ++j) gram.row(i)[j] = gram.row(j)[i] = Dot(m.row(i), m.row(j), n);
  }
  return gram;
}

// A symmetric matrix by its diagonal and what stands below it.
struct Tridiagonal {
  std::vector<double> diagonal;
  std::vector<double> below;  // [n]: below[i] stands in row i + 1; the last is 0
};

// Householder's reflections from both sides: same eigenvalues.
Tridiagonal Reduce(Doubles& a) {
  const size_t n = a.n_rows;
  Tridiagonal out{std::vector<double>(n), std::vector<double>(n)};
  std::vector<double> v(n), p(n);
  for (size_t k = 0; k + 1 < n; ++k) {
    double* column = a.row(k);  // of a symmetric matrix
    const double norm = std::sqrt(Dot(column + k + 1, column + k + 1, n - k - 1));
    out.diagonal[k] = column[k];
    out.below[k] = column[k + 1] > 0.0 ? -norm : norm;
    if (norm == 0.0) continue;
    std::copy(column + k + 1, column + n, v.begin() + static_cast<std::ptrdiff_t>(k) + 1);
    v[k + 1] -= out.below[k];
    const double half = Dot(&v[k + 1], &v[k + 1], n - k - 1) / 2.0;
    if (half == 0.0) continue;
    for (size_t i = k + 1; i < n; ++i) p[i] = Dot(a.row(i) + k + 1, &v[k + 1], n - k - 1) / half;
    const double share = Dot(&p[k + 1], &v[k + 1], n - k - 1) / (2.0 * half);
    for (size_t i = k + 1; i < n; ++i) p[i] -= share * v[i];
    for (size_t i = k + 1; i < n; ++i) {
      for (size_t j = k + 1; j < n; ++j) a.row(i)[j] -= v[i] * p[j] + p[i] * v[j];
    }
  }
  if (n > 0) out.diagonal[n - 1] = a.row(n - 1)[n - 1];
  return out;
}

// One implicit QL step with Wilkinson's shift on rows [first, last].
void QlStep(Tridiagonal& t, size_t first, size_t last) {
  std::vector<double>& d = t.diagonal;
  std::vector<double>& e = t.below;
  double g = (d[first + 1] - d[first]) / (2.0 * e[first]);
  double r = std::hypot(g, 1.0);
  g = d[last] - d[first] + e[first] / (g + std::copysign(r, g));
  double s = 1.0, c = 1.0, p = 0.0;
  for (size_t i = last; i-- > first;) {
    const double f = s * e[i];
    const double b = c * e[i];
    r = std::hypot(f, g);
    e[i + 1] = r;
    if (r == 0.0) {
      d[i + 1] -= p;
      e[last] = 0.0;
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    r = (d[i] - g) * s + 2.0 * c * b;
    p = s * r;
    d[i + 1] = g + p;
    g = c * r - b;
  }
  d[first] -= p;
  e[first] = g;
  e[last] = 0.0;
}

constexpr size_t kMaxQlSteps = 60;  // for each eigenvalue; two are usual

void Eigenvalues(Tridiagonal& t) {
  const size_t n = t.diagonal.size();
  for (size_t first = 0; first < n; ++first) {
    for (size_t step = 0; step < kMaxQlSteps; ++step) {
      size_t last = first;
      for (; last + 1 < n; ++last) {
        const double scale = std::abs(t.diagonal[last]) + std::abs(t.diagonal[last + 1]);
        if (std::abs(t.below[last]) + scale == scale) break;
      }
      if (last == first) break;
      QlStep(t, first, last);
    }
  }
}

}  // namespace

void CutProduct(size_t rank, Doubles& left, Doubles& right) {
  OrthogonaliseRows(left, right);
  // Lengths move over to the right: what is left of `left` is orthonormal, so that cutting rows of
  // the product of the two is cutting it where it weighs least.
  for (size_t i = 0; i < left.n_rows; ++i) {
    const double length = std::sqrt(Dot(left.row(i), left.row(i), left.n_cols));
    for (size_t k = 0; k < left.n_cols; ++k) left.row(i)[k] /= length > 0.0 ? length : 1.0;
    for (size_t k = 0; k < right.n_cols; ++k) right.row(i)[k] *= length;
  }
  OrthogonaliseRows(right, left);
  KeepRows(rank, left);
  KeepRows(rank, right);
}

std::vector<double> SingularValues(const Weights& weights) {
  Doubles gram = Gram(weights);
  Tridiagonal t = Reduce(gram);
  Eigenvalues(t);
  std::vector<double> values = std::move(t.diagonal);
  for (double& value : values) value = std::sqrt(std::max(value, 0.0));
  std::sort(values.begin(), values.end(), std::greater<>());
  return values;
}

}  // namespace headlight
