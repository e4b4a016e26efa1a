// Captured scores and weights: what the kernels write is what the definition says, and what they
// computed the result with.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "attention/attention_case.h"
#include "attention/key_range.h"
#include "support.h"

namespace headlight {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();
constexpr CaptureStage kStages[] = {CaptureStage::kScaled, CaptureStage::kSoftcapped,
                                    CaptureStage::kScores, CaptureStage::kWeights};

// Of some heads and rows; values are [heads, rows, stride].
struct Captured {
  std::vector<uint32_t> slot_of_head, slot_of_row;
  std::vector<float> values, sink_mass;
  AttentionCapture capture;

  Captured(const HeadLayout& layout, size_t n_tokens, size_t stride, CaptureStage stage,
           bool all = true)
      : slot_of_head(layout.n_q_heads, AttentionCapture::kNone),
        slot_of_row(n_tokens, AttentionCapture::kNone) {
    uint32_t n_heads = 0;
    uint32_t n_rows = 0;
    // Not all: the odd heads in reverse order, and every third row.
    for (size_t h = layout.n_q_heads; h-- > 0;) {
      if (all || h % 2 == 1) slot_of_head[h] = n_heads++;
    }
    for (size_t t = 0; t < n_tokens; ++t) {
      if (all || t % 3 == 1) slot_of_row[t] = n_rows++;
    }
    values.assign(n_heads * n_rows * stride, 777.0f);
    sink_mass.assign(n_heads * n_rows, 777.0f);
    capture = {stage,  slot_of_head.data(), slot_of_row.data(), n_rows, values.data(),
               stride, sink_mass.data()};
  }
  std::vector<float> Row(size_t head, size_t t) const {
    const float* row = capture.Row(head, t);
    return {row, row + capture.stride};
  }
};

std::vector<AttentionCase> Variants() {
  std::vector<AttentionCase> cases;
  for (const HeadLayout& layout : {HeadLayout{1, 1, 8, 8}, HeadLayout{6, 2, 24, 40},
                                   HeadLayout{5, 1, 3, 16}, HeadLayout{66, 1, 4, 4}}) {
    for (const CacheType type : {CacheType::kF32, CacheType::kF16, CacheType::kInt8}) {
      for (const size_t n_kv : {1u, 7u, 64u, 300u, 530u}) {
        AttentionCase test;
        test.layout = layout;
        test.format = {type, type};
        test.n_kv = n_kv;
        test.n_tokens = std::min<size_t>(n_kv, 11);
        test.pos0 = n_kv - test.n_tokens;
        cases.push_back(test);
        test.softcap = 3.0f;
        test.alibi = test.sinks = true;
        test.mask = 1;
        cases.push_back(test);
        test.mask = 2;
        test.window = 70;
        test.n_sinks = 5;
        cases.push_back(test);
        test.causal = false;
        cases.push_back(test);
      }
    }
  }
  return cases;
}

// A score of about `magnitude` in float32; a weight is at most 1.
bool IsClose(CaptureStage stage, float a, float b, double tolerance) {
  if (a == b) return true;
  const double scale = stage == CaptureStage::kWeights ? 1.0 : std::max(1.0f, std::fabs(b));
  return std::fabs(static_cast<double>(a) - static_cast<double>(b)) <= tolerance * scale;
}

TEST_CASE("attention: captured scores and weights of both kernels equal the reference") {
  for (const AttentionCase& test : Variants()) {
    CAPTURE(test.Name());
    AttentionProblem problem(test);
    for (const CaptureStage stage : kStages) {
      Captured expected(test.layout, test.n_tokens, test.n_kv, stage);
      Captured tiled(test.layout, test.n_tokens, test.n_kv, stage);
      problem.RunTokens(AttentionKernel::kReference, 0, test.n_tokens, test.n_kv, 1,
                        &expected.capture);
      problem.RunTokens(AttentionKernel::kTiled, 0, test.n_tokens, test.n_kv, 1, &tiled.capture);
      // Scores are of magnitude 1 to 100; ALiBi and the mask add a few units.
      constexpr double kTolerance = 1e-5;
      size_t n_wrong = 0;
      for (size_t i = 0; i < expected.values.size(); ++i) {
        if (!IsClose(stage, tiled.values[i], expected.values[i], kTolerance)) ++n_wrong;
      }
      for (size_t i = 0; i < expected.sink_mass.size(); ++i) {
        if (!IsClose(CaptureStage::kWeights, tiled.sink_mass[i], expected.sink_mass[i], kTolerance))
          ++n_wrong;
      }
      CHECK(n_wrong == 0);
      // One query after the other: the same bits.
      bool same = true;
      for (size_t t = 0; t < test.n_tokens; ++t) {
        Captured one(test.layout, 1, test.n_kv, stage);
        problem.RunTokens(AttentionKernel::kDecode, t, 1, test.n_kv, 1, &one.capture);
        for (size_t h = 0; h < test.layout.n_q_heads; ++h) {
          same &= std::memcmp(one.Row(h, 0).data(), tiled.Row(h, t).data(),
                              test.n_kv * sizeof(float)) == 0;
          same &=
              one.sink_mass[one.capture.Slot(h, 0)] == tiled.sink_mass[tiled.capture.Slot(h, t)];
        }
      }
      CHECK(same);
    }
  }
}

TEST_CASE("attention: captured weights and the sink's share sum to one, or to nothing") {
  for (const AttentionCase& test : Variants()) {
    CAPTURE(test.Name());
    AttentionProblem problem(test);
    Captured captured(test.layout, test.n_tokens, test.n_kv, CaptureStage::kWeights);
    problem.RunTokens(AttentionKernel::kTiled, 0, test.n_tokens, test.n_kv, 1, &captured.capture);
    double worst = 0.0;
    for (size_t h = 0; h < test.layout.n_q_heads; ++h) {
      for (size_t t = 0; t < test.n_tokens; ++t) {
        const std::vector<float> row = captured.Row(h, t);
        double sum = captured.sink_mass[captured.capture.Slot(h, t)];
        for (const float weight : row) sum += weight;
        // A row that admits nothing has no weights; a sink then takes all.
        if (!test.sinks && sum == 0.0 && test.mask != 0) continue;
        worst = std::max(worst, std::fabs(sum - 1.0));
      }
    }
    CHECK(worst <= 2e-6);
  }
}

TEST_CASE(
    "attention: capturing some heads and rows changes no bit of the result, for any threads") {
  for (const CacheType type : {CacheType::kF32, CacheType::kInt8}) {
    AttentionCase test;
    test.layout = {6, 2, 24, 40};
    test.format = {type, type};
    test.n_kv = 600;
    test.n_tokens = 50;
    test.pos0 = 550;
    test.window = 300;
    test.n_sinks = 4;
    AttentionProblem problem(test);
    const std::vector<float> plain = problem.Run(AttentionKernel::kTiled);
    Captured whole(test.layout, test.n_tokens, test.n_kv, CaptureStage::kWeights);
    problem.RunTokens(AttentionKernel::kTiled, 0, test.n_tokens, test.n_kv, 1, &whole.capture);
    for (const size_t n : {1u, 2u, 3u}) {
      const size_t n_threads = testing::ThreadsHere(n);
      // A stride beyond n_kv: the rest of a row is not admitted.
      Captured some(test.layout, test.n_tokens, test.n_kv + 5, CaptureStage::kWeights, false);
      const std::vector<float> out = problem.RunTokens(AttentionKernel::kTiled, 0, test.n_tokens,
                                                       test.n_kv, n_threads, &some.capture);
      CHECK(std::memcmp(out.data(), plain.data(), out.size() * sizeof(float)) == 0);
      bool same = true;
      for (size_t h = 1; h < 6; h += 2) {
        for (size_t t = 1; t < test.n_tokens; t += 3) {
          std::vector<float> expected = whole.Row(h, t);
          expected.resize(test.n_kv + 5, 0.0f);
          same &= some.Row(h, t) == expected;
        }
      }
      CHECK(same);
    }
  }
}

TEST_CASE("attention: captured weights times the values are the result") {
  AttentionCase test;
  test.layout = {4, 2, 16, 8};
  test.n_kv = 300;
  test.n_tokens = 3;
  test.pos0 = 297;
  test.sinks = true;
  AttentionProblem problem(test);
  Captured captured(test.layout, 3, 300, CaptureStage::kWeights);
  const std::vector<float> out =
      problem.RunTokens(AttentionKernel::kTiled, 0, 3, 300, 1, &captured.capture);
  for (size_t t = 0; t < 3; ++t) {
    for (size_t h = 0; h < 4; ++h) {
      const std::vector<float> row = captured.Row(h, t);
      for (size_t i = 0; i < 8; ++i) {
        double sum = 0.0;
        for (size_t key = 0; key < 300; ++key)
          sum += row[key] * problem.kv().head(h / 2).ValueAt(key, i);
        CHECK(out[(t * 4 + h) * 8 + i] == doctest::Approx(sum).epsilon(1e-5).scale(1.0));
      }
    }
  }
}

TEST_CASE("attention: tiles that an explicit mask empties are not computed") {
  // Keys and values of masked tiles are NaN: whoever multiplied them would show it.
  for (const CacheType type : {CacheType::kF32, CacheType::kF16}) {
    for (const HeadLayout& layout : {HeadLayout{6, 2, 24, 40}, HeadLayout{1, 1, 8, 8}}) {
      AttentionCase test;
      test.layout = layout;
      test.format = {type, type};
      test.n_kv = 700;
      test.n_tokens = 40;
      test.pos0 = 660;
      test.causal = false;
      for (const int mask : {1, 2}) {
        test.mask = mask;
        CAPTURE(test.Name());
        AttentionProblem problem(test);
        // A whole chunk, tiles at both ends of another one, and one in the middle of the last.
        const KeyRange empty[] = {{256, 512}, {0, 64}, {224, 256}, {576, 608}};
        const size_t n_mask_rows = problem.mask().size() / test.n_kv;
        for (const KeyRange& keys : empty) {
          for (size_t row = 0; row < n_mask_rows; ++row) {
            std::fill_n(problem.mask().data() + row * test.n_kv + keys.begin, keys.end - keys.begin,
                        kNone);
          }
        }
        const std::vector<float> clean = problem.Run(AttentionKernel::kTiled);
        const std::vector<float> expected = problem.Run(AttentionKernel::kReference);
        const double tolerance = problem.Tolerance();
        CHECK(MaxDifference(clean, expected) <= tolerance);
        const float nan = std::numeric_limits<float>::quiet_NaN();
        for (const KeyRange& keys : empty) {
          for (size_t key = keys.begin; key < keys.end; ++key) problem.SetKv(key, nan, nan);
        }
        const std::vector<float> poisoned = problem.Run(AttentionKernel::kTiled);
        CHECK(std::memcmp(poisoned.data(), clean.data(), clean.size() * sizeof(float)) == 0);
        const size_t width = layout.out_width();
        for (const size_t t : {0u, 17u, 39u}) {
          const std::vector<float> one = problem.RunTokens(AttentionKernel::kDecode, t, 1, 700);
          CHECK(std::memcmp(one.data(), clean.data() + t * width, width * sizeof(float)) == 0);
        }
      }
    }
  }
}

TEST_CASE("attention: rows that the mask empties in different tiles keep their own keys") {
  // Block-diagonal: row t admits only keys [16 t, 16 t + 16), so neighbours share few tiles.
  for (const CacheType type : {CacheType::kF32, CacheType::kF16, CacheType::kInt8}) {
    AttentionCase test;
    test.layout = {2, 1, 16, 24};
    test.format = {type, type};
    test.n_kv = 640;
    test.n_tokens = 40;
    test.pos0 = 600;
    test.causal = false;
    test.mask = 1;
    AttentionProblem problem(test);
    for (size_t i = 0; i < problem.mask().size(); ++i) {
      const size_t t = i / test.n_kv % test.n_tokens;
      problem.mask()[i] = i % test.n_kv / 16 == t ? 0.5f : kNone;
    }
    const std::vector<float> tiled = problem.Run(AttentionKernel::kTiled);
    CHECK(MaxDifference(tiled, problem.Run(AttentionKernel::kReference)) <= problem.Tolerance());
    for (size_t t = 0; t < test.n_tokens; ++t) {
      const std::vector<float> one = problem.RunTokens(AttentionKernel::kDecode, t, 1, 640);
      CHECK(std::memcmp(one.data(), tiled.data() + t * one.size(), one.size() * sizeof(float)) ==
            0);
    }
  }
}

}  // namespace
}  // namespace headlight
