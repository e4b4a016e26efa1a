#include "sample/random.h"

#include <doctest/doctest.h>

#include <cstdint>

namespace headlight {
namespace {

TEST_CASE("random: the numbers of a seed are those of xoshiro256++ filled by splitmix64") {
  // Computed with an independent implementation that reproduces the authors' vectors for the state
  // {1, 2, 3, 4}.
  struct Case {
    uint64_t seed;
    uint64_t expected[4];
  };
  const Case cases[] = {
      {0, {0x53175d61490b23dfu, 0x61da6f3dc380d507u, 0x5c0fdf91ec9a7bfcu, 0x02eebf8c3bbe5e1au}},
      {42, {0xd0764d4f4476689fu, 0x519e4174576f3791u, 0xfbe07cfb0c24ed8cu, 0xb37d9f600cd835b8u}},
      {~uint64_t{0},
       {0x56ccf8ce948e27b2u, 0xe68588432e5a5b90u, 0xe3e9b5a48119ca8bu, 0x460f19495532ae73u}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.seed);
    Random random(c.seed);
    for (const uint64_t expected : c.expected) CHECK(random.Next() == expected);
  }
}

TEST_CASE("random: uniform numbers are the top 53 bits, at least 0 and below 1") {
  Random bits(7);
  Random uniform(7);
  double sum = 0.0;
  constexpr int kDraws = 10000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = uniform.NextUniform();
    CHECK(u * 0x1p53 == static_cast<double>(bits.Next() >> 11));
    CHECK(u >= 0.0);
    CHECK(u < 1.0);
    sum += u;
  }
  // The mean of n uniforms has a standard deviation of 1 / sqrt(12 n) = 0.0029; five of them.
  CHECK(sum / kDraws == doctest::Approx(0.5).epsilon(0.03));
}

}  // namespace
}  // namespace headlight
