#include "lab/calibration.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "lab/model_edit.h"
#include "lab/weights.h"
#include "oracle/test_model.h"
#include "support.h"

namespace headlight {
namespace {

constexpr size_t kTokens = 16;
constexpr size_t kSegments = 3;

ModelSpec Spec() { return SmallSpec({4, 2, 8, 12}, 32, 48, 2); }

// The model with W_q of layer 0 changed by `change`.
template <typename F>
std::shared_ptr<const Model> WithQueries(const std::shared_ptr<const Model>& base,
                                         const F& change) {
  auto model = std::make_shared<Model>();
  model->spec = base->spec;
  model->embedding = base->embedding;
  model->head = base->head;
  model->output_norm = base->output_norm;
  model->layers = base->layers;
  model->base = base;
  PackedMatrix& slot = model->layers[0].w_q;
  Weights w = DecodeWeights(slot);
  change(w);
  slot = PackWeights(w, TensorType::kF32, slot.shape.form, *model);
  return model;
}

std::unique_ptr<Calibration> Calibrated(std::shared_ptr<const Model> model, ThreadPool& pool,
                                        double budget_ms = 1e9) {
  const size_t vocab_size = model->spec.vocab_size;
  auto calibration = std::make_unique<Calibration>(std::move(model), kTokens, pool);
  for (const bool is_check : {false, true}) {
    for (size_t i = 0; i < kSegments; ++i) {
      calibration->BeginSegment(RandomTokens(kTokens, vocab_size, i), is_check);
      while (!calibration->Advance(budget_ms)) continue;
    }
  }
  return calibration;
}

TEST_CASE("calibration: in pieces it gives the same numbers") {
  ThreadPool pool(1);
  const TestModel test = MakeTestModel(Spec(), TensorType::kF32, 1);
  const auto whole = Calibrated(test.model, pool);
  const auto pieces = Calibrated(test.model, pool, 0.0);
  Calibration left(test.model, kTokens, pool);
  left.BeginSegment(RandomTokens(kTokens, 97, 50), false);
  CHECK(!left.Advance(0.0));  // a step of many
  CHECK(whole->Head(0, 3).by_offset == pieces->Head(0, 3).by_offset);
  CHECK(whole->Head(0, 3).spread == pieces->Head(0, 3).spread);
  CHECK(whole->PairShares(0) == pieces->PairShares(0));
}

TEST_CASE("calibration: heads without queries are uniform: no spread, the prefix mean is exact") {
  ThreadPool pool(1);
  const TestModel test = MakeTestModel(Spec(), TensorType::kF32, 1);
  const auto model = WithQueries(
      test.model, [](Weights& w) { std::fill(w.values.begin(), w.values.end(), 0.0f); });
  const auto calibrated = Calibrated(model, pool);
  const Calibration& calibration = *calibrated;
  const HeadCalibration head = calibration.Head(0, 3);
  CHECK(head.spread < 1e-6f);
  CHECK(head.Pattern(1).kind == PatternKind::kPrefixMean);
  CHECK(head.output_errors[1] < 1e-6f);
  CHECK(head.output_errors[2] > 0.1f);
  double first = 0.0, offset2 = 0.0;
  for (size_t t = 1; t < kTokens; ++t) first += 1.0 / static_cast<double>(t + 1) / (kTokens - 1);
  for (size_t t = 3; t < kTokens; ++t) offset2 += 1.0 / static_cast<double>(t + 1) / (kTokens - 3);
  CHECK(static_cast<double>(head.first) == doctest::Approx(first));
  CHECK(static_cast<double>(head.by_offset[2]) == doctest::Approx(offset2));
  // Random heads are not.
  CHECK(calibration.Head(1, 0).spread > 0.01f);
  CHECK(calibration.Head(1, 0).output_errors[3] > 0.01f);
}

TEST_CASE("calibration: shares of pairs follow the scores and sum to 1") {
  ThreadPool pool(1);
  const TestModel test = MakeTestModel(Spec(), TensorType::kF32, 2);
  for (const size_t pair : {0u, 3u}) {
    const auto model = WithQueries(test.model, [&](Weights& w) {
      for (size_t row = 0; row < w.n_rows; ++row) {
        if (row % 8 / 2 == pair) continue;
        std::fill_n(w.row(row), w.n_cols, 0.0f);
      }
    });
    const std::vector<float> shares = Calibrated(model, pool)->PairShares(0);
    CHECK(shares.size() == 4);
    CHECK(static_cast<double>(shares[pair]) == doctest::Approx(1.0));
  }
  double sum = 0.0;
  for (const float share : Calibrated(test.model, pool)->PairShares(1))
    sum += static_cast<double>(share);
  CHECK(sum == doctest::Approx(1.0));
}

TEST_CASE("calibration: a fixed head in the model errs as calibration says") {
  // With every head of the layer replaced by its exact pattern the model is the same.
  ThreadPool pool(1);
  const TestModel test = MakeTestModel(Spec(), TensorType::kF32, 3);
  const auto model = WithQueries(
      test.model, [](Weights& w) { std::fill(w.values.begin(), w.values.end(), 0.0f); });
  ModelEdit edit;
  for (size_t head = 0; head < 4; ++head)
    edit.fixed.push_back({{0, head}, {PatternKind::kPrefixMean, 0, {}, 0.0f}});
  const auto fixed = EditModel(model, edit);
  const float a = Calibrated(model, pool)->Head(1, 2).spread;
  const float b = Calibrated(fixed, pool)->Head(1, 2).spread;
  CHECK(static_cast<double>(a) == doctest::Approx(static_cast<double>(b)).epsilon(1e-3));
}

TEST_CASE("calibration: segments of the wrong length or vocabulary are refused") {
  ThreadPool pool(1);
  const TestModel test = MakeTestModel(Spec(), TensorType::kF32, 4);
  CHECK(testing::ErrorOf([&] { Calibration(test.model, 65, pool); }).code() ==
        ErrorCode::kBadOption);
  CHECK(testing::ErrorOf([&] { Calibration(test.model, 1, pool); }).code() ==
        ErrorCode::kBadOption);
  Calibration calibration(test.model, kTokens, pool);
  const std::vector<uint32_t> few(kTokens - 1), foreign(kTokens, 97);
  CHECK(testing::ErrorOf([&] { calibration.BeginSegment(few, false); }).code() ==
        ErrorCode::kBadOption);
  CHECK(testing::ErrorOf([&] { calibration.BeginSegment(foreign, true); }).code() ==
        ErrorCode::kBadOption);
}

}  // namespace
}  // namespace headlight
