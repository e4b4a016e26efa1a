// The int8 format of the cache: codes and scales as kv/int8_rows.h defines them, wherever a row
// lies in its group.
#include "kv/int8_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "base/dtype.h"
#include "kv/kv_cache.h"

namespace headlight {
namespace {

constexpr KvCacheFormat kInt8Cache{CacheType::kInt8, CacheType::kInt8};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The definition. Returns the scale.
float ExpectedCodes(const std::vector<float>& x, std::vector<int>& codes) {
  float max = 0.0f;
  for (const float v : x) {
    if (!std::isnan(v)) max = std::max(max, std::min(std::fabs(v), 3.4028235e38f));
  }
  const float scale = F32FromF16(F16FromF32(std::min(max / 127.0f, 65504.0f)));
  codes.clear();
  for (const float v : x) {
    const float scaled = scale == 0.0f || std::isnan(v) ? 0.0f : v * (1.0f / scale);
    codes.push_back(static_cast<int>(std::nearbyint(std::clamp(scaled, -127.0f, 127.0f))));
  }
  return scale;
}

// Whether the stored row is what the definition says, as keys and as values.
bool RowIsRight(const std::vector<float>& x, size_t row, size_t n_ctx) {
  const size_t d = x.size();
  KvLayer kv({2, 2, d, d}, kInt8Cache, n_ctx);
  std::vector<float> both(2 * d, 1.0f);
  std::copy(x.begin(), x.end(), both.begin() + static_cast<std::ptrdiff_t>(d));  // head 1
  kv.WriteRow(row, both.data(), both.data());
  std::vector<int> codes;
  const float scale = ExpectedCodes(x, codes);
  const KvHeadView head = kv.head(1);
  bool is_right =
      F32FromF16(head.k_scales[row]) == scale && head.k_scales[row] == head.v_scales[row];
  for (size_t i = 0; i < d; ++i) {
    const float expected = static_cast<float>(codes[i]) * scale;
    is_right &= head.KeyAt(row, i) == expected && head.ValueAt(row, i) == expected;
  }
  return is_right;
}

TEST_CASE("int8 rows: codes are the nearest 127ths of the largest element, for every width") {
  std::mt19937 random(3);
  for (const size_t d : {1u, 2u, 3u, 5u, 8u, 24u, 48u, 64u, 80u, 255u, 256u}) {
    for (const float magnitude : {1.0f, 1e-4f, 1e-7f, 300.0f, 1e6f}) {
      std::normal_distribution<float> normal(0.0f, magnitude);
      std::vector<float> x(d);
      for (float& v : x) v = normal(random);
      for (const size_t row : {0u, 1u, 2u, 3u, 6u}) {
        CAPTURE(d);
        CAPTURE(magnitude);
        CHECK(RowIsRight(x, row, 7));
      }
    }
  }
}

TEST_CASE("int8 rows: zeros, halves, the largest and numbers that are none") {
  const std::vector<float> rows[] = {
      {0, 0, 0, 0},
      {127, 0.5f, 1.5f, -2.5f, -126.5f},  // scale 1: ties go to even
      {3e38f, -3e38f, 1, 8e6f},           // beyond 127 * 65504 limited
      {kInf, -kInf, 1},
      {kNan, 1, -1},
      {kNan, kNan},
      {1e-9f, -1e-9f},   // the scale rounds to zero
      {5e-6f, -7.6e-6f}  // or to a subnormal: codes are limited
  };
  for (const std::vector<float>& x : rows) CHECK(RowIsRight(x, 2, 4));
}

TEST_CASE("int8 rows: an element is off by at most half a step") {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> x(64);
  for (float& v : x) v = normal(random);
  KvLayer kv({1, 1, 64, 64}, kInt8Cache, 4);
  kv.WriteRow(1, x.data(), x.data());
  const KvHeadView head = kv.head(0);
  const float half_step = 0.5f * F32FromF16(head.k_scales[1]);
  for (size_t i = 0; i < 64; ++i) CHECK(std::fabs(head.KeyAt(1, i) - x[i]) <= 1.001f * half_step);
}

TEST_CASE("int8 rows: rows of a group do not touch each other, in any order of writing") {
  const size_t d = 20;
  KvLayer kv({1, 1, d, d}, kInt8Cache, 9);
  const auto row_of = [&](size_t row, int round) {
    std::vector<float> x(d);
    for (size_t i = 0; i < d; ++i)
      x[i] = static_cast<float>((row * 31 + i * 7) % 50) - 25.0f + 3.0f * static_cast<float>(round);
    return x;
  };
  const auto holds = [&](size_t row, int round) {
    std::vector<int> codes;
    const std::vector<float> x = row_of(row, round);
    const float scale = ExpectedCodes(x, codes);
    bool is_right = true;
    for (size_t i = 0; i < d; ++i)
      is_right &= kv.head(0).KeyAt(row, i) == static_cast<float>(codes[i]) * scale &&
                  kv.head(0).ValueAt(row, i) == static_cast<float>(codes[i]) * scale;
    return is_right;
  };
  for (const size_t row : {8u, 0u, 3u, 1u, 7u, 2u, 4u, 6u, 5u}) {
    kv.WriteRow(row, row_of(row, 0).data(), row_of(row, 0).data());
  }
  for (size_t row = 0; row < 9; ++row) CHECK(holds(row, 0));
  for (size_t row = 5; row < 9; ++row)
    kv.WriteRow(row, row_of(row, 1).data(), row_of(row, 1).data());
  for (size_t row = 0; row < 9; ++row) CHECK(holds(row, row < 5 ? 0 : 1));
}

TEST_CASE("int8 rows: every column of every row has a byte of its own, four keys a vector") {
  for (const Int8Placement placement : {Int8Placement::kKeys, Int8Placement::kValues}) {
    std::set<size_t> bytes;
    for (size_t row = 0; row < 8; ++row) {
      for (size_t col = 0; col < 48; ++col) bytes.insert(Int8At(placement, 48, row, col));
    }
    CHECK(bytes.size() == 8 * 48);
    CHECK(*bytes.rbegin() == 8 * 48 - 1);
  }
  // A 48-wide key: its columns lie in 12 vectors that it shares with three others, three loads
  // each.
  CHECK(Int8At(Int8Placement::kKeys, 48, 5, 0) == 4 * 48 + 4);
  CHECK(Int8At(Int8Placement::kKeys, 48, 5, 7) == 4 * 48 + 16 + 4 + 3);
  CHECK(Int8At(Int8Placement::kValues, 48, 5, 7) == 4 * 48 + 28 + 1);
}

}  // namespace
}  // namespace headlight
