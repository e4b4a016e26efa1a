#include "model/tensor_table.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>

#include "gguf/gguf_error.h"
#include "model/tensor_rows.h"

namespace headlight {
namespace {

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
    {"exp_probs", "a mixture of experts"},
    {"_shexp", "shared experts"},
    {"attn_q_norm", "normalised queries (QK-norm)"},
    {"attn_k_norm", "normalised keys (QK-norm)"},
    {"attn_qkv", "fused Q, K and V"},
    {"attn_sinks", "learned attention sinks"},
    {"attn_gate", "an attention output gate"},
    {"post_", "norms after a block"},
    {"_norm_2", "a second norm"},
    {"token_embd_norm", "normalised embeddings"},
    {"_a_mqa", "latent attention"},
    {"attn_q_a", "latent attention"},
    {"attn_kv_", "latent attention"},
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

// Roles of one name among those that the spec knows.
template <typename Row>
std::vector<TensorRole> FindRoles(std::span<const Row> rows, const TensorUse& use,
                                  std::string_view name) {
  std::vector<TensorRole> roles;
  for (const Row& row : rows) {
    if (row.name == name && use.Has(row.role)) roles.push_back(row.role);
  }
  return roles;
}

uint64_t TotalRows(const ModelSpec& spec, const std::vector<TensorPlace>& places) {
  uint64_t n_rows = 0;
  for (const TensorPlace& place : places) {
    n_rows += places[0].is_vector() ? ExpectedShape(spec, place).n_cols
                                    : ExpectedShape(spec, place).n_rows;
  }
  return n_rows;
}

// The dims of a tensor that fills these places: matrices are joined by rows, vectors end to end.
struct ExpectedDims {
  uint64_t dims[3] = {1, 1, 1};
  size_t n_dims = 0;
};
ExpectedDims DimsOf(const ModelSpec& spec, const std::vector<TensorPlace>& places) {
  const TensorShape shape = ExpectedShape(spec, places[0]);
  ExpectedDims out{{shape.n_cols, shape.n_rows, shape.n_matrices}, 0};
  if (places.size() > 1) out.dims[places[0].is_vector() ? 0 : 1] = TotalRows(spec, places);
  out.n_dims = places[0].is_vector() ? 1 : 2;
  for (size_t i = 1; i < 3; ++i) {
    if (out.dims[i] > 1) out.n_dims = std::max(out.n_dims, i + 1);
  }
  return out;
}

bool Fits(const ExpectedDims& want, const GgufTensor& tensor) {
  return tensor.dims[0] == want.dims[0] && tensor.dims[1] == want.dims[1] &&
         tensor.dims[2] == want.dims[2] && tensor.dims[3] == 1;
}

void CheckShape(const ModelSpec& spec, const std::vector<TensorPlace>& places,
                const GgufTensor& tensor) {
  const ExpectedDims want = DimsOf(spec, places);
  if (Fits(want, tensor)) return;
  ThrowBadModel("tensor " + Quoted(tensor.name) + " has shape " +
                    ShapeText({tensor.dims, tensor.n_dims}) + ", the model's keys ask for " +
                    ShapeText({want.dims, want.n_dims}) +
                    " (row length first); convert the model again",
                {{"tensor", tensor.name}});
}

// Tensors that hold several weights of a layer, and where.
struct JoinedName {
  std::string_view name;
  TensorRole roles[3];
  size_t n_roles;
};
constexpr JoinedName kJoinedNames[] = {
    {"attn_qkv.weight", {TensorRole::kQ, TensorRole::kK, TensorRole::kV}, 3},
    {"attn_qkv.bias", {TensorRole::kQBias, TensorRole::kKBias, TensorRole::kVBias}, 3},
    {"ffn_up.weight", {TensorRole::kGate, TensorRole::kUp}, 2},
};

// The places of a joined tensor of this layer; none if the name is no such name, or the layer has
// not all of them, or the rows are those of a single weight.
std::vector<TensorPlace> FindJoined(const ModelSpec& spec, size_t layer, std::string_view name,
                                    const GgufTensor& tensor) {
  const TensorUse& use = spec.layers[layer].tensors;
  for (const JoinedName& joined : kJoinedNames) {
    if (joined.name != name) continue;
    std::vector<TensorPlace> places;
    for (size_t i = 0; i < joined.n_roles; ++i) {
      if (use.Has(joined.roles[i])) places.push_back({joined.roles[i], layer});
    }
    if (places.size() != joined.n_roles) continue;
    const bool is_only_name = FindRoles(LayerTensorRows(), use, name).empty();
    if (is_only_name || Fits(DimsOf(spec, places), tensor)) return places;
  }
  return {};
}

// Where several roles share a name, their shapes differ.
TensorPlace ChooseByShape(const ModelSpec& spec, const std::vector<TensorRole>& roles, size_t layer,
                          const GgufTensor& tensor) {
  for (const TensorRole role : roles) {
    if (Fits(DimsOf(spec, {{role, layer}}), tensor)) return {role, layer};
  }
  return {roles[0], layer};
}

const LayerTensorRow& LayerRow(TensorRole role) {
  return LayerTensorRows()[static_cast<size_t>(role) - kModelRoles];
}
const ModelTensorRow& ModelRow(TensorRole role) {
  return ModelTensorRows()[static_cast<size_t>(role)];
}

template <typename Owner>
WeightSlot SlotIn(Owner& owner, const OwnerSlot<Owner>& slot) {
  if (const auto* matrix = std::get_if<PackedMatrix Owner::*>(&slot)) return &(owner.**matrix);
  if (const auto* stack = std::get_if<PackedStack Owner::*>(&slot)) return &(owner.**stack);
  if (const auto* norm = std::get_if<NormSlot<Owner>>(&slot)) {
    return &(owner.*(norm->norm).*(norm->half));
  }
  if (const auto* vector = std::get_if<const float * Owner::*>(&slot)) return &(owner.**vector);
  return static_cast<const float**>(nullptr);
}

template <typename Owner>
bool IsVector(const OwnerSlot<Owner>& slot) {
  return !std::holds_alternative<PackedMatrix Owner::*>(slot) &&
         !std::holds_alternative<PackedStack Owner::*>(slot);
}

}  // namespace

bool TensorPlace::is_rope_factors() const {
  return role == TensorRole::kRopeFactors || role == TensorRole::kRopeFactorsShort ||
         role == TensorRole::kRopeFactorsLong;
}

bool TensorPlace::is_vector() const {
  return is_per_layer() ? IsVector(LayerRow(role).slot) : IsVector(ModelRow(role).slot);
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

const TensorUse& UseOf(const ModelSpec& spec, const TensorPlace& place) {
  return place.is_per_layer() ? spec.layers[place.layer].tensors : spec.tensors;
}

TensorUse& UseOf(ModelSpec& spec, const TensorPlace& place) {
  return place.is_per_layer() ? spec.layers[place.layer].tensors : spec.tensors;
}

std::string TensorName(const TensorPlace& place) {
  if (!place.is_per_layer()) return std::string(ModelRow(place.role).name);
  return std::string(kLayerPrefix) + std::to_string(place.layer) + "." +
         std::string(LayerRow(place.role).name);
}

TensorShape ExpectedShape(const ModelSpec& spec, const TensorPlace& place) {
  return place.is_per_layer() ? LayerRow(place.role).shape(spec, spec.layers[place.layer])
                              : ModelRow(place.role).shape(spec);
}

double ParametersUsed(const ModelSpec& spec) {
  double total = static_cast<double>(spec.vocab_size) * static_cast<double>(spec.d_model);
  for (size_t i = kModelRoles; i < NumPlaces(spec); ++i) {
    const TensorPlace place = PlaceAt(i);
    if (place.is_vector() || !UseOf(spec, place).always.Has(place.role)) continue;
    const TensorShape shape = ExpectedShape(spec, place);
    const ExpertsSpec& experts = spec.layers[place.layer].experts;
    const bool is_expert = experts.n != 0 && shape.n_matrices == experts.n;
    total += static_cast<double>(shape.n_rows) * static_cast<double>(shape.n_cols) *
             static_cast<double>(is_expert ? experts.n_used : shape.n_matrices);
  }
  return total;
}

std::vector<TensorPlace> FindPlaces(const ModelSpec& spec, const GgufTensor& tensor) {
  std::vector<TensorPlace> places;
  const size_t n_layers = spec.layers.size();
  if (const auto layer_name = SplitLayerName(tensor.name)) {
    const auto [layer, rest] = *layer_name;
    for (const std::string_view ignored : kIgnoredLayerTensors) {
      if (rest == ignored) return {};
    }
    if (layer >= n_layers) ThrowUnknownTensor(tensor, n_layers);
    places = FindJoined(spec, layer, rest, tensor);
    if (places.empty()) {
      const auto roles = FindRoles(LayerTensorRows(), spec.layers[layer].tensors, rest);
      if (roles.empty()) ThrowUnknownTensor(tensor, n_layers);
      places = {ChooseByShape(spec, roles, layer, tensor)};
    }
  } else {
    const auto roles = FindRoles(ModelTensorRows(), spec.tensors, tensor.name);
    if (roles.empty()) ThrowUnknownTensor(tensor, n_layers);
    places = {{roles[0], 0}};
  }
  CheckShape(spec, places, tensor);
  return places;
}

WeightSlot SlotOf(Model& model, const TensorPlace& place) {
  if (place.is_per_layer()) return SlotIn(model.layers[place.layer], LayerRow(place.role).slot);
  return SlotIn(model, ModelRow(place.role).slot);
}

}  // namespace headlight
