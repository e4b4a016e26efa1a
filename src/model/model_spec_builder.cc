// BuildModelSpec of arch_table.h: a family's row and a file's keys make a spec.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "gguf/gguf_error.h"
#include "model/arch_keys.h"
#include "model/arch_table.h"
#include "model/model_keys.h"

namespace headlight {
namespace {

constexpr int kQuantizationVersion =
    2;  // block layouts since May 2023; older files predate GGUF v2

const ArchRow& RequireArchitecture(const GgufReader& header) {
  constexpr const char* kTypeKey = "general.type";
  if (header.Has(kTypeKey) && header.GetString(kTypeKey) != "model") {
    ThrowUnsupported("this file is of type " + Quoted(header.GetString(kTypeKey)) +
                         " (key 'general.type'), not a model; load the model itself",
                     {{"key", kTypeKey}});
  }
  const std::string& name = header.GetString("general.architecture");
  if (const ArchRow* row = FindArchitecture(name)) return *row;
  std::string served;
  for (const ArchRow& row : Architectures())
    served += (served.empty() ? "" : ", ") + std::string(row.name);
  ThrowUnsupported(
      "architecture " + Quoted(name) + " is not served; Headlight runs " + served,
      {{"key", "general.architecture"}, {"architecture", name}, {"supported", served}});
}

void CheckQuantizationVersion(const GgufReader& header) {
  constexpr const char* kKey = "general.quantization_version";
  const uint64_t version = header.GetUint(kKey, kQuantizationVersion);
  if (version == kQuantizationVersion) return;
  ThrowUnsupported("key 'general.quantization_version' is " + std::to_string(version) +
                       ", only version " + std::to_string(kQuantizationVersion) +
                       " of the block formats is known; quantise the model again",
                   {{"key", kKey}});
}

// The key, else the number of tokens. Where the two differ, the number of embedding rows decides:
// some fine-tunes added tokens and left the key as it was.
size_t VocabSize(const GgufReader& header, const ModelKeys& keys) {
  constexpr const char* kTokens = "tokenizer.ggml.tokens";
  const GgufStringArray* tokens = header.FindStrings(kTokens);
  if (tokens == nullptr) return keys.Count("vocab_size", kMaxVocab);
  const size_t n_tokens = tokens->count();
  const size_t n_key = keys.Count("vocab_size", kMaxVocab, n_tokens);
  const GgufTensor* embedding = header.FindTensor("token_embd.weight");
  const bool tokens_fit =
      embedding != nullptr && embedding->n_rows() == n_tokens && n_tokens <= kMaxVocab;
  return tokens_fit ? n_tokens : n_key;
}

// d_model / n_heads of the first layer, the format's default for both head widths.
uint64_t DefaultHeadWidth(const ModelKeys& keys, size_t d_model, size_t n_heads) {
  if (d_model % n_heads == 0) return d_model / n_heads;
  if (keys.Has("attention.key_length") && keys.Has("attention.value_length")) return 0;  // not used
  const std::string key = keys.Name("attention.head_count");
  ThrowBadModel("key " + Quoted(key) + " of " + std::to_string(n_heads) +
                    " does not divide the width of " + std::to_string(d_model) +
                    ", and no attention.key_length and value_length are given;"
                    " convert the model again",
                {{"key", key}});
}

std::vector<HeadLayout> BuildHeads(const ModelKeys& keys, size_t d_model, size_t n_layers) {
  const std::vector<size_t> n_q = keys.CountPerLayer("attention.head_count", kMaxHeads, n_layers);
  std::vector<size_t> n_kv = n_q;
  if (keys.Has("attention.head_count_kv")) {
    n_kv = keys.CountPerLayer("attention.head_count_kv", kMaxHeads, n_layers);
  }
  const uint64_t width = DefaultHeadWidth(keys, d_model, n_q[0]);
  const size_t d_qk = keys.Count("attention.key_length", kMaxHeadWidth, width);
  const size_t d_v = keys.Count("attention.value_length", kMaxHeadWidth, width);
  std::vector<HeadLayout> heads(n_layers);
  for (size_t i = 0; i < n_layers; ++i) {
    heads[i] = {n_q[i], n_kv[i], d_qk, d_v};
    if (n_q[i] % n_kv[i] == 0) continue;
    const std::string key = keys.Name("attention.head_count_kv");
    ThrowBadModel("key " + Quoted(key) + " is " + std::to_string(n_kv[i]) + " in layer " +
                      std::to_string(i) + ", which does not divide its " + std::to_string(n_q[i]) +
                      " query heads; convert the model again",
                  {{"key", key}});
  }
  return heads;
}

// 1 / sqrt(d_qk), or what the key or the family says.
double AttentionScale(const ModelKeys& keys, const ArchRow& arch, const ModelSpec& spec,
                      const HeadLayout& heads) {
  double width = static_cast<double>(heads.d_qk);
  if (arch.n_wide_layers != 0 && spec.layers.size() == arch.n_wide_layers) {
    width = static_cast<double>(spec.d_model) / static_cast<double>(heads.n_q_heads);
  }
  return keys.Positive("attention.scale", 1.0 / std::sqrt(width));
}

// The rotation of a layer by whether it has a window.
RopeSpec LayerRope(const ModelKeys& keys, const ArchRow& arch, const RopeSpec& rope, size_t window,
                   size_t layer) {
  if (arch.unrotated_every != 0 && (layer + 1) % arch.unrotated_every == 0) return {};
  const WindowRow& row = arch.window;
  if (window == 0) return row.full_rotates ? rope : RopeSpec();
  RopeSpec windowed = rope;
  if (!row.windowed_is_scaled) {
    windowed.scaling = RopeScaling::kNone;
    windowed.linear_scale = 1.0;
    windowed.magnitude = 1.0;
  }
  const double base = row.windowed_freq_base != 0.0 ? row.windowed_freq_base : rope.freq_base;
  if (rope.style != RopeStyle::kNone) {
    windowed.freq_base = keys.Positive("rope.freq_base_swa", base);
  }
  return windowed;
}

// Layers of latent attention: one KV head, whose keys hold their values.
std::vector<HeadLayout> LatentHeads(const ModelKeys& keys, const LatentSpec& latent,
                                    size_t n_layers) {
  const std::vector<size_t> n_q = keys.CountPerLayer("attention.head_count", kMaxHeads, n_layers);
  std::vector<HeadLayout> heads(n_layers);
  for (size_t i = 0; i < n_layers; ++i) {
    heads[i] = {n_q[i], 1, latent.rank + latent.d_rope, latent.rank, true};
  }
  return heads;
}

// Which of the tensors of latent attention a file must have.
TensorUse LatentTensors(const LatentSpec& latent, TensorUse use) {
  constexpr TensorSet kDirect = {TensorRole::kQ};
  constexpr TensorSet kCompressed = {TensorRole::kQA, TensorRole::kQANorm, TensorRole::kQB};
  const bool is_compressed = latent.q_rank != 0;
  use.always = use.always | (is_compressed ? kCompressed : kDirect);
  use.maybe = use.maybe - (kDirect | kCompressed);
  return use;
}

// Makes a layer one with experts.
void UseExperts(const ExpertsSpec& experts, const ArchRow& arch, LayerSpec& layer) {
  constexpr TensorSet kDense = {TensorRole::kGate,     TensorRole::kUp,     TensorRole::kDown,
                                TensorRole::kGateBias, TensorRole::kUpBias, TensorRole::kDownBias};
  layer.experts = experts;
  layer.feed_forward = FeedForwardKind::kExperts;
  layer.tensors.always = (layer.tensors.always - kDense) | arch.experts.always;
  layer.tensors.maybe = (layer.tensors.maybe - kDense) | arch.experts.maybe;
}

void BuildLayers(const ModelKeys& keys, const ArchRow& arch, ModelSpec& spec) {
  const size_t n_layers = keys.Count("block_count", kMaxLayers);
  LayerSpec layer;
  if (arch.is_latent) layer.latent = BuildLatent(keys);
  const std::vector<HeadLayout> heads = arch.is_latent ? LatentHeads(keys, layer.latent, n_layers)
                                                       : BuildHeads(keys, spec.d_model, n_layers);
  const std::vector<size_t> d_ff =
      keys.CountPerLayer("feed_forward_length", kMaxFeedForward, n_layers);
  const std::vector<size_t> windows = BuildWindows(keys, arch, n_layers);
  const RopeSpec rope = BuildRope(keys, arch, heads[0].d_qk, spec.n_ctx_train);
  const ExpertsSpec experts = BuildExperts(keys, arch, d_ff[0]);
  const size_t n_dense = keys.CountOrNone("leading_dense_block_count", kMaxLayers);
  spec.layers.resize(n_layers);
  const double scale =
      arch.is_latent ? LatentScale(keys, layer.latent) : AttentionScale(keys, arch, spec, heads[0]);
  layer.tensors = arch.is_latent ? LatentTensors(layer.latent, arch.layer) : arch.layer;
  layer.attention_scale = static_cast<float>(scale);
  layer.attention_softcap =
      static_cast<float>(keys.Positive("attn_logit_softcapping", arch.attention_softcap));
  layer.alibi_max_bias =
      static_cast<float>(keys.Positive("attention.max_alibi_bias", arch.alibi_max_bias));
  layer.qkv_clamp = static_cast<float>(keys.PositiveOrNone("attention.clamp_kqv"));
  layer.qk_norm = arch.qk_norm;
  layer.is_parallel = keys.Flag("use_parallel_residual", arch.is_parallel);
  layer.residual_scale = static_cast<float>(keys.Positive("residual_scale", 1.0));
  const bool is_gated = arch.layer.Has(TensorRole::kGate);
  layer.feed_forward = is_gated ? FeedForwardKind::kGated : FeedForwardKind::kPlain;
  layer.activation = arch.activation;
  for (size_t i = 0; i < n_layers; ++i) {
    layer.heads = heads[i];
    layer.rope = LayerRope(keys, arch, rope, windows[i], i);
    layer.window = windows[i] < spec.n_ctx_train ? windows[i] : 0;  // as wide as the context: none
    layer.d_ff = d_ff[i];
    spec.layers[i] = layer;
    if (experts.n != 0 && i >= n_dense) UseExperts(experts, arch, spec.layers[i]);
  }
}

// What multiplies the logits.
float LogitScale(const ModelKeys& keys, const ArchRow& arch) {
  const double scale = keys.Positive("logit_scale", 1.0);
  return static_cast<float>(arch.divides_logits ? 1.0 / scale : scale);
}

}  // namespace

ModelSpec BuildModelSpec(const GgufReader& header) {
  const ArchRow& arch = RequireArchitecture(header);
  CheckQuantizationVersion(header);
  const ModelKeys keys(header, arch.name);
  ModelSpec spec;
  spec.architecture = arch.name;
  spec.name = header.Has("general.name") ? header.GetString("general.name") : spec.architecture;
  spec.n_ctx_train = keys.Count("context_length", kMaxContext);
  CheckArchitectureKeys(header, arch);
  spec.d_model = keys.Count("embedding_length", kMaxModelWidth);
  spec.vocab_size = VocabSize(header, keys);
  spec.tensors = arch.model;
  spec.norm = arch.norm;
  spec.norm_eps = static_cast<float>(keys.Positive(arch.norm == NormKind::kRms
                                                       ? "attention.layer_norm_rms_epsilon"
                                                       : "attention.layer_norm_epsilon"));
  const double root = std::sqrt(static_cast<double>(spec.d_model));
  spec.embedding_scale =
      static_cast<float>(keys.Positive("embedding_scale", arch.scales_embedding ? root : 1.0));
  spec.positions = arch.positions;
  spec.logit_scale = LogitScale(keys, arch);
  spec.logit_softcap =
      static_cast<float>(keys.Positive("final_logit_softcapping", arch.logit_softcap));
  spec.tied_head = header.FindTensor("output.weight") == nullptr;
  BuildLayers(keys, arch, spec);
  return spec;
}

}  // namespace headlight
