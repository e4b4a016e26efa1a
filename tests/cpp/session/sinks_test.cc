// What the first keys are worth: a model made to lean on them, and the default model over four
// contexts.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "kernels/random_matrix.h"
#include "session/perplexity.h"
#include "session/session.h"

namespace headlight {
namespace {

using Tokens = std::vector<uint32_t>;

Tokens Part(const Tokens& tokens, size_t begin, size_t end) {
  return {tokens.begin() + static_cast<std::ptrdiff_t>(begin),
          tokens.begin() + static_cast<std::ptrdiff_t>(end)};
}

// -log p of tokens[i] under row i - 1 of `logits` [tokens.size(), vocab_size], i >= 1.
double Surprise(const std::vector<float>& logits, const Tokens& tokens, size_t i) {
  const size_t vocab_size = logits.size() / tokens.size();
  return SurpriseOf(std::span(logits).subspan((i - 1) * vocab_size, vocab_size), tokens[i]);
}

// One layer and head over 8 tokens. Token 0 has no value and a key that every query likes; a row
// that sees it attends to nothing else and says what its own token says. Without it the values of
// the recent tokens come through, which vote against.
class SinkModel {
 public:
  SinkModel() {
    spec_.architecture = "test";
    spec_.d_model = kWidth;
    spec_.vocab_size = kTokens;
    spec_.n_ctx_train = 512;
    LayerSpec layer;
    layer.heads = {1, 1, kWidth, kWidth};
    layer.attention_scale = 1.0f;
    layer.feed_forward = FeedForwardKind::kNone;
    spec_.layers = {layer};
    model_ = std::make_shared<Model>();
    model_->spec = spec_;
    ones_.assign(kWidth, 1.0f);
    model_->output_norm = {ones_.data(), nullptr};
    // Columns: 0..7 which token it is, 8 being the first token, 9 being any other, 10..17 votes.
    const auto unit = [](size_t row, size_t col) { return row == col ? 1.0f : 0.0f; };
    model_->embedding = Make(kTokens, kWidth, [&](size_t token, size_t i) {
      return unit(token, i) + (i == 8 && token == 0 ? 1.0f : 0.0f) +
             (i == 9 && token != 0 ? 1.0f : 0.0f);
    });
    model_->head = Make(kTokens, kWidth, [&](size_t token, size_t i) {
      // The next token is token + 1; votes are taken off.
      return 4.0f * unit((token + kTokens - 1) % kTokens, i) - 8.0f * unit(token + 10, i);
    });
    LayerWeights weights;
    weights.attention_norm = {ones_.data(), nullptr};
    const auto to = [&](size_t row, size_t col, float value) {
      return [=](size_t r, size_t c) { return r == row && c == col ? value : 0.0f; };
    };
    weights.w_q = Make(kWidth, kWidth, to(0, 9, 2.0f));
    weights.w_k = Make(kWidth, kWidth, to(0, 8, 2.0f));
    weights.w_v = Make(kWidth, kWidth, [&](size_t r, size_t c) {
      return c < kTokens && c != 0 && r == c + 10 ? 1.0f : 0.0f;
    });
    weights.w_o = Make(kWidth, kWidth, [&](size_t r, size_t c) { return unit(r, c); });
    model_->layers = {weights};
  }
  std::shared_ptr<const Model> model() const { return model_; }

  static constexpr size_t kTokens = 8;
  static constexpr size_t kWidth = 32;

 private:
  template <typename F>
  PackedMatrix Make(size_t n_rows, size_t n_cols, const F& value) {
    std::vector<uint8_t> bytes(n_rows * n_cols * sizeof(float));
    for (size_t r = 0; r < n_rows; ++r) {
      for (size_t c = 0; c < n_cols; ++c) {
        const float x = value(r, c);
        std::memcpy(&bytes[(r * n_cols + c) * sizeof(float)], &x, sizeof(x));
      }
    }
    auto packed = test::Pack(TensorType::kF32, n_rows, n_cols, bytes, DotForm::kWide);
    model_->storage.push_back(std::move(packed.storage));
    return packed.matrix;
  }

  ModelSpec spec_;
  std::vector<float> ones_;
  std::shared_ptr<Model> model_;
};

// exp of the mean surprise of tokens [first, end) when the whole text streams through a session.
double StreamPerplexity(const std::shared_ptr<const Model>& model, const Tokens& tokens,
                        const EvictionOptions& eviction, const std::vector<size_t>& places) {
  SessionOptions options;
  options.n_ctx = tokens.size();
  options.activations = ActivationType::kInt8;
  options.eviction = eviction;
  ThreadPool pool(1);
  Session session(model, options, pool);
  const std::vector<float> logits = session.Logits(tokens, true);
  double sum = 0.0;
  for (const size_t i : places) sum += Surprise(logits, tokens, i);
  return std::exp(sum / static_cast<double>(places.size()));
}

TEST_CASE(
    "sinks: a model that leans on its first token keeps its head with it and loses it without") {
  const SinkModel sink_model;
  Tokens tokens = {0};
  for (size_t i = 1; i < 400; ++i) tokens.push_back(static_cast<uint32_t>(1 + (i - 1) % 7));
  std::vector<size_t> places;  // what follows 7 is 0 to the model, which the text leaves out
  for (size_t i = 100; i < tokens.size(); ++i) {
    if (tokens[i] != 1) places.push_back(i);
  }
  const EvictionOptions with{EvictionPolicy::kSinks, 1, 31};
  const EvictionOptions without{EvictionPolicy::kSinks, 0, 32};
  const double whole = StreamPerplexity(sink_model.model(), tokens, {}, places);
  const double kept = StreamPerplexity(sink_model.model(), tokens, with, places);
  const double dropped = StreamPerplexity(sink_model.model(), tokens, without, places);
  MESSAGE("perplexity of a model with a sink: all keys " << whole << ", sink and 31 keys " << kept
                                                         << ", 32 keys " << dropped);
  CHECK(kept <= 1.05 * whole);
  CHECK(dropped >= 1.5 * whole);
}

TEST_CASE(
    "default model: four contexts with 4 sinks and a window stay near the windowed reference") {
  const auto model = DefaultModelForText();
  const size_t n_tokens = 4 * model->spec.n_ctx_train;
  Tokens tokens;
  while (tokens.size() < n_tokens) {
    for (const Tokens& ids : DefaultModelTexts())
      tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
  tokens.resize(n_tokens);

  // The reference: a window of 256 tokens computed anew for every eight tokens, at sixteen places.
  constexpr size_t kBudget = 256, kStep = 96, kMeasured = 8;
  std::vector<size_t> places;
  double sum = 0.0;
  SessionOptions options;
  ThreadPool pool(1);
  Session fresh(model, options, pool);
  for (size_t end = model->spec.n_ctx_train; end <= n_tokens; end += kStep) {
    const Tokens window = Part(tokens, end - kBudget, end);
    const std::vector<float> logits = fresh.Logits(window, true);
    for (size_t i = kBudget - kMeasured; i < kBudget; ++i) {
      sum += Surprise(logits, window, i);
      places.push_back(end - kBudget + i);
    }
  }
  const double reference = std::exp(sum / static_cast<double>(places.size()));
  const double with =
      StreamPerplexity(model, tokens, {EvictionPolicy::kSinks, 4, kBudget - 4}, places);
  const double without =
      StreamPerplexity(model, tokens, {EvictionPolicy::kSinks, 0, kBudget}, places);
  MESSAGE("perplexity of the default model at "
          << places.size() << " places of " << n_tokens << " tokens: window of " << kBudget
          << " computed anew " << reference << ", 4 sinks + 252 " << with << ", no sinks "
          << without);
  CHECK(with <= 1.1 * reference);
}

}  // namespace
}  // namespace headlight
