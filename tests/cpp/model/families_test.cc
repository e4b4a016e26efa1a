// Every row of the table of architectures: what the decoder computes for it equals the oracle. What
// llama.cpp computes for the same families: tests/families.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gguf_reading.h"
#include "gguf_writer.h"
#include "model/arch_table.h"
#include "model/decode_all.h"
#include "oracle/oracle.h"
#include "oracle/test_model.h"
#include "session/perplexity.h"
#include "session/session.h"

namespace headlight::testing {
namespace {

constexpr size_t kTokens = 45;

// Keys of a small model with a window shorter than the test's tokens, for the families that have
// one, and with every scale and cap that a family reads.
GgufWriter FamilyKeys(const ArchRow& row) {
  GgufWriter writer;
  const std::string a = std::string(row.name) + ".";
  writer.String("general.architecture", row.name)
      .Uint(a + "context_length", 64)
      .Uint(a + "embedding_length", 60)
      .Uint(a + "block_count", 7)
      .Uint(a + "feed_forward_length", 52)
      .Uint(a + "attention.head_count", 6)
      .Uint(a + "attention.head_count_kv", 3)
      .Uint(a + "attention.key_length", 12)
      .Uint(a + "attention.value_length", 20)
      .Float(a + "attention.layer_norm_rms_epsilon", 1e-3f)
      .Float(a + "attention.layer_norm_epsilon", 1e-3f)
      .Uint(a + "vocab_size", 90)
      .Float(a + "attention.clamp_kqv", 2.5f)
      .Float(a + "residual_scale", 0.8f)
      .Float(a + "logit_scale", 1.5f);
  if (row.rope_style != RopeStyle::kNone) writer.Uint(a + "rope.dimension_count", 8);
  if (!row.experts.always.empty()) {
    writer.Uint(a + "expert_count", 5)
        .Uint(a + "expert_used_count", 2)
        .Uint(a + "expert_feed_forward_length", 26)
        .Float(a + "expert_weights_scale", 1.4f)
        .Uint(a + "leading_dense_block_count", 2);
  }
  if (row.is_latent) {
    writer.Uint(a + "attention.kv_lora_rank", 20)
        .Uint(a + "attention.key_length_mla", 19)
        .Uint(a + "attention.value_length_mla", 14);
  }
  if (row.window.size != 0 || row.window.period != 1)
    writer.Uint(a + "attention.sliding_window", 9);
  return writer;
}

// Keys and values of latents apart, or joined in one matrix as older files have them.
void UseLatentTensors(bool joined, LayerSpec& layer) {
  constexpr TensorSet kApart = {TensorRole::kKB, TensorRole::kVB};
  constexpr TensorSet kJoined = {TensorRole::kKvB};
  layer.tensors.maybe = layer.tensors.maybe - (kApart | kJoined);
  layer.tensors.always = layer.tensors.always | (joined ? kJoined : kApart);
}

void CheckAgainstOracle(const ModelSpec& spec, uint64_t seed) {
  const TestModel test = MakeTestModel(spec, TensorType::kF32, seed);
  const std::vector<uint32_t> tokens = RandomTokens(kTokens, spec.vocab_size, seed);
  const Matrix expected = OracleLogits(test.oracle, tokens);
  std::vector<float> whole;
  for (const size_t chunk : {kTokens, size_t{16}, size_t{1}}) {
    DecodeSetup setup;
    setup.chunk = chunk;
    const std::vector<float> logits = DecodeAll(*test.model, tokens, setup);
    const Difference d = Compare(logits, expected.values);
    CHECK(d.max <= F32Tolerance(spec, d.magnitude));
    if (chunk == kTokens) whole = logits;
    CHECK(logits == whole);  // all at once, in chunks, one by one: the same bits
  }
}

}  // namespace

TEST_CASE(
    "families: latent attention, plain and absorbed, is the oracle's in every cache that holds it "
    "exactly enough") {
  const ArchRow* row = FindArchitecture("deepseek2");
  REQUIRE(row != nullptr);
  ModelSpec spec = BuildModelSpec(ReadHeader(FamilyKeys(*row).File()));
  for (const bool joined : {false, true}) {
    for (LayerSpec& layer : spec.layers) {
      layer.tensors.maybe = {};
      UseLatentTensors(joined, layer);
    }
    const TestModel test = MakeTestModel(spec, TensorType::kF32, joined ? 11 : 12);
    const std::vector<uint32_t> tokens = RandomTokens(kTokens, spec.vocab_size, 13);
    const Matrix expected = OracleLogits(test.oracle, tokens);
    for (const LatentComputation latent :
         {LatentComputation::kAbsorbed, LatentComputation::kPlain}) {
      for (const size_t chunk : {size_t{16}, size_t{1}}) {
        DecodeSetup setup;
        setup.chunk = chunk;
        setup.latent = latent;
        const Difference d = Compare(DecodeAll(*test.model, tokens, setup), expected.values);
        CHECK(d.max <= F32Tolerance(spec, d.magnitude));
        setup.kv_format = {CacheType::kF16, CacheType::kF16};
        CHECK(Compare(DecodeAll(*test.model, tokens, setup), expected.values).relative_rms < 2e-3);
        setup.kv_format = {CacheType::kF32, CacheType::kF16};
        CHECK(Compare(DecodeAll(*test.model, tokens, setup), expected.values).relative_rms < 2e-3);
        setup.kv_format = {CacheType::kInt8, CacheType::kInt8};
        CHECK(Compare(DecodeAll(*test.model, tokens, setup), expected.values).relative_rms < 5e-2);
      }
    }
  }
}

TEST_CASE("families: latent attention caches the latent and the rotated part, once") {
  const ArchRow* row = FindArchitecture("deepseek2");
  const ModelSpec spec = BuildModelSpec(ReadHeader(FamilyKeys(*row).File()));
  const HeadLayout& heads = spec.layers[0].heads;
  CHECK(heads == HeadLayout{6, 1, 28, 20, true});
  CHECK(KvLayer::BytesPerToken(heads, {CacheType::kF32, CacheType::kF32}) == 28 * 4);
  CHECK(KvLayer::BytesPerToken(heads, {CacheType::kF16, CacheType::kF16}) == 32 * 2);  // padded
  CHECK(KvLayer::BytesPerToken(heads, {CacheType::kF32, CacheType::kF16}) == 28 * 4 + 24 * 2);
}

// What the families with a model in tests/families are asked of llama.cpp, which knows no window of
// a llama: the largest difference of a log probability above 1e-6, and the same most likely token.
void CheckProbabilities(const std::vector<float>& logits, const double* expected, double limit) {
  const std::vector<float> oracle(expected, expected + logits.size());
  const auto best = [](const std::vector<float>& x) {
    return std::max_element(x.begin(), x.end()) - x.begin();
  };
  CHECK(best(logits) == best(oracle));
  double largest = 0.0;
  for (uint32_t id = 0; id < logits.size(); ++id) {
    const double surprise = SurpriseOf(oracle, id);
    if (surprise > std::log(1e6)) continue;
    largest = std::max(largest, std::fabs(SurpriseOf(logits, id) - surprise));
  }
  CHECK(largest <= limit);
}

TEST_CASE(
    "families: Mistral, a llama with a window in every layer, is the oracle's after 1, 7, 200 and "
    "600 tokens and two steps more") {
  GgufWriter keys = FamilyKeys(*FindArchitecture("llama"));
  keys.Remove("llama.context_length").Uint("llama.context_length", 1024);
  keys.Uint("llama.attention.sliding_window", 12);
  ModelSpec spec = BuildModelSpec(ReadHeader(keys.File()));
  for (LayerSpec& layer : spec.layers) layer.tensors.maybe = {};
  spec.tied_head = false;
  const TestModel test = MakeTestModel(spec, TensorType::kF32, 400);
  for (const CacheType cache : {CacheType::kF32, CacheType::kF16}) {
    SessionOptions options;
    options.activations = ActivationType::kF32;
    options.kv_format = {cache, cache};
    ThreadPool pool(1);
    Session session(test.model, options, pool);
    // A ring of rows: 600 tokens go round it.
    CHECK(session.plan().kv_cache_bytes == 256 * session.plan().kv_bytes_per_token);
    for (const size_t n : {1u, 7u, 200u, 600u}) {
      CAPTURE(n);
      const std::vector<uint32_t> tokens = RandomTokens(n + 2, spec.vocab_size, n);
      const Matrix expected = OracleLogits(test.oracle, tokens);
      for (size_t end = n; end <= n + 2; ++end) {
        const std::vector<float> logits = session.Logits(std::span(tokens).first(end), false);
        if (end > n) CHECK(session.stats().n_prompt_reused == end - 1);
        CheckProbabilities(logits, expected.row(end - 1), cache == CacheType::kF32 ? 1e-4 : 5e-3);
      }
    }
  }
  // One key more would show.
  ModelSpec wider = spec;
  for (LayerSpec& layer : wider.layers) layer.window = 13;
  OracleModel other = test.oracle;
  other.spec = wider;
  const std::vector<uint32_t> tokens = RandomTokens(40, spec.vocab_size, 40);
  CHECK(Compare(OracleLogits(other, tokens).values, OracleLogits(test.oracle, tokens).values).max >
        0.05);
}

TEST_CASE("families: every architecture equals the oracle, with all it may have and without") {
  uint64_t seed = 300;
  for (const ArchRow& row : Architectures()) {
    CAPTURE(std::string(row.name));
    const ModelSpec spec = BuildModelSpec(ReadHeader(FamilyKeys(row).File()));
    for (const bool with_optional : {false, true}) {
      CAPTURE(with_optional);
      ModelSpec variant = spec;
      variant.tied_head = !with_optional && !spec.tensors.always.Has(TensorRole::kHead);
      for (LayerSpec& layer : variant.layers) {
        if (!with_optional) layer.tensors.maybe = {};
        // The two are in one tensor of a file.
        layer.tensors.maybe = layer.tensors.maybe - TensorSet{TensorRole::kHeadGate};
        if (row.is_latent) UseLatentTensors(with_optional, layer);
      }
      CheckAgainstOracle(variant, ++seed);
    }
  }
}

}  // namespace headlight::testing
