// The two fast kernels add in the same order: a row is the same bit for bit whichever computed it.
// Prompts then equal the same tokens one by one, which 8-bit activations need (attention.h).
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "attention/attention_case.h"

namespace headlight {
namespace {

// Whether the last n_tokens of a context of n_kv keys come out the same from one call of the tiled
// kernel and from a call of the decode kernel each.
bool SameBits(AttentionCase test) {
  test.pos0 = test.n_kv - test.n_tokens;
  AttentionProblem problem(test);
  const std::vector<float> tiled = problem.Run(AttentionKernel::kTiled);
  const size_t width = test.layout.out_width();
  for (size_t token = 0; token < test.n_tokens; ++token) {
    const std::vector<float> one = problem.RunTokens(
        AttentionKernel::kDecode, token, 1, test.causal ? test.pos0 + token + 1 : test.n_kv);
    if (std::memcmp(one.data(), tiled.data() + token * width, width * sizeof(float)) != 0)
      return false;
  }
  return true;
}

constexpr KvCacheFormat kFormats[] = {{CacheType::kF32, CacheType::kF32},
                                      {CacheType::kF16, CacheType::kF16},
                                      {CacheType::kInt8, CacheType::kInt8},
                                      {CacheType::kInt8, CacheType::kF32}};

TEST_CASE("attention: decode and tiles give the same bits in every head layout and cache format") {
  const HeadLayout layouts[] = {{1, 1, 1, 1},     {4, 1, 3, 8},   {8, 2, 24, 32}, {6, 3, 16, 5},
                                {16, 2, 48, 64},  {5, 1, 80, 16}, {9, 3, 64, 64}, {7, 1, 2, 128},
                                {12, 12, 64, 64}, {2, 2, 128, 7}, {3, 1, 5, 3}};
  for (const HeadLayout& layout : layouts) {
    for (const KvCacheFormat format : kFormats) {
      AttentionCase test;
      test.layout = layout;
      test.format = format;
      test.n_tokens = 19;
      test.n_kv = 301;
      CAPTURE(test.Name());
      CHECK(SameBits(test));
    }
  }
}

TEST_CASE("attention: decode and tiles give the same bits around every edge of groups and chunks") {
  for (const size_t n_kv :
       {1u, 2u, 3u, 4u, 5u, 7u, 8u, 63u, 64u, 65u, 255u, 256u, 257u, 258u, 511u, 513u, 777u}) {
    for (const bool causal : {true, false}) {
      for (const KvCacheFormat format : kFormats) {
        AttentionCase test;
        test.format = format;
        test.layout = {6, 2, 24, 16};
        test.n_kv = n_kv;
        test.n_tokens = std::min<size_t>(n_kv, 70);
        test.causal = causal;
        test.magnitude = 3.0f;
        CAPTURE(test.Name());
        CHECK(SameBits(test));
      }
    }
  }
}

TEST_CASE("attention: decode and tiles give the same bits under windows and softcaps") {
  for (const size_t window : {1u, 2u, 3u, 5u, 30u, 64u, 100u, 255u, 256u, 257u, 400u}) {
    for (const KvCacheFormat format : kFormats) {
      for (const float softcap : {0.0f, 2.0f}) {
        AttentionCase test;
        test.format = format;
        test.layout = {4, 2, 32, 24};
        test.n_kv = 600;
        test.n_tokens = 90;
        test.window = window;
        test.softcap = softcap;
        test.magnitude = 2.0f;
        CAPTURE(test.Name());
        CHECK(SameBits(test));
      }
    }
  }
}

}  // namespace
}  // namespace headlight
