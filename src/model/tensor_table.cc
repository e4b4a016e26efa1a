#include "model/tensor_table.h"

#include <charconv>
#include <string_view>

#include "gguf/gguf_error.h"
#include "model/arch_table.h"

namespace headlight {
namespace {

// By TensorRole. Per-layer names follow "blk.<layer>.".
constexpr std::string_view kRoleNames[kRoles] = {
    "token_embd.weight",  "output.weight",   "output_norm.weight", "rope_freqs.weight",
    "attn_norm.weight",   "attn_q.weight",   "attn_k.weight",      "attn_v.weight",
    "attn_output.weight", "ffn_norm.weight", "ffn_gate.weight",    "ffn_up.weight",
    "ffn_down.weight",
};

constexpr std::string_view kLayerPrefix = "blk.";

// Tensors that repeat what the keys say. attn_rot_embd: inverse frequencies, written by converters
// of 2023.
constexpr std::string_view kIgnoredLayerTensors[] = {"attn_rot_embd.weight",
                                                     "attn_rot_embd.inv_freq"};

// What a tensor that is not in the table most likely is, by a part of its name. First match.
struct Mechanism {
  std::string_view part;
  const char* what;
};
constexpr Mechanism kMechanisms[] = {
    {".bias", "biases"},
    {"_exps", "a mixture of experts"},
    {"ffn_gate_inp", "a mixture of experts"},
    {"_shexp", "shared experts"},
    {"attn_q_norm", "normalised queries (QK-norm)"},
    {"attn_k_norm", "normalised keys (QK-norm)"},
    {"attn_qkv", "fused Q, K and V"},
    {"attn_sinks", "learned attention sinks"},
    {"attn_gate", "an attention output gate"},
    {"post_", "norms after a block"},
    {"_norm_2", "a second norm"},
    {"rope_factors_", "LongRoPE factors"},
    {"rope_freqs", "rotary factors, which this architecture does not define"},
    {"lora_", "a LoRA adapter"},
    {"ssm_", "a state-space layer"},
    {"position_embd", "learned positions"},
    {"token_types", "token types"},
    {"nextn", "multi-token prediction layers"},
    {".scale", "scaled weights"},
};

// "blk.12.attn_q.weight" -> 12 and "attn_q.weight"; nothing for other names, "blk.012." included.
struct LayerName {
  size_t layer = 0;
  std::string_view rest;
};
std::optional<LayerName> SplitLayerName(std::string_view name) {
  if (!name.starts_with(kLayerPrefix)) return std::nullopt;
  const char* begin = name.data() + kLayerPrefix.size();
  const char* end = name.data() + name.size();
  LayerName out;
  const auto [p, error] = std::from_chars(begin, end, out.layer);
  if (error != std::errc() || p == end || *p != '.') return std::nullopt;
  if (*begin == '0' && p - begin > 1) return std::nullopt;
  out.rest = std::string_view(p + 1, static_cast<size_t>(end - p - 1));
  return out;
}

[[noreturn]] void ThrowUnknownTensor(const GgufTensor& tensor, size_t n_layers) {
  const auto layer_name = SplitLayerName(tensor.name);
  if (layer_name && layer_name->layer >= n_layers) {
    ThrowUnsupported("tensor " + Quoted(tensor.name) + " belongs to a layer beyond the " +
                         std::to_string(n_layers) +
                         " that the model's keys declare; use another model",
                     {{"tensor", tensor.name}});
  }
  std::string what = "a mechanism unknown to Headlight";
  for (const Mechanism& row : kMechanisms) {
    if (tensor.name.find(row.part) == std::string::npos) continue;
    what = std::string(row.what) + ", which Headlight does not run";
    break;
  }
  ThrowUnsupported("tensor " + Quoted(tensor.name) + " belongs to " + what + "; use another model",
                   {{"tensor", tensor.name}});
}

std::optional<TensorRole> FindRole(std::string_view name, size_t first, size_t last) {
  for (size_t i = first; i < last; ++i) {
    if (kRoleNames[i] == name) return static_cast<TensorRole>(i);
  }
  return std::nullopt;
}

void CheckShape(const ModelSpec& spec, const TensorPlace& place, const GgufTensor& tensor) {
  const TensorShape want = ExpectedShape(spec, place);
  const uint64_t dims[] = {want.n_cols, want.n_rows};
  if (tensor.dims[0] == dims[0] && tensor.dims[1] == dims[1] && tensor.dims[2] == 1 &&
      tensor.dims[3] == 1)
    return;
  ThrowBadModel("tensor " + Quoted(tensor.name) + " has shape " +
                    ShapeText({tensor.dims, tensor.n_dims}) + ", the model's keys ask for " +
                    ShapeText({dims, place.is_vector() ? size_t{1} : size_t{2}}) +
                    " (row length first); convert the model again",
                {{"tensor", tensor.name}});
}

}  // namespace

bool TensorPlace::is_vector() const {
  return role == TensorRole::kOutputNorm || role == TensorRole::kRopeFactors ||
         role == TensorRole::kAttentionNorm || role == TensorRole::kFeedForwardNorm;
}

size_t TensorPlace::index() const {
  const auto i = static_cast<size_t>(role);
  return is_per_layer() ? i + layer * (kRoles - kModelRoles) : i;
}

size_t NumPlaces(const ModelSpec& spec) {
  return kModelRoles + spec.layers.size() * (kRoles - kModelRoles);
}

TensorPlace PlaceAt(size_t index) {
  if (index < kModelRoles) return {static_cast<TensorRole>(index), 0};
  const size_t i = index - kModelRoles;
  constexpr size_t kLayerRoles = kRoles - kModelRoles;
  return {static_cast<TensorRole>(kModelRoles + i % kLayerRoles), i / kLayerRoles};
}

std::string TensorName(const TensorPlace& place) {
  const std::string name(kRoleNames[static_cast<size_t>(place.role)]);
  return place.is_per_layer() ? std::string(kLayerPrefix) + std::to_string(place.layer) + "." + name
                              : name;
}

TensorShape ExpectedShape(const ModelSpec& spec, const TensorPlace& place) {
  const LayerSpec& layer = spec.layers[place.layer];
  switch (place.role) {
    case TensorRole::kEmbedding:
    case TensorRole::kHead:
      return {spec.vocab_size, spec.d_model};
    case TensorRole::kOutputNorm:
    case TensorRole::kAttentionNorm:
    case TensorRole::kFeedForwardNorm:
      return {1, spec.d_model};
    case TensorRole::kRopeFactors:
      return {1, layer.rope.n_rot / 2};
    case TensorRole::kQ:
      return {layer.heads.q_width(), spec.d_model};
    case TensorRole::kK:
      return {layer.heads.k_width(), spec.d_model};
    case TensorRole::kV:
      return {layer.heads.v_width(), spec.d_model};
    case TensorRole::kAttentionOutput:
      return {spec.d_model, layer.heads.out_width()};
    case TensorRole::kGate:
    case TensorRole::kUp:
      return {layer.d_ff, spec.d_model};
    case TensorRole::kDown:
      return {spec.d_model, layer.d_ff};
  }
  return {};
}

std::optional<TensorPlace> FindPlace(const ModelSpec& spec, const GgufTensor& tensor) {
  TensorPlace place;
  if (const auto layer_name = SplitLayerName(tensor.name)) {
    for (const std::string_view ignored : kIgnoredLayerTensors) {
      if (layer_name->rest == ignored) return std::nullopt;
    }
    const auto role = FindRole(layer_name->rest, kModelRoles, kRoles);
    if (!role || layer_name->layer >= spec.layers.size())
      ThrowUnknownTensor(tensor, spec.layers.size());
    place = {*role, layer_name->layer};
  } else {
    const auto role = FindRole(tensor.name, 0, kModelRoles);
    const ArchRow* arch = FindArchitecture(spec.architecture);
    const bool has_factors = arch != nullptr && arch->has_rope_factors;
    if (!role || (*role == TensorRole::kRopeFactors && !has_factors))
      ThrowUnknownTensor(tensor, spec.layers.size());
    place = {*role, 0};
  }
  CheckShape(spec, place, tensor);
  return place;
}

PackedMatrix& MatrixSlot(Model& model, const TensorPlace& place) {
  LayerWeights& layer = model.layers[place.layer];
  switch (place.role) {
    case TensorRole::kHead:
      return model.head;
    case TensorRole::kQ:
      return layer.w_q;
    case TensorRole::kK:
      return layer.w_k;
    case TensorRole::kV:
      return layer.w_v;
    case TensorRole::kAttentionOutput:
      return layer.w_o;
    case TensorRole::kGate:
      return layer.w_gate;
    case TensorRole::kUp:
      return layer.w_up;
    case TensorRole::kDown:
      return layer.w_down;
    default:
      return model.embedding;
  }
}

const float*& VectorSlot(Model& model, const TensorPlace& place) {
  LayerWeights& layer = model.layers[place.layer];
  switch (place.role) {
    case TensorRole::kAttentionNorm:
      return layer.attention_norm;
    case TensorRole::kFeedForwardNorm:
      return layer.feed_forward_norm;
    default:
      return model.output_norm;
  }
}

}  // namespace headlight
