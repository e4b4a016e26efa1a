#include "model/arch_keys.h"

#include <optional>
#include <string>
#include <string_view>

#include "gguf/gguf_error.h"

namespace headlight {
namespace {

// Keys that BuildModelSpec reads.
constexpr std::string_view kReadKeys[] = {
    "vocab_size",
    "context_length",
    "embedding_length",
    "embedding_scale",
    "block_count",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "attention.scale",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scale_linear",
    "rope.scaling.original_context_length",
    "rope.scaling.attn_factor",
    "rope.scaling.yarn_ext_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_log_multiplier",
    "rope.freq_base_swa",
    "attention.layer_norm_epsilon",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.max_alibi_bias",
    "attention.clamp_kqv",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "logit_scale",
    "residual_scale",
    "use_parallel_residual",
};

// Read for families with experts, and for those with latent attention.
constexpr std::string_view kExpertKeys[] = {
    "expert_count",
    "expert_used_count",
    "expert_shared_count",
    "expert_feed_forward_length",
    "expert_shared_feed_forward_length",
    "expert_weights_scale",
    "expert_weights_norm",
    "expert_gating_func",
    "leading_dense_block_count",
};
constexpr std::string_view kLatentKeys[] = {
    "attention.q_lora_rank",
    "attention.kv_lora_rank",
    "attention.key_length_mla",
    "attention.value_length_mla",
};

// Keys that change nothing for the families of the table.
constexpr std::string_view kIdleKeys[] = {
    "tensor_data_layout",      // how the source was laid out before conversion
    "rope.scaling.finetuned",  // a remark
};

// Mechanisms and the value at which each is off.
struct MechanismKey {
  std::string_view suffix;
  const char* mechanism;
  double off;
};
constexpr MechanismKey kMechanismKeys[] = {
    {"expert_count", "a mixture of experts", 0},
    {"expert_used_count", "a mixture of experts", 0},
    {"expert_shared_count", "a mixture of experts", 0},
    {"leading_dense_block_count", "a mixture of experts", 0},
    {"expert_group_count", "experts chosen by groups", 1},
    {"expert_group_used_count", "experts chosen by groups", 1},
    {"nextn_predict_layers", "multi-token prediction layers", 0},
    {"attention.causal", "bidirectional attention", 1},
    {"attention.temperature_scale", "attention temperature scaling", 0},
    {"pooling_type", "pooled embeddings instead of text", 0},
};

// The value of a number or bool; nothing for other kinds.
std::optional<double> ScalarOf(const GgufValue& value) {
  if (const auto* u = std::get_if<uint64_t>(&value)) return static_cast<double>(*u);
  if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
  if (const auto* f = std::get_if<double>(&value)) return *f;
  if (const auto* b = std::get_if<bool>(&value)) return *b ? 1.0 : 0.0;
  return std::nullopt;
}

template <size_t n>
bool Contains(const std::string_view (&list)[n], std::string_view suffix) {
  for (const std::string_view entry : list) {
    if (entry == suffix) return true;
  }
  return false;
}

bool IsOff(const MechanismKey& row, const GgufValue& value) {
  const std::optional<double> scalar = ScalarOf(value);
  return scalar && *scalar == row.off;
}

}  // namespace

void CheckArchitectureKeys(const GgufReader& header, const ArchRow& arch) {
  const std::string prefix = arch.name;
  const bool has_experts = !arch.experts.always.empty();
  const auto& values = header.values();
  for (auto it = values.lower_bound(prefix + "."); it != values.end(); ++it) {
    const std::string& key = it->first;
    if (!key.starts_with(prefix + ".")) break;
    const std::string_view suffix = std::string_view(key).substr(prefix.size() + 1);
    if (Contains(kReadKeys, suffix) || Contains(kIdleKeys, suffix)) continue;
    if (has_experts && Contains(kExpertKeys, suffix)) continue;
    if (arch.is_latent && Contains(kLatentKeys, suffix)) continue;
    const char* mechanism = nullptr;
    bool off = false;
    for (const MechanismKey& row : kMechanismKeys) {
      if (row.suffix != suffix) continue;
      mechanism = row.mechanism;
      off = IsOff(row, it->second);
    }
    if (off) continue;
    if (mechanism == nullptr) {
      ThrowUnsupported("key " + Quoted(key) +
                           " is not known to Headlight, which would run the model without what it"
                           " asks for; use another model",
                       {{"key", key}});
    }
    ThrowUnsupported("key " + Quoted(key) + " asks for " + mechanism +
                         ", which Headlight does not run; use another model",
                     {{"key", key}, {"mechanism", mechanism}});
  }
}

}  // namespace headlight
