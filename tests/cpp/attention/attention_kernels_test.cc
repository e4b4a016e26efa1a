// The fast kernels against the reference, over the table of shapes.
#include <doctest/doctest.h>

#include "allocation_count.h"
#include "attention/attention_case.h"

namespace headlight {
namespace {

constexpr KvCacheFormat kF32Cache{CacheType::kF32, CacheType::kF32};
constexpr KvCacheFormat kF16Cache{CacheType::kF16, CacheType::kF16};
constexpr KvCacheFormat kMixedCache{CacheType::kF16, CacheType::kF32};
constexpr KvCacheFormat kInt8Cache{CacheType::kInt8, CacheType::kInt8};
constexpr KvCacheFormat kInt8Keys{CacheType::kInt8, CacheType::kF16};
constexpr KvCacheFormat kInt8Values{CacheType::kF32, CacheType::kInt8};

struct HeadCounts {
  size_t n_q_heads;
  size_t n_kv_heads;
};
constexpr HeadCounts kHeadCounts[] = {{1, 1}, {4, 1}, {8, 2}, {6, 3}, {16, 2}};

struct Widths {
  size_t d_qk;
  size_t d_v;
};
// Each width occurs as d_qk and as d_v, mostly with d_v != d_qk.
constexpr Widths kWidths[] = {{1, 3},   {3, 1},   {8, 16},  {16, 8},   {24, 32},
                              {32, 24}, {48, 64}, {64, 48}, {80, 128}, {128, 80},
                              {64, 64}, {1, 1},   {3, 80}};

// Around the edges of key groups (3, 4 and 8), key tiles (32) and chunks (256).
constexpr size_t kKeyCounts[] = {1,  2,  3,  4,   5,   7,   8,   9,   31,  32, 33,
                                 63, 64, 65, 127, 128, 129, 255, 256, 257, 513};

void CheckAgainstReference(const AttentionCase& test, AttentionKernel kernel) {
  CAPTURE(test.Name());
  AttentionProblem problem(test);
  const std::vector<float> expected = problem.Run(AttentionKernel::kReference);
  const std::vector<float> actual = problem.Run(kernel);
  CHECK(MaxDifference(actual, expected) <= problem.Tolerance());
  CHECK(problem.gap_untouched());
}

// The variants of masks and formats that each shape meets, with queries at the end of the n_kv
// rows.
std::vector<AttentionCase> Variants(AttentionCase test) {
  std::vector<AttentionCase> cases;
  test.pos0 = test.n_kv - std::min(test.n_kv, test.n_tokens);
  cases.push_back(test);
  AttentionCase variant = test;
  variant.format = kF16Cache;
  cases.push_back(variant);
  variant.window = 5;
  variant.softcap = 2.0f;
  cases.push_back(variant);
  variant = test;
  variant.format = kMixedCache;
  variant.window = 100;
  cases.push_back(variant);
  variant = test;
  variant.causal = false;
  cases.push_back(variant);
  for (const KvCacheFormat& format : {kInt8Cache, kInt8Keys, kInt8Values}) {
    variant = test;
    variant.format = format;
    cases.push_back(variant);
  }
  variant.format = kInt8Cache;
  variant.window = 37;
  variant.softcap = 2.0f;
  cases.push_back(variant);
  return cases;
}

TEST_CASE("attention_tiled: every head layout and width equals the reference") {
  for (const HeadCounts& heads : kHeadCounts) {
    for (const Widths& widths : kWidths) {
      AttentionCase test;
      test.layout = {heads.n_q_heads, heads.n_kv_heads, widths.d_qk, widths.d_v};
      test.n_tokens = 13;
      test.n_kv = 75;
      for (const AttentionCase& variant : Variants(test)) {
        CheckAgainstReference(variant, AttentionKernel::kTiled);
      }
    }
  }
}

TEST_CASE("attention_decode: every head layout and width equals the reference") {
  for (const HeadCounts& heads : kHeadCounts) {
    for (const Widths& widths : kWidths) {
      AttentionCase test;
      test.layout = {heads.n_q_heads, heads.n_kv_heads, widths.d_qk, widths.d_v};
      test.n_kv = 261;
      for (const AttentionCase& variant : Variants(test)) {
        CheckAgainstReference(variant, AttentionKernel::kDecode);
      }
    }
  }
}

TEST_CASE("attention_decode: query heads per KV head from 1 to 9 equal the reference") {
  for (size_t n_q_heads = 1; n_q_heads <= 9; ++n_q_heads) {
    AttentionCase test;
    test.layout = {n_q_heads, 1, 24, 40};
    test.n_kv = 37;
    for (const AttentionCase& variant : Variants(test))
      CheckAgainstReference(variant, AttentionKernel::kDecode);
  }
}

TEST_CASE(
    "attention: the number of keys around every edge of groups, tiles and chunks equals the "
    "reference") {
  for (const size_t n_kv : kKeyCounts) {
    AttentionCase test;
    test.layout = {6, 3, 24, 32};
    test.n_kv = n_kv;
    for (const AttentionCase& variant : Variants(test)) {
      CheckAgainstReference(variant, AttentionKernel::kDecode);
      CheckAgainstReference(variant, AttentionKernel::kTiled);
    }
    test.n_tokens = n_kv;  // a whole prompt
    for (const AttentionCase& variant : Variants(test))
      CheckAgainstReference(variant, AttentionKernel::kTiled);
  }
}

TEST_CASE(
    "attention_tiled: the number of tokens around every edge of blocks equals the "
    "reference") {
  for (const size_t n_tokens : {1u, 2u, 3u, 4u, 7u, 19u, 20u, 21u, 39u, 40u, 41u, 130u}) {
    AttentionCase test;
    test.layout = {6, 2, 16, 24};
    test.n_tokens = n_tokens;
    test.n_kv = n_tokens + 70;  // continues a prefill of 70 tokens
    for (const AttentionCase& variant : Variants(test))
      CheckAgainstReference(variant, AttentionKernel::kTiled);
  }
}

TEST_CASE("attention: windows around every edge of tiles and chunks equal the reference") {
  for (const size_t window : {1u, 2u, 63u, 64u, 65u, 200u, 255u, 256u, 257u, 300u, 1000u}) {
    AttentionCase test;
    test.layout = {4, 2, 16, 8};
    test.n_kv = 300;
    test.window = window;
    test.pos0 = 299;
    CheckAgainstReference(test, AttentionKernel::kDecode);
    test.n_tokens = 90;
    test.pos0 = 210;
    CheckAgainstReference(test, AttentionKernel::kTiled);
    test.causal = false;
    CheckAgainstReference(test, AttentionKernel::kTiled);
  }
}

TEST_CASE("attention: a window of W keys attends exactly W") {
  // d_qk = 1 and q = 0 give equal weights, so the output is the mean of the last W values.
  AttentionCase test;
  test.layout = {1, 1, 1, 1};
  test.n_kv = 20;
  test.pos0 = 19;
  test.window = 4;
  AttentionProblem problem(test);
  problem.q()[0] = 0.0f;
  for (size_t row = 0; row < 20; ++row) {
    const float k = 1.0f;
    const float v = row >= 16 ? 1.0f : 1e6f;
    problem.kv().WriteRow(row, &k, &v);
  }
  for (const AttentionKernel kernel :
       {AttentionKernel::kReference, AttentionKernel::kTiled, AttentionKernel::kDecode}) {
    CHECK(problem.Run(kernel)[0] == 1.0f);
  }
}

TEST_CASE("attention: a fully masked row gives zeros") {
  AttentionCase test;
  test.layout = {4, 2, 8, 3};
  test.n_kv = 10;
  test.window = 3;
  test.pos0 = 13;  // no cache row is within the window
  for (const KvCacheFormat& format : {kF32Cache, kF16Cache, kInt8Cache}) {
    test.format = format;
    AttentionProblem problem(test);
    for (const AttentionKernel kernel :
         {AttentionKernel::kReference, AttentionKernel::kTiled, AttentionKernel::kDecode}) {
      CHECK(problem.Run(kernel) == std::vector<float>(12, 0.0f));
    }
  }
  // Within one block of the tiled kernel some rows see keys and later ones do not.
  test.n_tokens = 20;
  test.pos0 = 0;
  CheckAgainstReference(test, AttentionKernel::kTiled);
  AttentionProblem problem(test);
  const std::vector<float> out = problem.Run(AttentionKernel::kTiled);
  CHECK(std::all_of(out.begin() + 12 * 12, out.end(), [](float x) { return x == 0.0f; }));
  CHECK(out[11 * 12] != 0.0f);
}

TEST_CASE("attention: no live row at all gives zeros") {
  AttentionCase test;
  test.layout = {2, 1, 8, 8};
  test.n_kv = 0;
  test.causal = false;
  AttentionProblem problem(test);
  for (const AttentionKernel kernel :
       {AttentionKernel::kReference, AttentionKernel::kTiled, AttentionKernel::kDecode}) {
    CHECK(problem.Run(kernel) == std::vector<float>(16, 0.0f));
  }
}

TEST_CASE("attention: random scores of ten thousand equal the reference") {
  for (const float softcap : {0.0f, 50.0f}) {
    AttentionCase test;
    test.layout = {4, 2, 64, 16};
    test.n_tokens = 40;
    test.n_kv = 140;
    test.pos0 = 100;
    test.softcap = softcap;
    test.magnitude = 2500.0f;
    CheckAgainstReference(test, AttentionKernel::kTiled);
    test.n_tokens = 1;
    test.pos0 = 139;
    CheckAgainstReference(test, AttentionKernel::kDecode);
  }
}

TEST_CASE("attention: scores of exactly plus and minus ten thousand give exact weights") {
  // Keys of +-1 and a query of 1e4: the weights are 1 / (number of positive keys) and 0, whatever
  // their order.
  AttentionCase test;
  test.layout = {1, 1, 1, 1};
  test.n_tokens = 2;
  test.n_kv = 600;
  test.pos0 = 598;
  test.causal = false;
  AttentionProblem problem(test);
  for (size_t row = 0; row < 600; ++row) {
    const float k = row % 150 == 149 ? 1.0f : -1.0f;
    const float v = k > 0.0f ? static_cast<float>(row) : 1e30f;
    problem.kv().WriteRow(row, &k, &v);
  }
  problem.q()[0] = 1e4f;                    // attends rows 149, 299, 449, 599
  problem.q()[problem.q_stride()] = -1e4f;  // attends the others
  for (const AttentionKernel kernel : {AttentionKernel::kReference, AttentionKernel::kTiled}) {
    const std::vector<float> out = problem.Run(kernel);
    CHECK(out[0] == 374.0f);
    CHECK(out[1] == doctest::Approx(1e30));
  }
  CHECK(problem.RunTokens(AttentionKernel::kDecode, 0, 1, 600)[0] == 374.0f);
  CHECK(problem.RunTokens(AttentionKernel::kDecode, 1, 1, 600)[0] == doctest::Approx(1e30));
  // Rows 0..148 are all negative keys, whose scores are all -1e4.
  for (const AttentionKernel kernel :
       {AttentionKernel::kReference, AttentionKernel::kTiled, AttentionKernel::kDecode}) {
    CHECK(problem.RunTokens(kernel, 0, 1, 149)[0] == doctest::Approx(1e30));
  }
}

TEST_CASE("attention_decode: one query at a time equals the tiled kernel within 1e-5") {
  for (const KvCacheFormat& format : {kF32Cache, kF16Cache, kInt8Cache}) {
    AttentionCase test;
    test.layout = {9, 3, 64, 64};
    test.n_tokens = 300;
    test.n_kv = 300;
    test.format = format;
    AttentionProblem problem(test);
    const std::vector<float> tiled = problem.Run(AttentionKernel::kTiled);
    std::vector<float> stepped;
    for (size_t t = 0; t < test.n_tokens; ++t) {
      const std::vector<float> row = problem.RunTokens(AttentionKernel::kDecode, t, 1, t + 1);
      stepped.insert(stepped.end(), row.begin(), row.end());
    }
    double square = 0.0;
    for (const float x : tiled) square += static_cast<double>(x) * x;
    const double rms = std::sqrt(square / static_cast<double>(tiled.size()));
    CHECK(MaxDifference(stepped, tiled) <= 1e-5 * rms);
  }
}

TEST_CASE("attention: the thread count changes no bit") {
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
  MESSAGE("SKIPPED: this build has one thread");
#else
  AttentionCase test;
  test.layout = {6, 3, 24, 40};
  test.n_tokens = 100;
  test.n_kv = 4000;
  test.pos0 = 3900;
  for (const KvCacheFormat& format : {kF32Cache, kF16Cache, kInt8Cache}) {
    test.format = format;
    AttentionProblem problem(test);
    const std::vector<float> tiled = problem.Run(AttentionKernel::kTiled, 1);
    const std::vector<float> decode = problem.RunTokens(AttentionKernel::kDecode, 99, 1, 4000, 1);
    for (const size_t n_threads : {2u, 3u}) {
      CHECK(problem.Run(AttentionKernel::kTiled, n_threads) == tiled);
      for (int round = 0; round < 10; ++round) {  // a race needs its chance
        CHECK(problem.RunTokens(AttentionKernel::kDecode, 99, 1, 4000, n_threads) == decode);
      }
    }
  }
#endif
}

TEST_CASE(
    "attention_tiled: appending tokens or splitting the prompt changes no bit of earlier outputs") {
  for (const size_t window : {0u, 37u}) {
    AttentionCase test;
    test.layout = {6, 2, 16, 24};
    test.n_tokens = 150;
    test.n_kv = 150;
    test.window = window;
    test.format = kF16Cache;
    AttentionProblem problem(test);
    const std::vector<float> whole = problem.Run(AttentionKernel::kTiled);
    for (const size_t n_prefix : {1u, 5u, 63u, 64u, 65u, 149u}) {
      CAPTURE(n_prefix);
      std::vector<float> parts = problem.RunTokens(AttentionKernel::kTiled, 0, n_prefix, n_prefix);
      const std::vector<float> prefix(whole.begin(),
                                      whole.begin() + static_cast<std::ptrdiff_t>(parts.size()));
      CHECK(parts == prefix);
      const std::vector<float> rest =
          problem.RunTokens(AttentionKernel::kTiled, n_prefix, 150 - n_prefix, 150);
      parts.insert(parts.end(), rest.begin(), rest.end());
      CHECK(parts == whole);
    }
  }
}

TEST_CASE("attention: Attend takes one query by decode and several by tiles") {
  AttentionCase test;
  test.layout = {4, 2, 16, 16};
  test.n_tokens = 2;
  test.n_kv = 30;
  test.pos0 = 28;
  AttentionProblem problem(test);
  CHECK(problem.Run(AttentionKernel::kAttend) == problem.Run(AttentionKernel::kTiled));
  CHECK(problem.RunTokens(AttentionKernel::kAttend, 1, 1, 30) ==
        problem.RunTokens(AttentionKernel::kDecode, 1, 1, 30));
}

TEST_CASE("attention: the kernels allocate nothing") {
  AttentionCase test;
  test.layout = {6, 2, 24, 40};
  test.n_kv = 600;
  for (const KvCacheFormat& format : {kF32Cache, kF16Cache, kInt8Cache}) {
    KvLayer kv(test.layout, format, test.n_kv);
    const std::vector<float> q(20 * test.layout.q_width(), 0.5f);
    std::vector<float> out(20 * test.layout.out_width());
    AttentionWorkspace workspace(test.layout, test.n_kv, 1);
    ThreadPool pool(1);
    AttentionSpec spec;
    spec.layout = test.layout;
    spec.scale = 0.2f;
    spec.softcap = 5.0f;
    AttentionArgs args;
    args.q = q.data();
    args.q_stride = test.layout.q_width();
    args.n_tokens = 20;
    args.pos0 = 580;
    args.kv = &kv;
    args.n_kv = test.n_kv;
    args.out = out.data();
    args.out_stride = test.layout.out_width();
    const size_t before = AllocationCount();
    AttentionTiled(spec, args, workspace, pool);
    AttentionDecode(spec, args, workspace, pool);
    kv.WriteRow(0, q.data(), q.data());
    CHECK(AllocationCount() == before);
  }
}

}  // namespace
}  // namespace headlight
