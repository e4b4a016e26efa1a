// The integer arithmetic of the int8 cache: each product and rounding against its definition in
// scalar code, bit for bit, in every form that this module can run.
#include "attention/attention_codes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "attention/attention_case.h"
#include "kernels/random_matrix.h"
#include "kv/int8_rows.h"
#include "simd/probe.h"

namespace headlight {
namespace {

std::vector<DotForm> Forms() { return test::ExactForms(ProbeDot().form); }

// Codes -128..127 of n rows as the cache stores them, in groups of four rows.
struct StoredRows {
  size_t stride;
  AlignedArray<uint8_t> bytes;
  StoredRows(size_t n_rows, size_t d) : stride(RoundUp(d, 16)), bytes(RoundUp(n_rows, 4) * stride) {
    for (uint8_t& byte : bytes) byte = 0xA5;  // padding and dead rows: anything
  }
  void Set(Int8Placement placement, size_t row, size_t col, int code) {
    bytes[Int8At(placement, stride, row, col)] = static_cast<uint8_t>(code + kInt8Offset);
  }
};

// What a random sum meets at its extremes: all codes +-127 now and then.
int RandomCode(std::mt19937& random, int mode) {
  if (mode == 1) return 127;
  if (mode == 2) return -127;
  return static_cast<int>(random() % 255) - 127;
}

// Largest element first, so that EncodeQuery's codes are these numbers.
std::vector<float> QueryOfCodes(const std::vector<int>& codes) {
  return {codes.begin(), codes.end()};
}

void CheckScores(size_t d, size_t n_keys, size_t n_rows, int mode) {
  CAPTURE(d);
  CAPTURE(n_keys);
  CAPTURE(n_rows);
  std::mt19937 random(static_cast<uint32_t>(d * 1000 + n_keys));
  StoredRows keys(n_keys, d);
  std::vector<std::vector<int>> k(n_keys, std::vector<int>(d));
  std::vector<std::vector<int>> q(n_rows, std::vector<int>(d));
  for (size_t key = 0; key < n_keys; ++key) {
    for (size_t i = 0; i < d; ++i) {
      k[key][i] = RandomCode(random, mode);
      keys.Set(Int8Placement::kKeys, key, i, k[key][i]);
    }
  }
  for (auto& row : q) {
    for (int& code : row) code = RandomCode(random, mode == 2 ? 1 : mode);
    row[0] = 127;
  }
  const size_t stride = RoundUp(d, 8);
  for (const DotForm form : Forms()) {
    CAPTURE(std::string(DotFormName(form)));
    AlignedArray<float> x(n_rows * stride);
    std::vector<CodedRow> coded;
    for (size_t r = 0; r < n_rows; ++r) {
      const std::vector<float> query = QueryOfCodes(q[r]);
      std::copy(query.begin(), query.end(), x.data() + r * stride);
      coded.push_back(EncodeQuery(form, x.data() + r * stride, d));
      REQUIRE(coded[r].scale == 1.0f);
    }
    AlignedArray<float> out(n_rows * RoundUp(n_keys, 4));
    CodeProduct product{};
    product.blocks = keys.bytes.data();
    product.block_stride = 4 * keys.stride;
    product.step_stride = kCodeBlockBytes;
    product.n_blocks = CeilDiv(n_keys, 4);
    product.n_steps = keys.stride / 4;
    product.codes = reinterpret_cast<const uint8_t*>(x.data());
    product.codes_stride = stride * sizeof(float);
    product.rows = coded.data();
    product.out = out.data();
    product.out_stride = RoundUp(n_keys, 4);
    MultiplyCodes(form, CodeOperand::kQuery, n_rows, product);
    size_t n_wrong = 0;
    for (size_t r = 0; r < n_rows; ++r) {
      for (size_t key = 0; key < n_keys; ++key) {
        int64_t sum = 0;
        for (size_t i = 0; i < d; ++i) sum += q[r][i] * k[key][i];
        n_wrong += out[r * product.out_stride + key] != static_cast<float>(sum);
      }
    }
    CHECK(n_wrong == 0);
  }
}

TEST_CASE("attention_codes: query times keys is the exact integer sum in every form") {
  for (const size_t d : {1u, 3u, 8u, 16u, 24u, 48u, 64u, 80u, 128u, 256u}) {
    for (const size_t n_rows : {1u, 2u, 3u}) {
      for (const size_t n_keys : {1u, 4u, 7u, 9u, 16u, 22u}) CheckScores(d, n_keys, n_rows, 0);
      for (const int mode : {1, 2}) CheckScores(d, 12, n_rows, mode);  // all at the extremes
    }
  }
}

// weights[n_rows][n_keys] as codes of 14 bits against values [n_keys, d].
void CheckSums(size_t d, size_t n_keys, size_t n_rows, int mode) {
  CAPTURE(d);
  CAPTURE(n_keys);
  CAPTURE(n_rows);
  std::mt19937 random(static_cast<uint32_t>(d * 1000 + n_keys));
  StoredRows values(n_keys, d);
  std::vector<std::vector<int>> v(n_keys, std::vector<int>(d));
  std::vector<std::vector<int>> w(n_rows, std::vector<int>(n_keys));
  for (size_t key = 0; key < n_keys; ++key) {
    for (size_t i = 0; i < d; ++i) {
      v[key][i] = RandomCode(random, mode);
      values.Set(Int8Placement::kValues, key, i, v[key][i]);
    }
  }
  for (auto& row : w) {
    for (int& code : row) code = mode == 0 ? static_cast<int>(random() % 16384) : 16383;
    row[0] = 16383;
  }
  const size_t n_padded = RoundUp(n_keys, 4);
  const std::vector<float> ones(n_padded, 1.0f);
  for (const DotForm form : Forms()) {
    CAPTURE(std::string(DotFormName(form)));
    AlignedArray<float> x(n_rows * n_padded);
    std::vector<CodedRow> coded;
    for (size_t r = 0; r < n_rows; ++r) {
      std::copy(w[r].begin(), w[r].end(), x.data() + r * n_padded);
      coded.push_back(EncodeWeights(form, ones.data(), x.data() + r * n_padded, n_padded / 4));
      REQUIRE(coded[r].scale == 1.0f);
    }
    const size_t out_stride = RoundUp(d, 4);
    AlignedArray<float> out(n_rows * out_stride);
    CodeProduct product{};
    product.blocks = values.bytes.data();
    product.block_stride = kCodeBlockBytes;
    product.step_stride = 4 * values.stride;
    product.n_blocks = CeilDiv(d, 4);
    product.n_steps = n_padded / 4;
    product.codes = reinterpret_cast<const uint8_t*>(x.data());
    product.codes_stride = n_padded * sizeof(float);
    product.rows = coded.data();
    product.out = out.data();
    product.out_stride = out_stride;
    MultiplyCodes(form, CodeOperand::kWeights, n_rows, product);
    size_t n_wrong = 0;
    for (size_t r = 0; r < n_rows; ++r) {
      for (size_t i = 0; i < d; ++i) {
        int64_t sum = 0;
        for (size_t key = 0; key < n_keys; ++key) sum += w[r][key] * v[key][i];
        n_wrong += out[r * out_stride + i] != static_cast<float>(sum);
      }
    }
    CHECK(n_wrong == 0);
  }
}

TEST_CASE("attention_codes: weights times values is the exact integer sum in every form") {
  for (const size_t d : {1u, 3u, 8u, 16u, 24u, 48u, 64u, 80u, 128u, 256u}) {
    for (const size_t n_rows : {1u, 2u, 3u}) {
      for (const size_t n_keys : {1u, 4u, 7u, 9u, 16u, 22u}) CheckSums(d, n_keys, n_rows, 0);
      for (const int mode : {1, 2}) CheckSums(d, 256, n_rows, mode);  // a chunk of extremes
    }
  }
}

TEST_CASE("attention_codes: queries are rounded to 127ths of their largest element") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const size_t d : {1u, 3u, 17u, 64u}) {
    std::vector<float> q(d);
    for (float& x : q) x = normal(random);
    AlignedArray<float> x(RoundUp(d, 8));
    std::copy(q.begin(), q.end(), x.data());
    const CodedRow row = EncodeQuery(DotForm::kWide, x.data(), d);
    float max = 0.0f;
    for (const float v : q) max = std::max(max, std::fabs(v));
    CHECK(row.scale == max / 127.0f);
    const int16_t* codes = reinterpret_cast<const int16_t*>(x.data());
    const size_t places[] = {0, 2, 1, 3};  // columns 0, 2, 1, 3 of each four
    int32_t sum = 0;
    for (size_t i = 0; i < RoundUp(d, 16); ++i) {
      const int expected = i < d ? static_cast<int>(std::nearbyint(q[i] * (127.0f / max))) : 0;
      CHECK(codes[i / 4 * 4 + places[i % 4]] == expected);
      sum += expected;
    }
    CHECK(row.sum == sum);
  }
}

TEST_CASE("attention_codes: zero, tiny, infinite and NaN rows have finite codes and scales") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> rows[] = {{0, 0, 0, 0},    {1e-38f, -1e-38f, 0, 1e-40f},
                                     {kInf, 1, 2, 3}, {kNan, kNan, kNan, kNan},
                                     {kNan, 5, 0, 1}, {-kInf, kInf, kNan, 3e38f}};
  for (const std::vector<float>& values : rows) {
    for (const DotForm form : Forms()) {
      AlignedArray<float> x(8);
      std::copy(values.begin(), values.end(), x.data());
      const CodedRow row = EncodeQuery(form, x.data(), 4);
      CHECK(std::isfinite(row.scale));
      CHECK(std::abs(row.sum) <= 4 * 127);
    }
  }
  AlignedArray<float> weights(4);
  weights[1] = 1.0f;
  const std::vector<float> zeros(4, 0.0f);
  const CodedRow row = EncodeWeights(DotForm::kWide, zeros.data(), weights.data(), 1);
  CHECK(row.scale == 0.0f);
  CHECK(row.sum == 0);
}

TEST_CASE("attention_codes: of weights that are no numbers the sum stays within that of numbers") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> ones(8, 1.0f);
  for (const std::vector<float>& values : {std::vector{kInf, 1.0f}, {kNan, kNan}, {1.0f, kNan}}) {
    for (const DotForm form : Forms()) {
      AlignedArray<float> weights(16);  // two codes a weight
      for (size_t i = 0; i < 8; ++i) weights[i] = values[i % 2];
      const CodedRow row = EncodeWeights(form, ones.data(), weights.data(), 2);
      CHECK(std::abs(row.sum) <= 8 * 16383);
    }
  }
}

constexpr KvCacheFormat kInt8Cache{CacheType::kInt8, CacheType::kInt8};

TEST_CASE("attention: every dot form gives the same bits over an int8 cache") {
  for (const HeadLayout& layout :
       {HeadLayout{6, 2, 24, 40}, HeadLayout{16, 2, 48, 64}, HeadLayout{9, 3, 64, 64},
        HeadLayout{2, 1, 256, 8}, HeadLayout{5, 1, 80, 3}}) {
    AttentionCase test;
    test.layout = layout;
    test.n_tokens = 21;
    test.n_kv = 300;
    test.pos0 = 279;
    test.format = kInt8Cache;
    const std::vector<float> wide = AttentionProblem(test).Run(AttentionKernel::kTiled);
    for (const DotForm form : Forms()) {
      CAPTURE(std::string(DotFormName(form)));
      test.dot_form = form;
      AttentionProblem problem(test);
      CHECK(problem.Run(AttentionKernel::kTiled) == wide);
      const std::vector<float> last = problem.RunTokens(AttentionKernel::kDecode, 20, 1, 300);
      CHECK(std::equal(last.begin(), last.end(), wide.end() - static_cast<ptrdiff_t>(last.size())));
    }
  }
}

TEST_CASE("attention: an int8 cache is near the exact attention of the same rows") {
  // Rounding to 127ths of the largest of d elements: a relative error of about 1 % a score.
  AttentionCase test;
  test.layout = {8, 2, 48, 64};
  test.n_tokens = 9;
  test.n_kv = 400;
  test.pos0 = 391;
  const std::vector<float> exact = AttentionProblem(test).Run(AttentionKernel::kReference);
  test.format = kInt8Cache;
  AttentionProblem problem(test);
  double square = 0.0;
  double error = 0.0;
  const std::vector<float> rounded = problem.Run(AttentionKernel::kTiled);
  for (size_t i = 0; i < exact.size(); ++i) {
    square += std::pow(static_cast<double>(exact[i]), 2.0);
    error += std::pow(static_cast<double>(rounded[i]) - static_cast<double>(exact[i]), 2.0);
  }
  CHECK(std::sqrt(error / square) <= 0.02);
}

TEST_CASE("attention: rows of an int8 group that were written again after a roll back are used") {
  AttentionCase test;
  test.layout = {4, 2, 24, 16};
  test.n_kv = 10;
  test.pos0 = 9;
  test.format = kInt8Cache;
  AttentionProblem straight(test, 1);
  const std::vector<float> expected = straight.Run(AttentionKernel::kDecode);
  AttentionProblem other(test, 2);  // other rows everywhere
  std::copy(straight.q().begin(), straight.q().end(), other.q().begin());
  // Rolled back to 0, 5 (the middle of a group) and 8 rows in turn, and written again each time.
  for (const size_t first : {8u, 5u, 0u}) {
    for (size_t row = first; row < 10; ++row) straight.CopyRow(row, other);
    if (first == 0) CHECK(other.Run(AttentionKernel::kDecode) == expected);
  }
}

}  // namespace
}  // namespace headlight
