#include "position/rope.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"

namespace headlight {
namespace {

RopeSpec Spec(RopeStyle style, size_t n_rot) {
  RopeSpec spec;
  spec.style = style;
  spec.n_rot = n_rot;
  return spec;
}

std::vector<float> Gaussian(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& value : x) value = normal(random);
  return x;
}

std::vector<float> Rotated(const RopeTable& table, std::vector<float> x, size_t pos) {
  table.Rotate(x.data(), pos);
  return x;
}

double Dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

constexpr RopeStyle kStyles[] = {RopeStyle::kInterleaved, RopeStyle::kHalfSplit};

TEST_CASE("rope: frequencies are base^(-2i/n_rot)") {
  RopeSpec spec = Spec(RopeStyle::kHalfSplit, 48);
  spec.freq_base = 1e5;
  const std::vector<double> frequencies = RopeFrequencies(spec, 4096);
  REQUIRE(frequencies.size() == 24);
  CHECK(frequencies[0] == 1.0);
  CHECK(frequencies[1] == doctest::Approx(0.61896582).epsilon(1e-8));
  CHECK(frequencies[11] == doctest::Approx(5.10897e-3).epsilon(1e-6));
  CHECK(frequencies[23] == doctest::Approx(1.61560e-5).epsilon(1e-5));
}

TEST_CASE(
    "rope: linear interpolation divides the angle, and a factor table divides each frequency") {
  RopeSpec spec = Spec(RopeStyle::kInterleaved, 8);
  const std::vector<double> plain = RopeFrequencies(spec, 4096);
  spec.linear_scale = 4.0;
  spec.freq_factors = {1.0f, 2.0f, 8.0f, 32.0f};
  const std::vector<double> scaled = RopeFrequencies(spec, 4096);
  for (size_t i = 0; i < 4; ++i)
    CHECK(scaled[i] == doctest::Approx(plain[i] / 4.0 / spec.freq_factors[i]));
}

TEST_CASE(
    "rope: the angle between rotated vectors depends on the distance alone: positions (5,3), "
    "(10,8), (2,0)") {
  // Two unit vectors in the plane: q.k after rotation is cos((m - n) theta); with theta = 0.5 and m
  // - n = 2, cos 1.
  RopeSpec spec = Spec(RopeStyle::kInterleaved, 2);
  spec.linear_scale = 2.0;  // theta_0 = 1 / 2
  RopeTable table(spec, 16);
  table.Ensure(16);
  const std::vector<float> x = {1.0f, 0.0f};
  for (const auto& [m, n] : {std::pair<size_t, size_t>{5, 3}, {10, 8}, {2, 0}}) {
    CHECK(Dot(Rotated(table, x, m), Rotated(table, x, n)) ==
          doctest::Approx(0.540302306).epsilon(1e-7));
  }
}

TEST_CASE("rope: q.k depends on the distance alone, for every width, both pairings") {
  for (const RopeStyle style : kStyles) {
    for (const size_t n_rot : {2u, 6u, 8u, 24u, 48u, 80u, 128u}) {
      RopeTable table(Spec(style, n_rot), 4096);
      table.Ensure(4096);
      const std::vector<float> q = Gaussian(n_rot, 1);
      const std::vector<float> k = Gaussian(n_rot, 2);
      // Each pair carries a few roundings of 2^-24 of |q||k|.
      const double tolerance = 8 * 0x1p-24 * std::sqrt(Dot(q, q) * Dot(k, k));
      const double expected = Dot(Rotated(table, q, 17), Rotated(table, k, 4));
      for (const size_t shift : {1u, 100u, 4000u}) {
        const double shifted = Dot(Rotated(table, q, 17 + shift), Rotated(table, k, 4 + shift));
        CHECK(std::fabs(shifted - expected) <= tolerance);
      }
    }
  }
}

TEST_CASE("rope: the two pairings are one rotation with the elements permuted, bit for bit") {
  for (const size_t n_rot : {2u, 6u, 8u, 22u, 64u}) {
    RopeTable interleaved(Spec(RopeStyle::kInterleaved, n_rot), 100);
    RopeTable half_split(Spec(RopeStyle::kHalfSplit, n_rot), 100);
    interleaved.Ensure(100);
    half_split.Ensure(100);
    const std::vector<float> x = Gaussian(n_rot, 3);
    std::vector<float> split(n_rot);
    for (size_t i = 0; i < n_rot; ++i) split[i % 2 * (n_rot / 2) + i / 2] = x[i];
    const std::vector<float> a = Rotated(interleaved, x, 99);
    const std::vector<float> b = Rotated(half_split, split, 99);
    for (size_t i = 0; i < n_rot; ++i) CHECK(a[i] == b[i % 2 * (n_rot / 2) + i / 2]);
  }
}

TEST_CASE("rope: elements past n_rot pass through, and many heads equal one at a time") {
  constexpr size_t kHeads = 3;
  constexpr size_t kWidth = 19;
  for (const RopeStyle style : kStyles) {
    RopeTable table(Spec(style, 14), 8);
    table.Ensure(8);
    const std::vector<float> x = Gaussian(kHeads * kWidth, 4);
    std::vector<float> all = x;
    table.RotateHeads(all.data(), kHeads, kWidth, 5);
    for (size_t head = 0; head < kHeads; ++head) {
      std::vector<float> one(x.begin() + static_cast<std::ptrdiff_t>(head * kWidth),
                             x.begin() + static_cast<std::ptrdiff_t>((head + 1) * kWidth));
      const std::vector<float> before = one;
      table.Rotate(one.data(), 5);
      for (size_t i = 0; i < kWidth; ++i) {
        CHECK(all[head * kWidth + i] == one[i]);
        if (i >= 14) CHECK(one[i] == before[i]);
      }
      CHECK(one[0] != before[0]);
    }
  }
}

TEST_CASE("rope: position 0 and style none change nothing") {
  const std::vector<float> x = Gaussian(16, 5);
  for (const RopeStyle style : {RopeStyle::kInterleaved, RopeStyle::kHalfSplit, RopeStyle::kNone}) {
    RopeTable table(Spec(style, 16), 4);
    table.Ensure(4);
    CHECK(Rotated(table, x, style == RopeStyle::kNone ? 3 : 0) == x);
  }
  CHECK(RopeTable::Bytes(Spec(RopeStyle::kNone, 16), 100) == 0);
  CHECK(RopeTable::Bytes(Spec(RopeStyle::kHalfSplit, 16), 100) == 100 * 8 * 2 * sizeof(float));
}

TEST_CASE("rope: angles up to position 131071 are those of long double") {
  RopeSpec spec = Spec(RopeStyle::kInterleaved, 32);
  spec.freq_base = 500000.0;
  RopeTable table(spec, 131072);
  table.Ensure(131072);
  const long double pi = std::acos(-1.0L);
  for (const size_t pos : {1u, 4095u, 65537u, 99991u, 131071u}) {
    for (size_t i = 0; i < 16; ++i) {
      const long double theta = std::pow(500000.0L, -2.0L * static_cast<long double>(i) / 32.0L);
      const long double angle = std::fmod(static_cast<long double>(pos) * theta, 2 * pi);
      std::vector<float> x(32, 0.0f);
      x[2 * i] = 1.0f;
      table.Rotate(x.data(), pos);
      // Half a place of a float near 1, and a double's angle error of 131071 * 2^-53 * a few.
      CHECK(std::fabs(static_cast<double>(x[2 * i] - std::cos(angle))) <= 0x1p-25 + 1e-10);
      CHECK(std::fabs(static_cast<double>(x[2 * i + 1] - std::sin(angle))) <= 0x1p-25 + 1e-10);
    }
  }
}

TEST_CASE("rope: filling in steps gives the same table") {
  const RopeSpec spec = Spec(RopeStyle::kHalfSplit, 8);
  RopeTable whole(spec, 50);
  RopeTable steps(spec, 50);
  whole.Ensure(50);
  for (const size_t n : {3u, 3u, 20u, 10u, 50u}) steps.Ensure(n);
  const std::vector<float> x = Gaussian(8, 6);
  for (size_t pos = 0; pos < 50; ++pos) CHECK(Rotated(whole, x, pos) == Rotated(steps, x, pos));
}

TEST_CASE("rope: a spec that cannot be honoured is a BadOption that names the field") {
  const auto field = [](const RopeSpec& spec) -> std::string {
    try {
      const RopeTable table(spec, 4);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kBadOption ? error.details()[0].second : "another error";
    }
    return "no error";
  };
  RopeSpec spec = Spec(RopeStyle::kInterleaved, 7);
  CHECK(field(spec) == "n_rot");
  spec.n_rot = 8;
  CHECK(field(spec) == "no error");
  spec.freq_factors = {1.0f, 1.0f, 1.0f};
  CHECK(field(spec) == "freq_factors");
  spec.freq_factors = {1.0f, 0.0f, 1.0f, 1.0f};
  CHECK(field(spec) == "freq_factors");
  spec.freq_factors.clear();
  spec.freq_base = -1.0;
  CHECK(field(spec) == "freq_base");
  spec.freq_base = 1e4;
  spec.linear_scale = std::nan("");
  CHECK(field(spec) == "linear_scale");
}

}  // namespace
}  // namespace headlight
