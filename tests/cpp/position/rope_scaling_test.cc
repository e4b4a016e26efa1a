// Stretched frequencies and positions that do not rotate, against published numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "position/absolute.h"
#include "position/rope.h"

namespace headlight {
namespace {

RopeSpec Spec(size_t n_rot, double base) {
  RopeSpec spec;
  spec.style = RopeStyle::kHalfSplit;
  spec.n_rot = n_rot;
  spec.freq_base = base;
  return spec;
}

// The base that would give these frequencies: pair 1 has base^(-2 / n_rot).
double BaseOf(const RopeSpec& spec, size_t n_ctx) {
  return std::pow(RopeFrequencies(spec, n_ctx)[1], -static_cast<double>(spec.n_rot) / 2.0);
}

TEST_CASE("rope: NTK scaling by 8 turns a base of 10000 into 82684.62, at 128 rotated elements") {
  RopeSpec spec = Spec(128, 10000.0);
  spec.scaling = RopeScaling::kNtk;
  spec.factor = 8.0;
  CHECK(BaseOf(spec, 4096) == doctest::Approx(82684.62).epsilon(1e-7));
}

TEST_CASE("rope: dynamic NTK follows the context, and does nothing up to the original one") {
  RopeSpec spec = Spec(128, 10000.0);
  spec.scaling = RopeScaling::kDynamicNtk;
  spec.factor = 2.0;
  spec.n_ctx_original = 4096;
  CHECK(BaseOf(spec, 4096) == doctest::Approx(10000.0).epsilon(1e-9));
  CHECK(BaseOf(spec, 8192) == doctest::Approx(30527.74).epsilon(1e-6));
}

TEST_CASE("rope: YaRN keeps pairs up to 20 and interpolates from 46 on, at 128 elements and 4096") {
  RopeSpec spec = Spec(128, 10000.0);
  const std::vector<double> plain = RopeFrequencies(spec, 65536);
  spec.scaling = RopeScaling::kYarn;
  spec.linear_scale = 16.0;
  spec.n_ctx_original = 4096;
  const std::vector<double> yarn = RopeFrequencies(spec, 65536);
  for (size_t i = 0; i < 64; ++i) {
    const double ratio = plain[i] / yarn[i];
    if (i <= 20) CHECK(ratio == doctest::Approx(1.0).epsilon(1e-12));
    if (i >= 46) CHECK(ratio == doctest::Approx(16.0).epsilon(1e-12));
    if (i > 20 && i < 46) CHECK((ratio > 1.0 && ratio < 16.0));
  }
}

TEST_CASE("rope: a magnitude multiplies what is rotated, and nothing else") {
  RopeSpec spec = Spec(4, 10000.0);
  spec.magnitude = 1.25;
  RopeTable table(spec, 3);
  table.Ensure(3);
  float x[] = {3.0f, 0.0f, 4.0f, 0.0f, 7.0f};
  table.Rotate(x, 2);
  CHECK(std::hypot(x[0], x[2]) == doctest::Approx(1.25 * 5.0));
  CHECK(x[4] == 7.0f);
}

TEST_CASE("rope: long factors serve contexts beyond the original, short ones the others") {
  RopeSpec spec = Spec(4, 10000.0);
  spec.freq_factors = {1.0f, 2.0f};
  spec.long_factors = {3.0f, 4.0f};
  spec.n_ctx_original = 100;
  CHECK(RopeFrequencies(spec, 100)[0] == 1.0);
  CHECK(RopeFrequencies(spec, 101)[0] == doctest::Approx(1.0 / 3.0));
}

TEST_CASE("rope: a scaling that needs the original context, or a factor that is none, is refused") {
  RopeSpec yarn = Spec(4, 10000.0);
  yarn.scaling = RopeScaling::kYarn;
  RopeSpec factor = Spec(4, 10000.0);
  factor.factor = -1.0;
  RopeSpec lengths = Spec(4, 10000.0);
  lengths.long_factors = {1.0f};
  for (const RopeSpec& spec : {yarn, factor, lengths}) CHECK_THROWS_AS(RopeTable(spec, 8), Error);
}

TEST_CASE("ALiBi: slopes of 8, 12 and 16 heads are the paper's") {
  const std::vector<float> eight = AlibiSlopes(8, 8.0);
  for (size_t h = 0; h < 8; ++h) CHECK(eight[h] == std::exp2(-static_cast<float>(h + 1)));
  CHECK(AlibiSlopes(16, 8.0)[0] == doctest::Approx(0.707107).epsilon(1e-6));
  const std::vector<float> twelve = AlibiSlopes(12, 8.0);
  const double rest[] = {0.707107, 0.353553, 0.176777, 0.088388};
  for (size_t h = 0; h < 8; ++h) CHECK(twelve[h] == eight[h]);
  for (size_t h = 0; h < 4; ++h) CHECK(twelve[8 + h] == doctest::Approx(rest[h]).epsilon(1e-5));
}

TEST_CASE("sinusoid: position 0 adds 0 and 1, and a shift by k is a rotation") {
  std::vector<float> zero(6, 2.0f), a(6, 0.0f), b(6, 0.0f);
  AddSinusoid(0, 6, zero.data());
  CHECK(zero == std::vector<float>{2.0f, 3.0f, 2.0f, 3.0f, 2.0f, 3.0f});
  AddSinusoid(5, 6, a.data());
  AddSinusoid(12, 6, b.data());
  for (size_t i = 0; i < 3; ++i) {
    const double angle = 7.0 * std::pow(10000.0, -2.0 * static_cast<double>(i) / 6.0);
    const double sine = a[2 * i] * std::cos(angle) + a[2 * i + 1] * std::sin(angle);
    CHECK(b[2 * i] == doctest::Approx(sine).epsilon(1e-5));
  }
}

}  // namespace
}  // namespace headlight
