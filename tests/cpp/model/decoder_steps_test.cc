// Steps of a model whose layers are too large for one: how many there are, and that no bit depends
// on where they end. A chunk of one token is cut at larger sizes, so it is the comparison.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "model/decode_all.h"
#include "oracle/test_model.h"
#include "support.h"

namespace headlight {
namespace {

constexpr HeadLayout kHeads = {2, 2, 32, 32};

// Up and gate are two bands, down is one, the head three, of which two fit a step.
ModelSpec LargeSpec() {
  ModelSpec spec = SmallSpec(kHeads, 256, 16384, 1);
  spec.vocab_size = 40003;
  return spec;
}

ModelSpec LargeExpertsSpec() {
  ModelSpec spec = SmallSpec(kHeads, 256, 6144, 1);
  LayerSpec& layer = spec.layers[0];
  layer.feed_forward = FeedForwardKind::kExperts;
  layer.experts.n = 3;
  layer.experts.n_used = 2;
  layer.experts.d_ff = 6144;
  return spec;
}

size_t CountSteps(const Model& model, size_t n_tokens, LogitsOf logits_of) {
  ThreadPool pool(1);
  Decoder decoder(model, {n_tokens, n_tokens, ActivationType::kInt8}, pool);
  KvCache cache(LayoutsOf(model.spec), {}, n_tokens);
  std::vector<float> logits(n_tokens * model.spec.vocab_size);
  const std::vector<uint32_t> tokens = RandomTokens(n_tokens, model.spec.vocab_size, 1);
  decoder.Start({tokens, 0, logits_of, logits.data()}, cache);
  size_t n_steps = 1;
  while (decoder.Step()) ++n_steps;
  return n_steps;
}

void CheckBits(const Model& model) {
  const std::vector<uint32_t> tokens = RandomTokens(5, model.spec.vocab_size, 2);
  DecodeSetup setup;
  setup.activations = ActivationType::kInt8;
  setup.chunk = 1;
  const std::vector<float> one_by_one = DecodeAll(model, tokens, setup);
  setup.chunk = tokens.size();
  for (const size_t n_threads : {size_t{1}, testing::ThreadsHere(3)}) {
    CAPTURE(n_threads);
    setup.n_threads = n_threads;
    const std::vector<float> whole = DecodeAll(model, tokens, setup);
    CHECK(std::memcmp(whole.data(), one_by_one.data(), whole.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("decoder: a large layer and a large head are several steps, of the same bits") {
  const TestModel test = MakeTestModel(LargeSpec(), TensorType::kQ4_0, 3);
  CHECK(CountSteps(*test.model, 3, LogitsOf::kAllRows) == 3 + 2);
  CHECK(CountSteps(*test.model, 3, LogitsOf::kLastRow) == 3 + 1);
  CHECK(CountSteps(*test.model, 1, LogitsOf::kLastRow) == 1 + 1);
  CheckBits(*test.model);
}

TEST_CASE("decoder: large experts are a step each, of the same bits") {
  const TestModel test = MakeTestModel(LargeExpertsSpec(), TensorType::kQ4_0, 4);
  CHECK(CountSteps(*test.model, 8, LogitsOf::kAllRows) == 3 + 1);
  CheckBits(*test.model);
}

}  // namespace
}  // namespace headlight
