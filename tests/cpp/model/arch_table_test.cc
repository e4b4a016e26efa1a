// BuildModelSpec: what the keys mean, what is assumed without them, what is refused.
#include "model/arch_table.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "gguf_reading.h"
#include "gguf_writer.h"
#include "support.h"

namespace headlight::testing {
namespace {

// The keys that every model must have, and no other; one layer more than shapes need.
GgufWriter RequiredKeys(const std::string& architecture = "llama") {
  GgufWriter writer;
  const std::string a = architecture + ".";
  writer.String("general.architecture", architecture)
      .Uint(a + "context_length", 2048)
      .Uint(a + "embedding_length", 96)
      .Uint(a + "block_count", 4)
      .Uint(a + "feed_forward_length", 160)
      .Uint(a + "attention.head_count", 6)
      .Float(a + "attention.layer_norm_rms_epsilon", 1e-6f)
      .Float(a + "attention.layer_norm_epsilon", 1e-6f)
      .Uint(a + "vocab_size", 100);
  if (architecture == "deepseek2") {
    writer.Uint(a + "attention.kv_lora_rank", 20)
        .Uint(a + "attention.key_length", 24)
        .Uint(a + "attention.value_length", 14)
        .Uint(a + "rope.dimension_count", 8);
  }
  return writer;
}

ModelSpec Build(const GgufWriter& writer) { return BuildModelSpec(ReadHeader(writer.File())); }

struct Refusal {
  const char* name;
  ErrorCode code;
  std::function<void(GgufWriter&)> change;
  const char* key;  // in the details and in the message
};

constexpr ErrorCode kBad = ErrorCode::kBadModel;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

void CheckRefusal(const Refusal& refusal) {
  const std::string name = refusal.name;
  CAPTURE(name);
  GgufWriter writer = RequiredKeys();
  refusal.change(writer);
  const Error error = ErrorOf([&] { Build(writer); });
  CAPTURE(error.message());
  CHECK(error.code() == refusal.code);
  CHECK(Detail(error, "key") == refusal.key);
  CHECK(Contains(error.message(), refusal.key));
}

}  // namespace

TEST_CASE("arch_table: keys that are missing have the defaults of the format's documentation") {
  const ModelSpec spec = Build(RequiredKeys());
  CHECK(spec.architecture == "llama");
  CHECK(spec.name == "llama");
  CHECK(spec.n_ctx_train == 2048);
  CHECK(spec.d_model == 96);
  CHECK(spec.vocab_size == 100);
  CHECK(spec.norm_eps == 1e-6f);
  CHECK(spec.embedding_scale == 1.0f);
  CHECK(spec.tied_head);
  REQUIRE(spec.layers.size() == 4);
  for (const LayerSpec& layer : spec.layers) {
    CHECK(layer.heads == HeadLayout{6, 6, 16, 16});  // kv = q; widths 96 / 6
    CHECK(layer.d_ff == 160);
    CHECK(layer.rope.style == RopeStyle::kInterleaved);
    CHECK(layer.rope.n_rot == 16);  // d_qk
    CHECK(layer.rope.freq_base == 10000.0);
    CHECK(layer.rope.linear_scale == 1.0);
    CHECK(layer.rope.freq_factors.empty());
    CHECK(layer.attention_scale == 0.25f);  // 1 / sqrt(16)
    CHECK(layer.attention_softcap == 0.0f);
    CHECK(layer.window == 0);
    CHECK(layer.feed_forward == FeedForwardKind::kGated);
  }
}

TEST_CASE("arch_table: keys that are there are honoured") {
  GgufWriter writer = RequiredKeys();
  writer.String("general.name", "A model")
      .Uint("llama.attention.head_count_kv", 2)
      .Uint("llama.attention.key_length", 24)
      .Uint("llama.attention.value_length", 40)
      .Uint("llama.rope.dimension_count", 8)
      .Float("llama.rope.freq_base", 500000.0f)
      .String("llama.rope.scaling.type", "linear")
      .Float("llama.rope.scaling.factor", 4.0f)
      .Float("llama.attention.scale", 0.5f)
      .Float("llama.embedding_scale", 12.0f);
  const ModelSpec spec = Build(writer);
  CHECK(spec.name == "A model");
  CHECK(spec.embedding_scale == 12.0f);
  for (const LayerSpec& layer : spec.layers) {
    CHECK(layer.heads == HeadLayout{6, 2, 24, 40});
    CHECK(layer.rope.n_rot == 8);
    CHECK(layer.rope.freq_base == 500000.0);
    CHECK(layer.rope.linear_scale == 4.0);
    CHECK(layer.attention_scale == 0.5f);
  }
}

TEST_CASE(
    "arch_table: the attention scale is one over the root of d_qk, not of d_v or d_model / "
    "n_heads") {
  GgufWriter writer = RequiredKeys();
  writer.Uint("llama.attention.key_length", 48).Uint("llama.attention.value_length", 64);
  CHECK(Build(writer).layers[0].attention_scale == static_cast<float>(1.0 / std::sqrt(48.0)));
}

TEST_CASE("arch_table: rotary scaling, old and new keys") {
  const auto scale = [](auto&& change) {
    GgufWriter writer = RequiredKeys();
    change(writer);
    return Build(writer).layers[0].rope.linear_scale;
  };
  CHECK(scale([](GgufWriter& w) { w.Float("llama.rope.scale_linear", 2.0f); }) == 2.0);
  CHECK(scale([](GgufWriter& w) { w.Float("llama.rope.scaling.factor", 3.0f); }) ==
        3.0);  // no type: linear
  CHECK(scale([](GgufWriter& w) {
          w.Float("llama.rope.scaling.factor", 3.0f).Float("llama.rope.scale_linear", 2.0f);
        }) == 3.0);
  CHECK(scale([](GgufWriter& w) { w.Float("llama.rope.scaling.factor", 0.0f); }) ==
        1.0);  // not given
  CHECK(scale([](GgufWriter& w) {
          w.String("llama.rope.scaling.type", "none").Float("llama.rope.scaling.factor", 3.0f);
        }) == 1.0);
}

TEST_CASE("arch_table: head counts and feed-forward widths may be given per layer") {
  GgufWriter writer = RequiredKeys();
  writer.Uints("llama.attention.head_count", {6, 4, 6, 8})
      .Ints("llama.attention.head_count_kv", {3, 1, 6, 2})
      .Uints("llama.feed_forward_length", {160, 32, 64, 96});
  const ModelSpec spec = Build(writer);
  CHECK(spec.layers[0].heads == HeadLayout{6, 3, 16, 16});
  CHECK(spec.layers[1].heads == HeadLayout{4, 1, 16, 16});
  CHECK(spec.layers[2].heads == HeadLayout{6, 6, 16, 16});
  CHECK(spec.layers[3].heads == HeadLayout{8, 2, 16, 16});
  CHECK(spec.layers[3].d_ff == 96);
}

TEST_CASE("arch_table: the vocabulary is the key's, the tokens', or what the embedding holds") {
  const std::vector<std::string> tokens(37, "t");
  GgufWriter none = RequiredKeys();
  none.Remove("llama.vocab_size").Strings("tokenizer.ggml.tokens", tokens);
  CHECK(Build(none).vocab_size == 37);

  GgufWriter both = RequiredKeys();
  both.Strings("tokenizer.ggml.tokens", tokens);
  CHECK(Build(both).vocab_size == 100);
  both.Tensor("token_embd.weight", TensorType::kF32, 37, std::vector<float>(size_t{37} * 96));
  CHECK(Build(both).vocab_size == 37);

  GgufWriter neither = RequiredKeys();
  neither.Remove("llama.vocab_size");
  CHECK(Detail(ErrorOf([&] { Build(neither); }), "key") == "llama.vocab_size");
}

TEST_CASE("arch_table: each architecture reads keys of its own name") {
  REQUIRE_FALSE(Architectures().empty());
  for (const ArchRow& row : Architectures()) {
    CAPTURE(std::string(row.name));
    const ModelSpec spec = Build(RequiredKeys(row.name));
    CHECK(spec.architecture == row.name);
    CHECK(FindArchitecture(row.name) == &row);
    for (size_t i = 0; i < spec.layers.size(); ++i) {
      const bool rotates = row.unrotated_every == 0 || (i + 1) % row.unrotated_every != 0;
      const bool has_window = row.window.size != 0 && (i + 1) % row.window.period != 0;
      const bool rotates_here = rotates && (row.window.full_rotates || has_window);
      CHECK(spec.layers[i].rope.style == (rotates_here ? row.rope_style : RopeStyle::kNone));
    }
  }
  CHECK(Build(RequiredKeys("exaone")).layers[0].rope.style == RopeStyle::kHalfSplit);
  CHECK(Build(RequiredKeys("smollm3")).layers[3].rope.style == RopeStyle::kNone);
  CHECK(FindArchitecture("llama ") == nullptr);
}

TEST_CASE("arch_table: an architecture that is not served is named, with those that are") {
  for (const char* name : {"gemma3n", "gemma4", "mamba", "Llama", "", "llama.evil"}) {
    const Error error = ErrorOf([&] { Build(RequiredKeys(name)); });
    CHECK(error.code() == kUnsupported);
    CHECK(Detail(error, "architecture") == name);
    CHECK(Contains(error.message(), "llama, "));
  }
}

TEST_CASE("arch_table: required keys that are missing are named") {
  for (const char* key : {"general.architecture", "llama.context_length", "llama.embedding_length",
                          "llama.block_count", "llama.feed_forward_length",
                          "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
    CheckRefusal({key, kBad, [=](GgufWriter& w) { w.Remove(key); }, key});
  }
}

TEST_CASE("arch_table: counts and widths out of range are refused by key") {
  const Refusal refusals[] = {
      {"no layers", kBad, [](GgufWriter& w) { w.Uint("llama.block_count", 0); },
       "llama.block_count"},
      {"2^32 layers", kBad, [](GgufWriter& w) { w.Uint("llama.block_count", 4294967295u); },
       "llama.block_count"},
      {"no width", kBad, [](GgufWriter& w) { w.Uint("llama.embedding_length", 0); },
       "llama.embedding_length"},
      {"huge width", kBad, [](GgufWriter& w) { w.Uint("llama.embedding_length", 65537); },
       "llama.embedding_length"},
      {"huge d_ff", kBad, [](GgufWriter& w) { w.Uint("llama.feed_forward_length", 1048577); },
       "llama.feed_forward_length"},
      {"no heads", kBad, [](GgufWriter& w) { w.Uint("llama.attention.head_count", 0); },
       "llama.attention.head_count"},
      {"huge heads", kBad, [](GgufWriter& w) { w.Uint("llama.attention.head_count", 1025); },
       "llama.attention.head_count"},
      {"no kv heads", kBad, [](GgufWriter& w) { w.Uint("llama.attention.head_count_kv", 0); },
       "llama.attention.head_count_kv"},
      {"kv does not divide q", kBad,
       [](GgufWriter& w) { w.Uint("llama.attention.head_count_kv", 4); },
       "llama.attention.head_count_kv"},
      {"kv above q", kBad, [](GgufWriter& w) { w.Uint("llama.attention.head_count_kv", 12); },
       "llama.attention.head_count_kv"},
      {"q does not divide the width", kBad,
       [](GgufWriter& w) { w.Uint("llama.attention.head_count", 5); },
       "llama.attention.head_count"},
      {"huge key width", kBad, [](GgufWriter& w) { w.Uint("llama.attention.key_length", 4097); },
       "llama.attention.key_length"},
      {"no value width", kBad, [](GgufWriter& w) { w.Uint("llama.attention.value_length", 0); },
       "llama.attention.value_length"},
  };
  for (const Refusal& refusal : refusals) CheckRefusal(refusal);
}

TEST_CASE("arch_table: rotation, context, vocabulary and epsilon out of range are refused by key") {
  const Refusal refusals[] = {
      {"odd n_rot", kBad, [](GgufWriter& w) { w.Uint("llama.rope.dimension_count", 7); },
       "llama.rope.dimension_count"},
      {"n_rot above d_qk", kBad, [](GgufWriter& w) { w.Uint("llama.rope.dimension_count", 18); },
       "llama.rope.dimension_count"},
      {"n_rot 0", kBad, [](GgufWriter& w) { w.Uint("llama.rope.dimension_count", 0); },
       "llama.rope.dimension_count"},
      {"no context", kBad, [](GgufWriter& w) { w.Uint("llama.context_length", 0); },
       "llama.context_length"},
      {"huge context", kBad, [](GgufWriter& w) { w.Uint("llama.context_length", 4294967295u); },
       "llama.context_length"},
      {"no vocabulary", kBad, [](GgufWriter& w) { w.Uint("llama.vocab_size", 0); },
       "llama.vocab_size"},
      {"huge vocabulary", kBad, [](GgufWriter& w) { w.Uint("llama.vocab_size", 4194305); },
       "llama.vocab_size"},
      {"eps 0", kBad,
       [](GgufWriter& w) { w.Float("llama.attention.layer_norm_rms_epsilon", 0.0f); },
       "llama.attention.layer_norm_rms_epsilon"},
      {"eps -1", kBad,
       [](GgufWriter& w) { w.Float("llama.attention.layer_norm_rms_epsilon", -1.0f); },
       "llama.attention.layer_norm_rms_epsilon"},
      {"eps NaN", kBad,
       [](GgufWriter& w) { w.Float("llama.attention.layer_norm_rms_epsilon", NAN); },
       "llama.attention.layer_norm_rms_epsilon"},
      {"base inf", kBad, [](GgufWriter& w) { w.Float("llama.rope.freq_base", INFINITY); },
       "llama.rope.freq_base"},
      {"factor -2", kBad, [](GgufWriter& w) { w.Float("llama.rope.scaling.factor", -2.0f); },
       "llama.rope.scaling.factor"},
  };
  for (const Refusal& refusal : refusals) CheckRefusal(refusal);
}

TEST_CASE("arch_table: values of the wrong type or length are refused by key") {
  const Refusal refusals[] = {
      {"width in words", kBad, [](GgufWriter& w) { w.String("llama.embedding_length", "96"); },
       "llama.embedding_length"},
      {"3 counts for 4 layers", kBad,
       [](GgufWriter& w) { w.Uints("llama.attention.head_count", {6, 6, 6}); },
       "llama.attention.head_count"},
      {"5 counts for 4 layers", kBad,
       [](GgufWriter& w) { w.Uints("llama.feed_forward_length", {1, 1, 1, 1, 1}); },
       "llama.feed_forward_length"},
      {"tokens that are numbers", kBad,
       [](GgufWriter& w) { w.Uints("tokenizer.ggml.tokens", {1}); }, "tokenizer.ggml.tokens"},
  };
  for (const Refusal& refusal : refusals) CheckRefusal(refusal);
}

TEST_CASE("arch_table: bad elements of per-layer arrays are refused by key and index") {
  for (const float bad : {0.0f, -1.0f, 2.5f, 2048.0f, NAN, INFINITY}) {
    GgufWriter writer = RequiredKeys();
    writer.Floats("llama.attention.head_count", {6, 6, bad, 6});
    const Error error = ErrorOf([&] { Build(writer); });
    CHECK(error.code() == kBad);
    CHECK(Detail(error, "key") == "llama.attention.head_count[2]");
  }
}

TEST_CASE("arch_table: mechanisms that are not served are refused by key") {
  const Refusal refusals[] = {
      {"experts by groups", kUnsupported,
       [](GgufWriter& w) { w.Uint("llama.expert_group_count", 8); }, "llama.expert_group_count"},
      {"latent attention", kUnsupported,
       [](GgufWriter& w) { w.Uint("llama.attention.kv_lora_rank", 8); },
       "llama.attention.kv_lora_rank"},
      {"unknown rotary scaling", kUnsupported,
       [](GgufWriter& w) { w.String("llama.rope.scaling.type", "su"); }, "llama.rope.scaling.type"},
      {"bidirectional", kUnsupported,
       [](GgufWriter& w) { w.Bool("llama.attention.causal", false); }, "llama.attention.causal"},
      {"unknown", kUnsupported, [](GgufWriter& w) { w.Uint("llama.attention.future", 1); },
       "llama.attention.future"},
      {"adapter", kUnsupported, [](GgufWriter& w) { w.String("general.type", "adapter"); },
       "general.type"},
      {"block version", kUnsupported,
       [](GgufWriter& w) { w.Uint("general.quantization_version", 3); },
       "general.quantization_version"},
  };
  for (const Refusal& refusal : refusals) CheckRefusal(refusal);
}

TEST_CASE("arch_table: keys that switch mechanisms off are accepted") {
  GgufWriter off = RequiredKeys();
  off.Uint("llama.expert_count", 0)
      .Uint("llama.expert_used_count", 0)
      .Uint("llama.attention.sliding_window", 2048)  // as wide as the context
      .String("llama.rope.scaling.type", "none")
      .Float("llama.rope.scaling.attn_factor", 1.0f)
      .Bool("llama.rope.scaling.finetuned", true)
      .Uint("llama.rope.scaling.original_context_length", 2048)
      .Float("llama.attn_logit_softcapping", 0.0f)
      .Float("llama.logit_scale", 1.0f)
      .Bool("llama.attention.causal", true)
      .Bool("llama.use_parallel_residual", false)
      .String("llama.tensor_data_layout", "Meta AI original pth")
      .String("general.type", "model")
      .Uint("general.quantization_version", 2)
      .Uint("llamabar.expert_count", 8)  // not a key of llama
      .Uint("other.expert_count", 8);
  CHECK(Build(off).layers.size() == 4);
}

}  // namespace headlight::testing
