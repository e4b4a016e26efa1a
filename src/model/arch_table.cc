#include "model/arch_table.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gguf/gguf_error.h"
#include "model/arch_keys.h"

namespace headlight {
namespace {

// "llama" also names Llama 2 and 3, Mistral, TinyLlama, SmolLM and SmolLM2. Pairs: converters of
// the "llama" kind permute Q and K so that the pairs are neighbours (2i, 2i + 1); those of the
// half-split kind leave them as trained.
constexpr ArchRow kArchitectures[] = {
    {"llama", RopeStyle::kInterleaved, 0, true},
    {"smollm3", RopeStyle::kInterleaved, 4, false},
    {"ernie4_5", RopeStyle::kInterleaved, 0, false},
    {"internlm2", RopeStyle::kInterleaved, 0, false},
    {"xverse", RopeStyle::kInterleaved, 0, false},
    {"exaone", RopeStyle::kHalfSplit, 0, true},
};

// Limits of a spec: several times the largest open model, so that products of two stay far below
// 2^53 and a damaged number is caught here and not as an allocation.
constexpr uint64_t kMaxLayers = 1024;           // 126 in the deepest
constexpr uint64_t kMaxModelWidth = 1u << 16;   // 16,384 in the widest
constexpr uint64_t kMaxFeedForward = 1u << 20;  // 53,248
constexpr uint64_t kMaxHeads = 1024;            // 128
constexpr uint64_t kMaxHeadWidth = 4096;        // 576
constexpr uint64_t kMaxVocab = 1u << 22;        // 262,144
constexpr uint64_t kMaxContext = 1u << 24;      // 10,485,760
constexpr double kDefaultFreqBase = 10000.0;    // arXiv 2104.09864, and the format's documentation

constexpr int kQuantizationVersion =
    2;  // block layouts since May 2023; older files predate GGUF v2

// The keys of one architecture.
class Keys {
 public:
  Keys(const GgufReader& header, std::string prefix)
      : header_(header), prefix_(std::move(prefix)) {}

  std::string Name(std::string_view suffix) const { return prefix_ + "." + std::string(suffix); }
  bool Has(std::string_view suffix) const { return header_.Has(Name(suffix)); }

  // 1 to max.
  size_t Count(std::string_view suffix, uint64_t max, std::optional<uint64_t> fallback = {}) const {
    const std::string key = Name(suffix);
    return Checked(key, header_.GetUint(key, fallback), max);
  }

  // One number for all layers, or an array of one a layer.
  std::vector<size_t> CountPerLayer(std::string_view suffix, uint64_t max, size_t n_layers) const {
    const std::string key = Name(suffix);
    const auto it = header_.values().find(key);
    if (it == header_.values().end() || !std::holds_alternative<GgufNumberArray>(it->second)) {
      return std::vector<size_t>(n_layers, Count(suffix, max));
    }
    const auto& array = std::get<GgufNumberArray>(it->second);
    if (array.count() != n_layers) {
      ThrowBadModel("key " + Quoted(key) + " has " + std::to_string(array.count()) +
                        " values for " + std::to_string(n_layers) +
                        " layers; convert the model again",
                    {{"key", key}});
    }
    std::vector<size_t> counts(n_layers);
    for (size_t i = 0; i < n_layers; ++i) {
      const double value = array.at(i);
      const bool is_count =
          value >= 1.0 && value <= static_cast<double>(max) && value == std::floor(value);
      if (!is_count) ThrowRange(key + "[" + std::to_string(i) + "]", std::to_string(value), max);
      counts[i] = static_cast<size_t>(value);
    }
    return counts;
  }

  // Finite and > 0; 0 stands for "not given" in some writers and gives the default, if there is
  // one.
  double Positive(std::string_view suffix, std::optional<double> fallback = {}) const {
    const std::string key = Name(suffix);
    const double value = header_.GetFloat(key, fallback);
    if (value == 0.0 && fallback) return *fallback;
    // What the kernels use must be a normal float. NaN compares false.
    if (value >= std::numeric_limits<float>::min() && value <= std::numeric_limits<float>::max())
      return value;
    ThrowBadModel("key " + Quoted(key) + " is " + std::to_string(value) +
                      ", expected a finite number above 0; convert the model again",
                  {{"key", key}});
  }

 private:
  static size_t Checked(const std::string& key, uint64_t value, uint64_t max) {
    if (value < 1 || value > max) ThrowRange(key, std::to_string(value), max);
    return static_cast<size_t>(value);
  }
  [[noreturn]] static void ThrowRange(const std::string& key, const std::string& value,
                                      uint64_t max) {
    ThrowBadModel("key " + Quoted(key) + " is " + value + ", expected 1 to " + std::to_string(max) +
                      "; the file is damaged, fetch or convert it again",
                  {{"key", key}, {"value", value}});
  }

  const GgufReader& header_;
  std::string prefix_;
};

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
  for (const ArchRow& row : kArchitectures)
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
size_t VocabSize(const GgufReader& header, const Keys& keys) {
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

RopeSpec BuildRope(const GgufReader& header, const Keys& keys, const ArchRow& arch, size_t d_qk) {
  RopeSpec rope;
  rope.style = arch.rope_style;
  rope.n_rot = keys.Count("rope.dimension_count", kMaxHeadWidth, d_qk);
  if (rope.n_rot % 2 != 0 || rope.n_rot > d_qk) {
    const std::string key = keys.Name("rope.dimension_count");
    ThrowBadModel("key " + Quoted(key) + " is " + std::to_string(rope.n_rot) +
                      ", expected an even number up to the key"
                      " width of " +
                      std::to_string(d_qk) + "; convert the model again",
                  {{"key", key}});
  }
  rope.freq_base = keys.Positive("rope.freq_base", kDefaultFreqBase);

  const std::string type_key = keys.Name("rope.scaling.type");
  const std::string type = header.Has(type_key) ? header.GetString(type_key) : "linear";
  if (type != "none" && type != "linear") {
    ThrowUnsupported("key " + Quoted(type_key) + " asks for rotary scaling " + Quoted(type) +
                         ", Headlight runs none and linear; use another model",
                     {{"key", type_key}, {"mechanism", "rotary scaling"}});
  }
  if (type == "linear") {
    const char* factor =
        keys.Has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
    rope.linear_scale = keys.Positive(factor, 1.0);
  }
  return rope;
}

// d_model / n_heads of the first layer, the format's default for both head widths.
uint64_t DefaultHeadWidth(const Keys& keys, size_t d_model, size_t n_heads) {
  if (d_model % n_heads == 0) return d_model / n_heads;
  if (keys.Has("attention.key_length") && keys.Has("attention.value_length")) return 0;  // not used
  const std::string key = keys.Name("attention.head_count");
  ThrowBadModel("key " + Quoted(key) + " of " + std::to_string(n_heads) +
                    " does not divide the width of " + std::to_string(d_model) +
                    ", and no attention.key_length and value_length are given;"
                    " convert the model again",
                {{"key", key}});
}

std::vector<HeadLayout> BuildHeads(const Keys& keys, size_t d_model, size_t n_layers) {
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

void BuildLayers(const GgufReader& header, const Keys& keys, const ArchRow& arch, ModelSpec& spec) {
  const size_t n_layers = keys.Count("block_count", kMaxLayers);
  const std::vector<HeadLayout> heads = BuildHeads(keys, spec.d_model, n_layers);
  const std::vector<size_t> d_ff =
      keys.CountPerLayer("feed_forward_length", kMaxFeedForward, n_layers);
  const RopeSpec rope = BuildRope(header, keys, arch, heads[0].d_qk);
  const double scale =
      keys.Positive("attention.scale", 1.0 / std::sqrt(static_cast<double>(heads[0].d_qk)));
  spec.layers.resize(n_layers);
  for (size_t i = 0; i < n_layers; ++i) {
    LayerSpec& layer = spec.layers[i];
    layer.heads = heads[i];
    const bool rotates = arch.unrotated_every == 0 || (i + 1) % arch.unrotated_every != 0;
    if (rotates) layer.rope = rope;
    layer.attention_scale = static_cast<float>(scale);
    layer.d_ff = d_ff[i];
  }
}

}  // namespace

std::span<const ArchRow> Architectures() { return kArchitectures; }

const ArchRow* FindArchitecture(std::string_view name) {
  for (const ArchRow& row : kArchitectures) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

ModelSpec BuildModelSpec(const GgufReader& header) {
  const ArchRow& arch = RequireArchitecture(header);
  CheckQuantizationVersion(header);
  const Keys keys(header, arch.name);
  ModelSpec spec;
  spec.architecture = arch.name;
  spec.name = header.Has("general.name") ? header.GetString("general.name") : spec.architecture;
  spec.n_ctx_train = keys.Count("context_length", kMaxContext);
  CheckArchitectureKeys(header, arch.name, spec.n_ctx_train);
  spec.d_model = keys.Count("embedding_length", kMaxModelWidth);
  spec.vocab_size = VocabSize(header, keys);
  spec.norm_eps = static_cast<float>(keys.Positive("attention.layer_norm_rms_epsilon"));
  spec.embedding_scale = static_cast<float>(keys.Positive("embedding_scale", 1.0));
  spec.tied_head = header.FindTensor("output.weight") == nullptr;
  BuildLayers(header, keys, arch, spec);
  return spec;
}

}  // namespace headlight
