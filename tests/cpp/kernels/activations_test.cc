// The 8-bit form of activations: SIMD equals the scalar definition, bit for bit.
#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>
#include <vector>

#include "kernels/matmul.h"
#include "kernels/random_matrix.h"

namespace headlight {
namespace {

void CheckAgainstReference(const std::vector<float>& x, size_t n_tokens, size_t n_cols,
                           size_t x_stride) {
  ThreadPool pool(1);
  // Sized for more than is used, as a session's workspace is.
  Activations activations(n_tokens + 2, n_cols + 64, ActivationType::kInt8);
  activations.Set(x.data(), n_tokens, n_cols, x_stride);
  const size_t n_blocks = CeilDiv(n_cols, kBlockCols);
  CHECK(activations.n_blocks() == n_blocks);
  for (const DotForm form :
       {DotForm::kSigned, DotForm::kUnsigned, DotForm::kSplit, DotForm::kWide}) {
    // What one matrix did not need, another asks for later.
    activations.Quantise(pool, {WordsMixHalves(form), false, false});
    activations.Quantise(pool, {WordsMixHalves(form), false, true});
    const bool has_wide = form == DotForm::kWide || form == DotForm::kUnsigned;
    if (has_wide) activations.Quantise(pool, {WordsMixHalves(form), true, false});
    for (size_t t = 0; t < n_tokens; ++t) {
      const QuantisedReference expected = QuantiseReference(&x[t * x_stride], n_cols);
      const auto same = [&](const auto* actual, const auto& values) {
        return std::memcmp(actual, values.data(), values.size() * sizeof(values[0])) == 0;
      };
      CHECK(expected.codes.size() == n_blocks * kBlockCols);
      CHECK(same(activations.multipliers(t), expected.multipliers));
      CHECK(same(activations.scales(t), expected.scales));
      CHECK(same(activations.sums(t), expected.sums));
      CHECK(same(activations.first_sums(t), expected.first_sums));
      size_t n_wrong = 0;
      for (size_t i = 0; i < expected.codes.size(); ++i) {
        const size_t word = i % kBlockCols / kWordCols;
        const size_t column = i / kBlockCols * kBlockCols + WordColumn(form, word, i % kWordCols);
        n_wrong += activations.codes(t)[i] != expected.codes[column];
        if (!has_wide) continue;
        constexpr size_t kPlace[] = {0, 2, 1, 3};  // of byte i within its word
        n_wrong += activations.wide_codes(t)[i / kWordCols * kWordCols + kPlace[i % kWordCols]] !=
                   expected.codes[column] * expected.multipliers[column / kHalfCols];
      }
      CHECK(n_wrong == 0);
    }
  }
}

TEST_CASE(
    "Activations: codes, scales and sums equal the scalar reference for all widths and strides") {
  for (const size_t n_cols :
       {size_t{1}, size_t{8}, size_t{31}, size_t{32}, size_t{33}, size_t{172}, size_t{576}}) {
    for (const size_t n_tokens : {size_t{1}, size_t{2}, size_t{9}, size_t{300}}) {
      const size_t x_stride = n_cols + 5;
      CheckAgainstReference(test::RandomFloats(n_tokens * x_stride, 3.0f, 51), n_tokens, n_cols,
                            x_stride);
    }
  }
}

TEST_CASE("Activations: halves round to even, extremes stay within 127") {
  std::vector<float> x(64, 0.0f);
  for (int i = 0; i < 32; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i) + 0.5f;
  x[15] = 127.0f;  // scale 1/16, both halves in steps of 1
  x[31] = 127.0f;
  for (int i = 32; i < 64; ++i) x[static_cast<size_t>(i)] = i % 2 == 0 ? 3e38f : -3e38f;
  CheckAgainstReference(x, 1, 64, 64);
  ThreadPool pool(1);
  Activations activations(1, 64, ActivationType::kInt8);
  activations.Set(x.data(), 1, 64, 64);
  activations.Quantise(pool, {});
  CHECK(activations.codes(0)[0] == 0);  // 0.5
  CHECK(activations.codes(0)[1] == 2);  // 1.5
  CHECK(activations.codes(0)[2] == 2);  // 2.5
  CHECK(activations.codes(0)[32] == 127);
  CHECK(activations.codes(0)[33] == -127);
}

TEST_CASE("Activations: a quiet half has steps of its own, in sixteenths of the block's") {
  std::vector<float> x(32, 0.25f);
  x[20] = 127.0f;
  CheckAgainstReference(x, 1, 32, 32);
  ThreadPool pool(1);
  Activations activations(1, 32, ActivationType::kInt8);
  activations.Set(x.data(), 1, 32, 32);
  activations.Quantise(pool, {});
  CHECK(activations.scales(0)[0] == 1.0f / 16.0f);
  CHECK(activations.multipliers(0)[0] == 1);
  CHECK(activations.multipliers(0)[1] == 16);
  CHECK(activations.codes(0)[0] == 4);   // 4 / 16 = 0.25: exact
  CHECK(activations.codes(0)[16] == 0);  // lost in the loud half
  CHECK(activations.codes(0)[20] == 127);
  CHECK(activations.sums(0)[0] == 16 * 4 + 127 * 16);
}

TEST_CASE("Activations: zero and vanishing blocks have scale 0 and no code") {
  for (const float value : {0.0f, -0.0f, 1e-31f, 1e-45f}) {
    const std::vector<float> x(96, value);
    CheckAgainstReference(x, 1, 96, 96);
    ThreadPool pool(1);
    Activations activations(1, 96, ActivationType::kInt8);
    activations.Set(x.data(), 1, 96, 96);
    activations.Quantise(pool, {});
    for (size_t b = 0; b < 3; ++b) {
      CHECK(activations.scales(0)[b] == 0.0f);
      CHECK(activations.sums(0)[b] == 0);
    }
  }
  CheckAgainstReference(std::vector<float>(32, 1.1e-30f), 1, 32, 32);
}

TEST_CASE("Activations: of what is no number the sums stay within those of numbers") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& bad :
       {std::vector{kNan}, {kInf}, {-kInf}, {kInf, -kInf}, {1.0f, kNan}, {kInf, 3e38f, kNan}}) {
    for (const size_t n : {size_t{1}, size_t{17}, size_t{32}}) {
      std::vector<float> x(32, 0.5f);
      for (size_t i = 0; i < n; ++i) x[i] = bad[i % bad.size()];
      ThreadPool pool(1);
      Activations activations(1, 32, ActivationType::kInt8);
      activations.Set(x.data(), 1, 32, 32);
      activations.Quantise(pool, {false, false, true});
      constexpr int32_t kMost = 32 * 127 * kMaxMultiplier;
      CHECK(std::abs(activations.sums(0)[0]) <= kMost);
      CHECK(std::abs(activations.first_sums(0)[0]) <= kMost);
    }
  }
}

TEST_CASE("Activations: WorkspaceBytes is what the arrays take") {
  CHECK(Activations::WorkspaceBytes(10, 172, ActivationType::kInt8) ==
        10 * 6 * (32 * 3 + 4 + 4 + 8));
  CHECK(Activations::WorkspaceBytes(10, 172, ActivationType::kF32) == 0);
}

}  // namespace
}  // namespace headlight
