// Every tile of every family and form against the scalar reference.
#include "kernels/matmul.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/random_matrix.h"
#include "simd/probe.h"

namespace headlight {
namespace {

using test::Fill;

struct Case {
  size_t n_rows, n_cols, n_tokens;
};

// Rows around the group and tile edges, columns around the block, tokens around the tile.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (size_t n_rows = 1; n_rows <= 9; ++n_rows) cases.push_back({n_rows, 64, 1 + n_rows % 5});
  for (size_t n_tokens = 1; n_tokens <= 9; ++n_tokens) cases.push_back({13, 96, n_tokens});
  for (const size_t n_cols : {size_t{8}, size_t{32}, size_t{172}, size_t{192}, size_t{512}}) {
    for (const size_t n_tokens : {size_t{1}, size_t{4}, size_t{17}}) {
      cases.push_back({11, n_cols, n_tokens});
    }
  }
  cases.push_back({172, 172, 3});
  cases.push_back({192, 512, 17});
  cases.push_back({576, 192, 5});
  cases.push_back({21, 3136, 6});  // several panels of columns
  // Whole super-blocks, for the types that have them.
  for (size_t n_rows = 1; n_rows <= 9; n_rows += 2) cases.push_back({n_rows, 256, 1 + n_rows % 5});
  cases.push_back({21, 768, 1});
  cases.push_back({35, 2048, 5});
  return cases;
}

// y after MatMul, rows `pad` elements longer than needed; the padding must stay as it was.
std::vector<float> Product(const PackedMatrix& w, const std::vector<float>& x, size_t n_tokens,
                           ActivationType type, ThreadPool& pool) {
  constexpr size_t kPad = 3;
  constexpr float kUntouched = -12345.0f;
  const size_t n_rows = w.shape.n_rows, n_cols = w.shape.n_cols;
  Activations activations(n_tokens, n_cols, type);
  activations.Set(x.data(), n_tokens, n_cols, n_cols);
  std::vector<float> padded(n_tokens * (n_rows + kPad), kUntouched);
  const MatMulJob job{&w, padded.data(), n_rows + kPad};
  MatMul({&job, 1}, activations, pool);
  std::vector<float> y;
  for (size_t t = 0; t < n_tokens; ++t) {
    const float* row = &padded[t * (n_rows + kPad)];
    y.insert(y.end(), row, row + n_rows);
    for (size_t i = 0; i < kPad; ++i) CHECK(row[n_rows + i] == kUntouched);
  }
  return y;
}

std::vector<float> CodesReference(const FileMatrix& w, const std::vector<float>& x,
                                  size_t n_tokens) {
  std::vector<float> y(n_tokens * w.n_rows);
  for (size_t t = 0; t < n_tokens; ++t) {
    MatVecCodesReference(w, QuantiseReference(&x[t * w.n_cols], w.n_cols), &y[t * w.n_rows]);
  }
  return y;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_CASE("MatMul: codes give the reference's bits in every form, shape, fill and tile") {
  ThreadPool pool(1);
  const auto forms = test::ExactForms(ProbeDot().form);
  for (const TensorType type : test::kTypes) {
    if (!test::IsCoded(type)) continue;
    for (const Case& c : Cases()) {
      if (c.n_cols % test::Traits(type).n_block != 0) continue;
      for (const Fill fill : test::kFills) {
        const auto bytes = test::RandomFileBytes(type, c.n_rows, c.n_cols, fill, 11);
        const auto x = test::RandomFloats(c.n_tokens * c.n_cols, 1.5f, 12);
        const auto expected =
            CodesReference({type, c.n_rows, c.n_cols, bytes.data()}, x, c.n_tokens);
        for (const DotForm form : forms) {
          const auto packed = test::Pack(type, c.n_rows, c.n_cols, bytes, form);
          const auto y = Product(packed.matrix, x, c.n_tokens, ActivationType::kInt8, pool);
          CAPTURE(std::string(test::Traits(type).name));
          CAPTURE(c.n_rows);
          CAPTURE(c.n_cols);
          CAPTURE(c.n_tokens);
          CAPTURE(std::string(DotFormName(form)));
          CHECK(SameBits(y, expected));
        }
      }
    }
  }
}

TEST_CASE("MatMul: activations at both extremes against weights at both extremes") {
  ThreadPool pool(1);
  constexpr size_t kCols = 1536, kTokens = 4;
  std::vector<float> x(kTokens * kCols);
  for (size_t i = 0; i < x.size(); ++i) {
    // All 127, all -127, alternating, and one big value among small ones.
    const float values[kTokens] = {1.0f, -1.0f, i % 2 == 0 ? 1.0f : -1.0f,
                                   i % 32 == 5 ? 1.0f : 1e-4f};
    x[i] = values[i / kCols];
  }
  for (const TensorType type : test::kTypes) {
    if (!test::IsCoded(type)) continue;
    for (const Fill fill : test::kFills) {
      const auto bytes = test::RandomFileBytes(type, 7, kCols, fill, 13);
      const auto expected = CodesReference({type, 7, kCols, bytes.data()}, x, kTokens);
      for (const DotForm form : test::ExactForms(ProbeDot().form)) {
        const auto packed = test::Pack(type, 7, kCols, bytes, form);
        CHECK(SameBits(Product(packed.matrix, x, kTokens, ActivationType::kInt8, pool), expected));
      }
    }
  }
}

// Rounding of n sums and n products, each at most eps / 2 of a partial sum that the magnitude
// bounds; in practice it grows with sqrt(n). 4 * eps * sqrt(n) is a bound that random signs keep.
double FloatTolerance(size_t n_cols, double magnitude) {
  const double eps = static_cast<double>(std::numeric_limits<float>::epsilon());
  return 4.0 * eps * std::sqrt(static_cast<double>(n_cols)) * magnitude + 1e-37;
}

TEST_CASE(
    "MatMul: f32 activations meet every family within rounding, matvec and tiles bit-identical") {
  ThreadPool pool(1);
  for (const TensorType type : test::kTypes) {
    for (const Case& c : Cases()) {
      if (c.n_cols % test::Traits(type).n_block != 0) continue;
      for (const Fill fill : test::kFills) {
        const auto bytes = test::RandomFileBytes(type, c.n_rows, c.n_cols, fill, 21);
        const auto x = test::RandomFloats(c.n_tokens * c.n_cols, 1.0f, 22);
        const auto packed = test::Pack(type, c.n_rows, c.n_cols, bytes, DotForm::kUnsigned);
        const auto y = Product(packed.matrix, x, c.n_tokens, ActivationType::kF32, pool);
        std::vector<double> expected(c.n_rows), magnitude(c.n_rows);
        for (size_t t = 0; t < c.n_tokens; ++t) {
          const std::vector<float> row(x.begin() + static_cast<ptrdiff_t>(t * c.n_cols),
                                       x.begin() + static_cast<ptrdiff_t>((t + 1) * c.n_cols));
          MatVecFloatsReference({type, c.n_rows, c.n_cols, bytes.data()}, row.data(),
                                expected.data(), magnitude.data());
          const auto single = Product(packed.matrix, row, 1, ActivationType::kF32, pool);
          for (size_t r = 0; r < c.n_rows; ++r) {
            const float got = y[t * c.n_rows + r];
            CHECK(std::fabs(static_cast<double>(got) - expected[r]) <=
                  FloatTolerance(c.n_cols, magnitude[r]));
            CHECK(std::bit_cast<uint32_t>(single[r]) == std::bit_cast<uint32_t>(got));
          }
        }
      }
    }
  }
}

TEST_CASE("MatMul: plain families use f32 activations whatever the activation type") {
  ThreadPool pool(1);
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16}) {
    const auto bytes = test::RandomFileBytes(type, 9, 172, Fill::kNormal, 31);
    const auto x = test::RandomFloats(2 * 172, 1.0f, 32);
    const auto packed = test::Pack(type, 9, 172, bytes, DotForm::kWide);
    CHECK(SameBits(Product(packed.matrix, x, 2, ActivationType::kInt8, pool),
                   Product(packed.matrix, x, 2, ActivationType::kF32, pool)));
  }
}

TEST_CASE("MatMul: the bands of a product write its bits, each its own rows") {
  constexpr size_t kCols = 192, kTokens = 3;
  constexpr float kUntouched = -12345.0f;
  ThreadPool pool(1);
  const auto x = test::RandomFloats(kTokens * kCols, 1.0f, 51);
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kF16}) {
    for (const size_t n_rows : {size_t{5}, size_t{64}, size_t{131}, size_t{576}}) {
      const auto bytes = test::RandomFileBytes(type, n_rows, kCols, Fill::kNormal, 52);
      const auto packed = test::Pack(type, n_rows, kCols, bytes, ProbeDot().form);
      const auto whole = Product(packed.matrix, x, kTokens, ActivationType::kInt8, pool);
      // More bands than a small matrix has rows, too: the last ones are empty.
      for (const size_t n_bands : {size_t{1}, size_t{2}, size_t{3}, size_t{7}}) {
        Activations activations(kTokens, kCols, ActivationType::kInt8);
        activations.Set(x.data(), kTokens, kCols, kCols);
        std::vector<float> y(kTokens * n_rows, kUntouched);
        size_t n_written = 0;
        for (size_t i = 0; i < n_bands; ++i) {
          std::vector<float> part(y.size(), kUntouched);
          const MatMulJob job = BandOf({&packed.matrix, part.data(), n_rows}, {i, n_bands});
          MatMul({&job, 1}, activations, pool);
          for (size_t at = 0; at < y.size(); ++at) {
            if (part[at] == kUntouched) continue;
            y[at] = part[at];
            ++n_written;
          }
        }
        CHECK(n_written == y.size());
        CHECK(SameBits(y, whole));
      }
    }
  }
}

#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
TEST_CASE("MatMul: several jobs on several threads give the bits of each alone on one") {
  ThreadPool one(1);
  constexpr size_t kCols = 192, kTokens = 6;
  const auto x = test::RandomFloats(kTokens * kCols, 1.0f, 41);
  const DotForm form = ProbeDot().form;
  std::vector<test::OwnedMatrix> matrices;
  std::vector<std::vector<float>> expected;
  const size_t row_counts[] = {576, 5, 1100, 64};
  const TensorType types[] = {TensorType::kQ8_0, TensorType::kF16, TensorType::kQ4_0,
                              TensorType::kF32};
  for (size_t i = 0; i < 4; ++i) {
    const auto bytes = test::RandomFileBytes(types[i], row_counts[i], kCols, Fill::kNormal, 42);
    matrices.push_back(test::Pack(types[i], row_counts[i], kCols, bytes, form));
    expected.push_back(Product(matrices[i].matrix, x, kTokens, ActivationType::kInt8, one));
  }
  for (const size_t n_threads : {size_t{1}, size_t{2}, size_t{3}}) {
    ThreadPool pool(n_threads);
    Activations activations(kTokens, kCols, ActivationType::kInt8);
    activations.Set(x.data(), kTokens, kCols, kCols);
    std::vector<std::vector<float>> y(4);
    std::vector<MatMulJob> jobs;
    for (size_t i = 0; i < 4; ++i) {
      y[i].resize(kTokens * row_counts[i]);
      jobs.push_back({&matrices[i].matrix, y[i].data(), row_counts[i]});
    }
    MatMul(jobs, activations, pool);
    for (size_t i = 0; i < 4; ++i) CHECK(SameBits(y[i], expected[i]));
  }
}
#endif

}  // namespace
}  // namespace headlight
