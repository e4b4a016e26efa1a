// The table of tensor types, and the 16-bit float conversions checked over every input.
#include "base/dtype.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace headlight {
namespace {

// IEEE 754 binary16 by its definition, in double: exact.
double F16ByDefinition(uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const int fraction = h & 1023;
  const double sign = (h & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// The binary16 nearest to x, ties to the even fraction, by looking at its two neighbours.
uint16_t NearestF16(float x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(x));
  if (magnitude >= 65520.0) return sign | 0x7C00;  // 65504 + half a step rounds up to infinity
  uint16_t low = 0, high = 0x7C00;                 // low <= magnitude < high, by bisection
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (F16ByDefinition(middle) <= magnitude ? low : high) = middle;
  }
  if (high == 0x7C00) return sign | low;
  const double below = magnitude - F16ByDefinition(low);
  const double above = F16ByDefinition(high) - magnitude;
  const bool up = above < below || (above == below && low % 2 == 1);
  return static_cast<uint16_t>(sign | (up ? high : low));
}

}  // namespace

TEST_CASE("dtype: every f16 becomes the f32 of its definition, inf and NaN included") {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto h = static_cast<uint16_t>(bits);
    const double want = F16ByDefinition(h);
    const float got = F32FromF16(h);
    const bool same = std::isnan(want) ? std::isnan(got)
                                       : static_cast<double>(got) == want &&
                                             std::signbit(got) == ((h & 0x8000) != 0);
    if (!same) FAIL_CHECK("f16 bits ", bits);
  }
}

TEST_CASE("dtype: f16 to f32 and back is the identity, NaN stays NaN") {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto h = static_cast<uint16_t>(bits);
    const uint16_t back = F16FromF32(F32FromF16(h));
    const bool is_nan = (h & 0x7C00) == 0x7C00 && (h & 0x3FF) != 0;
    const bool same = is_nan ? (back & 0x7C00) == 0x7C00 && (back & 0x3FF) != 0 : back == h;
    if (!same) FAIL_CHECK("f16 bits ", bits, " came back as ", back);
  }
}

TEST_CASE("dtype: f32 rounds to the nearest f16, ties to even, at and around every midpoint") {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const double a = F16ByDefinition(static_cast<uint16_t>(bits));
    const double b = bits == 0x7BFF ? 65536.0 : F16ByDefinition(static_cast<uint16_t>(bits + 1));
    const auto middle = static_cast<float>((a + b) / 2);  // exact: one more bit than f16 has
    for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      for (const float signed_x : {x, -x}) {
        const uint16_t got = F16FromF32(signed_x);
        if (got != NearestF16(signed_x)) FAIL_CHECK("f32 ", signed_x, " became ", got);
      }
    }
  }
}

TEST_CASE("dtype: f32 beyond the range of f16 becomes infinity, below it zero with its sign") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(F16FromF32(65504.0f) == 0x7BFF);
  CHECK(F16FromF32(65519.996f) == 0x7BFF);
  CHECK(F16FromF32(65520.0f) == 0x7C00);
  CHECK(F16FromF32(-1e30f) == 0xFC00);
  CHECK(F16FromF32(inf) == 0x7C00);
  CHECK(F16FromF32(-inf) == 0xFC00);
  CHECK(F16FromF32(0x1p-25f) == 0x0000);  // a tie between 0 and the least subnormal
  CHECK(F16FromF32(std::nextafter(0x1p-25f, 1.0f)) == 0x0001);
  CHECK(F16FromF32(-1e-30f) == 0x8000);
  CHECK(F16FromF32(-0.0f) == 0x8000);
  CHECK(F16FromF32(std::numeric_limits<float>::denorm_min()) == 0x0000);
  CHECK((F16FromF32(std::numeric_limits<float>::quiet_NaN()) & 0x7FFF) > 0x7C00);
  CHECK((F16FromF32(std::bit_cast<float>(0x7F800001u)) & 0x7FFF) > 0x7C00);  // signalling
}

TEST_CASE("dtype: bf16 is the upper half of an f32") {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float x = F32FromBF16(static_cast<uint16_t>(bits));
    if (std::bit_cast<uint32_t>(x) != bits << 16) FAIL_CHECK("bf16 bits ", bits);
  }
}

TEST_CASE("dtype: types have the blocks that the format's documentation gives") {
  struct Row {
    uint32_t type;
    const char* name;
    uint32_t n_block, block_bytes;
  };
  const Row rows[] = {
      {0, "F32", 1, 4},       {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
      {3, "Q4_1", 32, 20},    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
      {8, "Q8_0", 32, 34},    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},
      {12, "Q4_K", 256, 144}, {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210},
      {20, "IQ4_NL", 32, 18}, {23, "IQ4_XS", 256, 136}, {30, "BF16", 1, 2},
      {39, "MXFP4", 32, 17},
  };
  for (const Row& row : rows) {
    CAPTURE(row.type);
    const TensorTypeTraits* traits = FindTensorType(row.type);
    REQUIRE(traits != nullptr);
    CHECK(std::string(traits->name) == row.name);
    CHECK(traits->n_block == row.n_block);
    CHECK(traits->block_bytes == row.block_bytes);
  }
  for (const uint32_t type : {4u, 5u, 31u, 32u, 33u, 36u, 1000u, 0xFFFFFFFFu}) {
    CHECK(FindTensorType(type) == nullptr);  // removed from the format, or never in it
  }
}

TEST_CASE("dtype: cache types have names and sizes") {
  CHECK(std::string(CacheTypeName(CacheType::kF32)) == "f32");
  CHECK(std::string(CacheTypeName(CacheType::kF16)) == "f16");
  CHECK(std::string(CacheTypeName(CacheType::kInt8)) == "int8");
  CHECK(CacheTypeBytes(CacheType::kInt8) == 1);
  CHECK(CacheTypeBytes(CacheType::kF32) == 4);
  CHECK(CacheTypeBytes(CacheType::kF16) == 2);
}

}  // namespace headlight
