#include "lab/block_trace.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "lab/token_scores.h"
#include "oracle/test_model.h"
#include "support.h"

namespace headlight {
namespace {

struct Found {
  size_t n_rows, n_cols;
  std::vector<float> values;
};

Found Find(const BlockTrace& trace, LayerTensor what) {
  const float* at = trace.values.data();
  for (const TracedTensor& tensor : trace.tensors) {
    const size_t n = tensor.n_rows * tensor.n_cols;
    if (tensor.what == what) return {tensor.n_rows, tensor.n_cols, {at, at + n}};
    at += n;
  }
  FAIL("the tensor is missing");
  return {};
}

TEST_CASE("block_trace: every tensor of a block, with its shape, adds up to the output") {
  ThreadPool pool(1);
  const TestModel test = MakeTestModel(SmallSpec({4, 2, 8, 12}, 32, 48, 3), TensorType::kQ8_0, 1);
  const std::vector<uint32_t> tokens = RandomTokens(7, 97, 2);
  BlockTraceOptions options;
  options.budget_ms = 0.0;
  for (const size_t layer : {0u, 2u}) {
    for (const bool last_only : {false, true}) {
      options.layer = layer;
      options.last_only = last_only;
      const BlockTrace trace = TraceBlock(test.model, tokens, options, pool);
      CHECK(trace.tensors.size() == kNLayerTensors);
      CHECK(trace.n_passes == 1);
      for (const TracedTensor& tensor : trace.tensors) {
        CHECK(tensor.n_rows == (last_only ? 1 : 7));
      }
      CHECK(Find(trace, LayerTensor::kQ).n_cols == 32);
      CHECK(Find(trace, LayerTensor::kK).n_cols == 16);
      CHECK(Find(trace, LayerTensor::kV).n_cols == 24);
      CHECK(Find(trace, LayerTensor::kHeads).n_cols == 48);
      CHECK(Find(trace, LayerTensor::kGate).n_cols == 48);
      const auto check_sum = [&](LayerTensor a, LayerTensor b, LayerTensor sum) {
        for (size_t i = 0; i < Find(trace, sum).values.size(); ++i) {
          CHECK(Find(trace, a).values[i] + Find(trace, b).values[i] == Find(trace, sum).values[i]);
        }
      };
      check_sum(LayerTensor::kInput, LayerTensor::kAttentionOut, LayerTensor::kAfterAttention);
      check_sum(LayerTensor::kAfterAttention, LayerTensor::kDown, LayerTensor::kOutput);
    }
  }
}

TEST_CASE("block_trace: the last token alone has the same numbers, and passes are counted") {
  ThreadPool pool(1);
  const TestModel test = MakeTestModel(SmallSpec({4, 2, 8, 12}, 32, 48, 3), TensorType::kQ8_0, 1);
  const std::vector<uint32_t> tokens = RandomTokens(7, 97, 2);
  BlockTraceOptions options;
  options.layer = 1;
  options.budget_ms = 2.0;
  const BlockTrace all = TraceBlock(test.model, tokens, options, pool);
  options.last_only = true;
  const BlockTrace last = TraceBlock(test.model, tokens, options, pool);
  CHECK(last.n_passes > 1);
  for (size_t i = 0; i < kNLayerTensors; ++i) {
    const Found whole = Find(all, static_cast<LayerTensor>(i));
    const std::vector<float> row(whole.values.end() - static_cast<std::ptrdiff_t>(whole.n_cols),
                                 whole.values.end());
    CHECK(row == Find(last, static_cast<LayerTensor>(i)).values);
  }
  double sum = 0.0;
  for (const TracedTensor& tensor : last.tensors) sum += tensor.ms;
  CHECK(sum > 0.0);
  options.layer = 3;
  CHECK(testing::ErrorOf([&] { TraceBlock(test.model, tokens, options, pool); }).code() ==
        ErrorCode::kBadOption);
  options.layer = 0;
  CHECK(testing::ErrorOf([&] { TraceBlock(test.model, {}, options, pool); }).code() ==
        ErrorCode::kBadOption);
}

TEST_CASE("token_scores: log-probabilities and likeliest tokens are those of the logits") {
  ThreadPool pool(1);
  const TestModel test = MakeTestModel(SmallSpec({4, 2, 8, 12}, 32, 48, 2), TensorType::kF32, 3);
  SessionOptions options;
  options.n_ctx = 64;
  options.activations = ActivationType::kF32;
  Session session(test.model, options, pool);
  const std::vector<uint32_t> tokens = RandomTokens(20, 97, 5);
  const TokenScores scores = ScoreRun(session, tokens).Advance().value();
  ScoreRun run(session, tokens);
  std::optional<TokenScores> in_pieces;
  size_t n_pieces = 0;
  while (!in_pieces.has_value()) {
    in_pieces = run.Advance(0.0);
    ++n_pieces;
  }
  CHECK(n_pieces > 19);
  CHECK(in_pieces->log_probabilities == scores.log_probabilities);
  CHECK(in_pieces->likeliest == scores.likeliest);
  const Matrix logits = OracleLogits(test.oracle, tokens);
  CHECK(scores.log_probabilities.size() == 19);
  for (size_t i = 0; i < 19; ++i) {
    const double* row = logits.row(i);
    double sum = 0.0;
    for (size_t id = 0; id < 97; ++id) sum += std::exp(row[id]);
    const double expected = row[tokens[i + 1]] - std::log(sum);
    CHECK(static_cast<double>(scores.log_probabilities[i]) ==
          doctest::Approx(expected).epsilon(1e-4));
    CHECK(scores.likeliest[i] == static_cast<uint32_t>(std::max_element(row, row + 97) - row));
  }
}

}  // namespace
}  // namespace headlight
