// What is added to scores, and who is admitted beyond causal masks and windows: ALiBi, masks,
// padding, prefix-LM, learned sinks, by every kernel.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "attention/attention_case.h"
#include "base/error.h"

namespace headlight {
namespace {

constexpr KvCacheFormat kFormats[] = {{CacheType::kF32, CacheType::kF32},
                                      {CacheType::kF16, CacheType::kF16},
                                      {CacheType::kInt8, CacheType::kInt8}};

// Each alone, and all together with a window and a softcap.
std::vector<AttentionCase> Variants(const AttentionCase& test) {
  std::vector<AttentionCase> cases(10, test);
  cases[0].alibi = true;
  cases[1].sinks = true;
  cases[2].mask = 1;
  cases[3].mask = 2;
  cases[4].n_prefix = test.pos0 + test.n_tokens / 2 + 1;
  cases[5].alibi = true;
  cases[5].causal = false;
  const size_t windows[] = {5, 61, 200};
  const size_t sinks[] = {4, 3, 270};  // the last one reaches into the second chunk
  for (size_t i = 0; i < 3; ++i) {
    cases[7 + i].window = windows[i];
    cases[7 + i].n_sinks = sinks[i];
  }
  AttentionCase& all = cases[6];
  all.alibi = all.sinks = true;
  all.mask = 1;
  all.n_prefix = test.pos0 + 3;
  all.window = 70;
  all.n_sinks = 5;
  all.softcap = 3.0f;
  return cases;
}

TEST_CASE("attention: ALiBi, masks, padding, prefixes and sinks equal the reference") {
  const HeadLayout layouts[] = {{1, 1, 8, 8}, {6, 2, 24, 40}, {16, 2, 48, 64}, {5, 1, 3, 16}};
  for (const HeadLayout& layout : layouts) {
    for (const KvCacheFormat& format : kFormats) {
      for (const size_t n_kv : {7u, 64u, 300u, 530u}) {
        AttentionCase test;
        test.layout = layout;
        test.format = format;
        test.n_kv = n_kv;
        test.n_tokens = std::min<size_t>(n_kv, 23);
        test.pos0 = n_kv - test.n_tokens;
        for (const AttentionCase& variant : Variants(test)) {
          CAPTURE(variant.Name());
          AttentionProblem problem(variant);
          const std::vector<float> expected = problem.Run(AttentionKernel::kReference);
          const std::vector<float> tiled = problem.Run(AttentionKernel::kTiled);
          CHECK(MaxDifference(tiled, expected) <= problem.Tolerance());
          // One query after the other over the same rows: the same bits.
          const size_t width = layout.out_width();
          bool same = true;
          for (size_t t = 0; t < variant.n_tokens; ++t) {
            const std::vector<float> one =
                problem.RunTokens(AttentionKernel::kDecode, t, 1, variant.n_kv);
            same &= std::memcmp(one.data(), tiled.data() + t * width, width * sizeof(float)) == 0;
          }
          CHECK(same);
        }
      }
    }
  }
}

// One head of width 1, q = 0, so that scores are what is added to them; values 0, 1, 2, ...
struct Toy {
  KvLayer kv{{1, 1, 1, 1}, {}, 8};
  AttentionSpec spec;
  AttentionArgs args;
  float q[8] = {};
  float out[8] = {};

  Toy(size_t n_tokens, size_t n_kv) {
    for (size_t row = 0; row < n_kv; ++row) {
      const float k = 1.0f;
      const float v = static_cast<float>(row);
      kv.WriteRow(row, &k, &v);
    }
    spec.layout = {1, 1, 1, 1};
    spec.scale = 1.0f;
    args.q = q;
    args.q_stride = 1;
    args.n_tokens = n_tokens;
    args.pos0 = n_kv - n_tokens;
    args.kv = &kv;
    args.n_kv = n_kv;
    args.out = out;
    args.out_stride = 1;
  }
  // By each kernel; the last one's results stay in out.
  void CheckAll(const std::vector<float>& expected) {
    CheckAttentionSpec(spec);
    ThreadPool pool(1);
    AttentionWorkspace workspace(spec.layout, 8, 1);
    for (int kernel = 0; kernel < 3; ++kernel) {
      std::fill(out, out + 8, -1.0f);
      if (kernel == 0) AttentionReference(spec, args);
      if (kernel == 1) AttentionTiled(spec, args, workspace, pool);
      if (kernel == 2 && args.n_tokens == 1) AttentionDecode(spec, args, workspace, pool);
      if (kernel == 2 && args.n_tokens != 1) continue;
      for (size_t i = 0; i < expected.size(); ++i) {
        CHECK(out[i] == doctest::Approx(expected[i]).epsilon(1e-6));
      }
    }
  }
};

TEST_CASE("attention: ALiBi weighs the toy's keys by e^(-slope * distance)") {
  Toy toy(1, 3);
  const float slope = 0.5f;
  toy.spec.alibi_slopes = &slope;
  const float e1 = std::exp(-0.5f);
  const float e2 = std::exp(-1.0f);
  toy.CheckAll({(e1 + 2.0f) / (1.0f + e1 + e2)});
}

TEST_CASE("attention: a learned sink takes its share, and a row without keys stays zero") {
  Toy toy(1, 3);
  float sink = std::log(3.0f);
  toy.spec.sink_logits = &sink;
  toy.CheckAll({0.5f});  // three keys of weight 1, a sink of weight 3: mean 1, half of it
  sink = 1e4f;
  toy.CheckAll({0.0f});
  sink = -1e4f;
  toy.CheckAll({1.0f});
  const std::vector<float> nothing(3, -std::numeric_limits<float>::infinity());
  toy.args.mask = {nothing.data(), 0, 0};
  toy.CheckAll({0.0f});
}

TEST_CASE("attention: positions of a prefix see each other, later ones are causal") {
  Toy toy(5, 5);
  toy.args.n_prefix = 3;
  toy.CheckAll({1.0f, 1.0f, 1.0f, 1.5f, 2.0f});
}

TEST_CASE("attention: the first keys stay when the window has left them, and are counted once") {
  Toy toy(8, 8);
  toy.spec.window = 2;
  toy.spec.n_sinks = 2;  // rows 0 and 1, then two of the window
  toy.CheckAll({0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 2.5f, 3.0f, 3.5f});
  Toy last(1, 8);
  last.spec.window = 3;
  last.spec.n_sinks = 2;
  last.CheckAll({3.8f});
  last.spec.window = 0;  // without a window there is nothing to stay behind
  last.CheckAll({3.5f});
}

TEST_CASE(
    "attention: a window that left its chunk and long prompts with sinks equal the reference") {
  for (const KvCacheFormat& format : kFormats) {
    for (const size_t n_sinks : {1u, 4u, 255u, 256u, 300u}) {
      AttentionCase test;
      test.layout = {4, 2, 16, 24};
      test.format = format;
      test.n_kv = test.n_tokens = 700;
      test.window = 30;
      test.n_sinks = n_sinks;
      CAPTURE(test.Name());
      AttentionProblem problem(test);
      const std::vector<float> tiled = problem.Run(AttentionKernel::kTiled);
      CHECK(MaxDifference(tiled, problem.Run(AttentionKernel::kReference)) <= problem.Tolerance());
      for (const size_t t : {31u, 260u, 285u, 300u, 330u, 540u, 699u}) {
        const std::vector<float> one = problem.RunTokens(AttentionKernel::kDecode, t, 1, t + 1);
        CHECK(std::memcmp(one.data(), tiled.data() + t * one.size(), one.size() * sizeof(float)) ==
              0);
      }
    }
  }
}

TEST_CASE("attention: a mask excludes keys and shifts scores after the softcap") {
  Toy toy(2, 4);
  const float kNone = -std::numeric_limits<float>::infinity();
  const std::vector<float> mask = {kNone, std::log(3.0f), 0, 0, 0, kNone, kNone, kNone};
  toy.spec.softcap = 0.1f;  // smaller than what the mask adds
  toy.args.mask = {mask.data(), 0, 4};
  toy.CheckAll({(3.0f * 1.0f + 2.0f) / 4.0f, 0.0f});
}

TEST_CASE("attention: slopes and sinks that are no numbers are refused by name") {
  AttentionSpec spec;
  spec.layout = {2, 1, 4, 4};
  spec.scale = 1.0f;
  const float values[2] = {1.0f, std::numeric_limits<float>::quiet_NaN()};
  const auto option = [&] {
    try {
      CheckAttentionSpec(spec);
    } catch (const Error& error) {
      return error.details()[0].second;
    }
    return std::string("no error");
  };
  CHECK(option() == "no error");
  spec.alibi_slopes = values;
  CHECK(option() == "alibi_slopes");
  spec.alibi_slopes = nullptr;
  spec.sink_logits = values;
  CHECK(option() == "sink_logits");
}

}  // namespace
}  // namespace headlight
