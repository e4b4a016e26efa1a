// What the rows of the table of architectures say of windows, bases, scales, experts and latents.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "gguf_reading.h"
#include "gguf_writer.h"
#include "model/arch_table.h"
#include "support.h"

namespace headlight::testing {
namespace {

GgufWriter Keys(const std::string& architecture, size_t n_layers = 8) {
  GgufWriter writer;
  const std::string a = architecture + ".";
  writer.String("general.architecture", architecture)
      .Uint(a + "context_length", 2048)
      .Uint(a + "embedding_length", 96)
      .Uint(a + "block_count", static_cast<uint32_t>(n_layers))
      .Uint(a + "feed_forward_length", 160)
      .Uint(a + "attention.head_count", 6)
      .Uint(a + "attention.key_length", 20)
      .Uint(a + "attention.value_length", 24)
      .Float(a + "attention.layer_norm_rms_epsilon", 1e-6f)
      .Float(a + "attention.layer_norm_epsilon", 1e-6f)
      .Uint(a + "vocab_size", 100);
  return writer;
}

ModelSpec Build(const GgufWriter& writer) { return BuildModelSpec(ReadHeader(writer.File())); }

std::vector<size_t> WindowsOf(const ModelSpec& spec) {
  std::vector<size_t> windows;
  for (const LayerSpec& layer : spec.layers) windows.push_back(layer.window);
  return windows;
}

}  // namespace

TEST_CASE("arch_table: a window is every layer's, one layer's in a period, or as an array says") {
  const auto windows = [](GgufWriter writer) { return WindowsOf(Build(writer)); };
  CHECK(windows(Keys("llama", 3).Uint("llama.attention.sliding_window", 9)) ==
        std::vector<size_t>{9, 9, 9});
  CHECK(windows(Keys("llama", 3).Uint("llama.attention.sliding_window", 2048)) ==
        std::vector<size_t>{0, 0, 0});
  CHECK(windows(Keys("llama", 3).Uints("llama.attention.sliding_window", {0, 7, 0})) ==
        std::vector<size_t>{0, 7, 0});
  CHECK(windows(Keys("gemma2", 4).Uint("gemma2.attention.sliding_window", 9)) ==
        std::vector<size_t>{9, 0, 9, 0});
  CHECK(windows(Keys("gemma3", 7).Uint("gemma3.attention.sliding_window", 9)) ==
        std::vector<size_t>{9, 9, 9, 9, 9, 0, 9});
  CHECK(windows(Keys("gemma3", 4)
                    .Uint("gemma3.attention.sliding_window", 9)
                    .Uint("gemma3.attention.sliding_window_pattern", 2)) ==
        std::vector<size_t>{9, 0, 9, 0});
  CHECK(windows(Keys("gpt-oss", 3)
                    .Uint("gpt-oss.attention.sliding_window", 9)
                    .Uints("gpt-oss.attention.sliding_window_pattern", {0, 1, 1})) ==
        std::vector<size_t>{0, 9, 9});
}

TEST_CASE("arch_table: gemma3's layers with a window have a rotary base of their own, unscaled") {
  GgufWriter writer = Keys("gemma3", 6);
  writer.Uint("gemma3.attention.sliding_window", 9)
      .Float("gemma3.rope.freq_base", 1e6f)
      .Float("gemma3.rope.scaling.factor", 8.0f);
  const ModelSpec spec = Build(writer);
  CHECK(spec.layers[0].rope.freq_base == 1e4);
  CHECK(spec.layers[0].rope.linear_scale == 1.0);
  CHECK(spec.layers[5].rope.freq_base == 1e6);
  CHECK(spec.layers[5].rope.linear_scale == 8.0);
  writer.Float("gemma3.rope.freq_base_swa", 5e4f);
  CHECK(Build(writer).layers[0].rope.freq_base == 5e4);
}

TEST_CASE("arch_table: cohere2 rotates only where there is a window, smollm3 not every fourth") {
  const ModelSpec cohere = Build(Keys("cohere2", 4).Uint("cohere2.attention.sliding_window", 9));
  const ModelSpec smollm = Build(Keys("smollm3", 4));
  for (size_t i = 0; i < 4; ++i) {
    CHECK((cohere.layers[i].rope.style == RopeStyle::kNone) == (i == 3));
    CHECK((smollm.layers[i].rope.style == RopeStyle::kNone) == (i == 3));
  }
}

TEST_CASE("arch_table: what gemma2 leaves unsaid, and its largest model's own scale") {
  const ModelSpec spec = Build(Keys("gemma2"));
  CHECK(spec.embedding_scale == doctest::Approx(std::sqrt(96.0)));
  CHECK(spec.logit_softcap == 30.0f);
  CHECK(spec.layers[0].attention_softcap == 50.0f);
  CHECK(spec.layers[0].attention_scale == doctest::Approx(1.0 / std::sqrt(20.0)));
  CHECK(spec.layers[0].activation == Activation::kGelu);
  const ModelSpec large = Build(Keys("gemma2", 46));
  CHECK(large.layers[0].attention_scale == doctest::Approx(1.0 / std::sqrt(96.0 / 6.0)));
}

TEST_CASE("arch_table: logit scales multiply, granite's divides; ALiBi and clamps are read") {
  CHECK(Build(Keys("command-r").Float("command-r.logit_scale", 0.25f)).logit_scale == 0.25f);
  CHECK(Build(Keys("granite").Float("granite.logit_scale", 8.0f)).logit_scale == 0.125f);
  CHECK(Build(Keys("bloom")).layers[0].alibi_max_bias == 8.0f);
  const ModelSpec mpt = Build(Keys("mpt")
                                  .Float("mpt.attention.max_alibi_bias", 4.0f)
                                  .Float("mpt.attention.clamp_kqv", 6.0f));
  CHECK(mpt.layers[0].alibi_max_bias == 4.0f);
  CHECK(mpt.layers[0].qkv_clamp == 6.0f);
  CHECK(Build(Keys("mpt")).layers[0].alibi_max_bias == 0.0f);
}

TEST_CASE("arch_table: YaRN's magnitude is 0.1 ln(factor) + 1, or none where scores are scaled") {
  GgufWriter writer = Keys("llama");
  writer.String("llama.rope.scaling.type", "yarn")
      .Float("llama.rope.scaling.factor", 32.0f)
      .Uint("llama.rope.scaling.original_context_length", 512);
  const RopeSpec rope = Build(writer).layers[0].rope;
  CHECK(rope.scaling == RopeScaling::kYarn);
  CHECK(rope.linear_scale == 32.0);
  CHECK(rope.n_ctx_original == 512);
  CHECK(rope.magnitude == doctest::Approx(1.34657).epsilon(1e-5));
  writer.Float("llama.rope.scaling.attn_factor", 2.0f);
  CHECK(Build(writer).layers[0].rope.magnitude == doctest::Approx(2 * 1.34657).epsilon(1e-5));
}

TEST_CASE("arch_table: experts and latents of deepseek2") {
  GgufWriter writer = Keys("deepseek2", 3);
  writer.Uint("deepseek2.attention.kv_lora_rank", 40)
      .Uint("deepseek2.attention.key_length_mla", 24)
      .Uint("deepseek2.attention.value_length_mla", 14)
      .Uint("deepseek2.rope.dimension_count", 8)
      .Uint("deepseek2.leading_dense_block_count", 1)
      .Uint("deepseek2.expert_count", 6)
      .Uint("deepseek2.expert_used_count", 2)
      .Uint("deepseek2.expert_shared_count", 2)
      .Uint("deepseek2.expert_feed_forward_length", 30)
      .Uint("deepseek2.expert_gating_func", 2)
      .Bool("deepseek2.expert_weights_norm", true)
      .Float("deepseek2.rope.scaling.factor", 40.0f)
      .String("deepseek2.rope.scaling.type", "yarn")
      .Float("deepseek2.rope.scaling.yarn_log_multiplier", 0.0707f);
  const ModelSpec spec = Build(writer);
  CHECK(spec.layers[0].feed_forward == FeedForwardKind::kGated);
  CHECK(spec.layers[0].heads == HeadLayout{6, 1, 48, 40, true});
  CHECK(spec.layers[0].latent.d_nope == 16);
  CHECK(spec.layers[0].latent.d_v == 14);
  CHECK(spec.layers[0].rope.magnitude == 1.0);
  const double mscale = 1.0 + 0.0707 * std::log(40.0);
  CHECK(spec.layers[0].attention_scale ==
        doctest::Approx(mscale * mscale / std::sqrt(24.0)).epsilon(1e-6));
  const ExpertsSpec& experts = spec.layers[1].experts;
  CHECK(spec.layers[1].feed_forward == FeedForwardKind::kExperts);
  CHECK(experts.n == 6);
  CHECK(experts.n_used == 2);
  CHECK(experts.d_ff == 30);
  CHECK(experts.d_ff_shared == 60);
  CHECK(experts.gating == ExpertGating::kSigmoid);
  CHECK(experts.sums_to_one);
  writer.Uint("deepseek2.expert_used_count", 7);
  CHECK(Detail(ErrorOf([&] { Build(writer); }), "key") == "deepseek2.expert_used_count");
}

TEST_CASE("arch_table: deepseek2's experts in one group are served, those of several refused") {
  const auto keys = [](uint32_t n_groups, uint32_t n_used) {
    GgufWriter writer = Keys("deepseek2", 3);
    writer.Uint("deepseek2.attention.kv_lora_rank", 40)
        .Uint("deepseek2.rope.dimension_count", 8)
        .Uint("deepseek2.expert_count", 16)
        .Uint("deepseek2.expert_used_count", 2)
        .Uint("deepseek2.expert_group_count", n_groups)
        .Uint("deepseek2.expert_group_used_count", n_used);
    return writer;
  };
  CHECK(Build(keys(1, 1)).layers[0].experts.n == 16);
  const Error error = ErrorOf([&] { Build(keys(8, 4)); });
  CHECK(error.code() == ErrorCode::kUnsupported);
  CHECK(Detail(error, "key") == "deepseek2.expert_group_count");
  CHECK(Detail(error, "mechanism") == "experts chosen by groups");
}

}  // namespace headlight::testing
