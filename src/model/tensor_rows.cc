#include "model/tensor_rows.h"

namespace headlight {
namespace {

using M = Model;
using L = LayerWeights;
using Role = TensorRole;

template <typename Owner>
constexpr NormSlot<Owner> WeightOf(NormWeights Owner::* norm) {
  return {norm, &NormWeights::w};
}
template <typename Owner>
constexpr NormSlot<Owner> BiasOf(NormWeights Owner::* norm) {
  return {norm, &NormWeights::b};
}

// Shapes {rows, columns, matrices}; m: the model's spec, l: the layer's.
#define MODEL_SHAPE(...) [](const ModelSpec& m) -> TensorShape { return {__VA_ARGS__}; }
#define LAYER_SHAPE(...)                                                                        \
  []([[maybe_unused]] const ModelSpec& m, [[maybe_unused]] const LayerSpec& l) -> TensorShape { \
    return {__VA_ARGS__};                                                                       \
  }

size_t RotaryPairs(const ModelSpec& m) {
  for (const LayerSpec& layer : m.layers) {
    if (layer.rope.style != RopeStyle::kNone) return layer.rope.n_rot / 2;
  }
  return 0;
}

size_t QueryWidth(const LayerSpec& l) {
  return l.latent.rank == 0 ? l.heads.q_width() : l.heads.n_q_heads * l.latent.d_qk();
}

size_t OutWidth(const LayerSpec& l) {
  return l.latent.rank == 0 ? l.out_width() : l.heads.n_q_heads * l.latent.d_v;
}

// Weights of a norm of heads as the file has them.
TensorShape QkNormShape(QkNorm kind, size_t n_heads, size_t d_qk) {
  switch (kind) {
    case QkNorm::kHead:
      return {1, d_qk};
    case QkNorm::kOwnHead:
      return {n_heads, d_qk};
    case QkNorm::kRow:
      return {1, n_heads * d_qk};
  }
  return {};
}

constexpr ModelTensorRow kModelRows[] = {
    {Role::kEmbedding, "token_embd.weight", MODEL_SHAPE(m.vocab_size, m.d_model), &M::embedding},
    {Role::kEmbeddingNorm, "token_embd_norm.weight", MODEL_SHAPE(1, m.d_model),
     WeightOf(&M::embedding_norm)},
    {Role::kEmbeddingNormBias, "token_embd_norm.bias", MODEL_SHAPE(1, m.d_model),
     BiasOf(&M::embedding_norm)},
    {Role::kPositions, "position_embd.weight", MODEL_SHAPE(m.n_ctx_train, m.d_model),
     &M::positions},
    {Role::kHead, "output.weight", MODEL_SHAPE(m.vocab_size, m.d_model), &M::head},
    {Role::kHeadBias, "output.bias", MODEL_SHAPE(1, m.vocab_size), &M::head_bias},
    {Role::kOutputNorm, "output_norm.weight", MODEL_SHAPE(1, m.d_model), WeightOf(&M::output_norm)},
    {Role::kOutputNormBias, "output_norm.bias", MODEL_SHAPE(1, m.d_model), BiasOf(&M::output_norm)},
    {Role::kRopeFactors, "rope_freqs.weight", MODEL_SHAPE(1, RotaryPairs(m)), {}},
    {Role::kRopeFactorsShort, "rope_factors_short.weight", MODEL_SHAPE(1, RotaryPairs(m)), {}},
    {Role::kRopeFactorsLong, "rope_factors_long.weight", MODEL_SHAPE(1, RotaryPairs(m)), {}},
};

constexpr LayerTensorRow kLayerRows[] = {
    {Role::kAttentionNorm, "attn_norm.weight", LAYER_SHAPE(1, m.d_model),
     WeightOf(&L::attention_norm)},
    {Role::kAttentionNormBias, "attn_norm.bias", LAYER_SHAPE(1, m.d_model),
     BiasOf(&L::attention_norm)},
    {Role::kQ, "attn_q.weight", LAYER_SHAPE(QueryWidth(l), m.d_model), &L::w_q},
    {Role::kQBias, "attn_q.bias", LAYER_SHAPE(1, l.heads.q_width()), &L::b_q},
    {Role::kK, "attn_k.weight", LAYER_SHAPE(l.heads.k_width(), m.d_model), &L::w_k},
    {Role::kKBias, "attn_k.bias", LAYER_SHAPE(1, l.heads.k_width()), &L::b_k},
    {Role::kV, "attn_v.weight", LAYER_SHAPE(l.heads.v_width(), m.d_model), &L::w_v},
    {Role::kVBias, "attn_v.bias", LAYER_SHAPE(1, l.heads.v_width()), &L::b_v},
    {Role::kQNorm, "attn_q_norm.weight",
     [](const ModelSpec&, const LayerSpec& l) {
       return QkNormShape(l.qk_norm, l.heads.n_q_heads, l.heads.d_qk);
     },
     WeightOf(&L::q_norm)},
    {Role::kKNorm, "attn_k_norm.weight",
     [](const ModelSpec&, const LayerSpec& l) {
       return QkNormShape(l.qk_norm, l.heads.n_kv_heads, l.heads.d_qk);
     },
     WeightOf(&L::k_norm)},
    {Role::kSinks, "attn_sinks.weight", LAYER_SHAPE(1, l.heads.n_q_heads), &L::sinks},
    {Role::kAttentionGate, "attn_gate.weight", LAYER_SHAPE(l.heads.out_width(), m.d_model),
     &L::w_attention_gate},
    {Role::kHeadGate, "attn_gate.weight", LAYER_SHAPE(l.heads.n_q_heads, m.d_model),
     &L::w_head_gate},
    {Role::kAttentionOutput, "attn_output.weight", LAYER_SHAPE(m.d_model, OutWidth(l)), &L::w_o},
    {Role::kAttentionOutputBias, "attn_output.bias", LAYER_SHAPE(1, m.d_model), &L::b_o},
    {Role::kAttentionPostNorm, "post_attention_norm.weight", LAYER_SHAPE(1, m.d_model),
     WeightOf(&L::attention_post_norm)},
    {Role::kFeedForwardNorm, "ffn_norm.weight", LAYER_SHAPE(1, m.d_model),
     WeightOf(&L::feed_forward_norm)},
    {Role::kFeedForwardNormBias, "ffn_norm.bias", LAYER_SHAPE(1, m.d_model),
     BiasOf(&L::feed_forward_norm)},
    {Role::kNormBetween, "post_attention_norm.weight", LAYER_SHAPE(1, m.d_model),
     WeightOf(&L::feed_forward_norm)},
    {Role::kGate, "ffn_gate.weight", LAYER_SHAPE(l.d_ff, m.d_model), &L::w_gate},
    {Role::kGateBias, "ffn_gate.bias", LAYER_SHAPE(1, l.d_ff), &L::b_gate},
    {Role::kUp, "ffn_up.weight", LAYER_SHAPE(l.d_ff, m.d_model), &L::w_up},
    {Role::kUpBias, "ffn_up.bias", LAYER_SHAPE(1, l.d_ff), &L::b_up},
    {Role::kDown, "ffn_down.weight", LAYER_SHAPE(m.d_model, l.d_ff), &L::w_down},
    {Role::kDownBias, "ffn_down.bias", LAYER_SHAPE(1, m.d_model), &L::b_down},
    {Role::kFeedForwardPostNorm, "post_ffw_norm.weight", LAYER_SHAPE(1, m.d_model),
     WeightOf(&L::feed_forward_post_norm)},
    {Role::kQA, "attn_q_a.weight", LAYER_SHAPE(l.latent.q_rank, m.d_model), &L::w_q_a},
    {Role::kQANorm, "attn_q_a_norm.weight", LAYER_SHAPE(1, l.latent.q_rank),
     WeightOf(&L::q_a_norm)},
    {Role::kQB, "attn_q_b.weight", LAYER_SHAPE(QueryWidth(l), l.latent.q_rank), &L::w_q_b},
    {Role::kKvA, "attn_kv_a_mqa.weight", LAYER_SHAPE(l.latent.rank + l.latent.d_rope, m.d_model),
     &L::w_kv_a},
    {Role::kKvANorm, "attn_kv_a_norm.weight", LAYER_SHAPE(1, l.latent.rank),
     WeightOf(&L::kv_a_norm)},
    {Role::kKvB, "attn_kv_b.weight",
     LAYER_SHAPE(l.heads.n_q_heads*(l.latent.d_nope + l.latent.d_v), l.latent.rank), &L::w_kv_b},
    {Role::kKB, "attn_k_b.weight", LAYER_SHAPE(l.latent.rank, l.latent.d_nope, l.heads.n_q_heads),
     &L::w_k_b},
    {Role::kVB, "attn_v_b.weight", LAYER_SHAPE(l.latent.d_v, l.latent.rank, l.heads.n_q_heads),
     &L::w_v_b},
    {Role::kRouter, "ffn_gate_inp.weight", LAYER_SHAPE(l.experts.n, m.d_model), &L::w_router},
    {Role::kRouterBias, "ffn_gate_inp.bias", LAYER_SHAPE(1, l.experts.n), &L::b_router},
    {Role::kRouterChoiceBias, "exp_probs_b.bias", LAYER_SHAPE(1, l.experts.n), &L::b_router_choice},
    {Role::kExpertGate, "ffn_gate_exps.weight", LAYER_SHAPE(l.experts.d_ff, m.d_model, l.experts.n),
     &L::w_expert_gate},
    {Role::kExpertGateBias, "ffn_gate_exps.bias", LAYER_SHAPE(l.experts.n, l.experts.d_ff),
     &L::b_expert_gate},
    {Role::kExpertUp, "ffn_up_exps.weight", LAYER_SHAPE(l.experts.d_ff, m.d_model, l.experts.n),
     &L::w_expert_up},
    {Role::kExpertUpBias, "ffn_up_exps.bias", LAYER_SHAPE(l.experts.n, l.experts.d_ff),
     &L::b_expert_up},
    {Role::kExpertDown, "ffn_down_exps.weight", LAYER_SHAPE(m.d_model, l.experts.d_ff, l.experts.n),
     &L::w_expert_down},
    {Role::kExpertDownBias, "ffn_down_exps.bias", LAYER_SHAPE(l.experts.n, m.d_model),
     &L::b_expert_down},
    {Role::kSharedGate, "ffn_gate_shexp.weight", LAYER_SHAPE(l.experts.d_ff_shared, m.d_model),
     &L::w_shared_gate},
    {Role::kSharedUp, "ffn_up_shexp.weight", LAYER_SHAPE(l.experts.d_ff_shared, m.d_model),
     &L::w_shared_up},
    {Role::kSharedDown, "ffn_down_shexp.weight", LAYER_SHAPE(m.d_model, l.experts.d_ff_shared),
     &L::w_shared_down},
    {Role::kSharedRouter, "ffn_gate_inp_shexp.weight", LAYER_SHAPE(1, m.d_model),
     &L::w_shared_router},
};

constexpr bool RolesAreInOrder() {
  size_t role = 0;
  for (const ModelTensorRow& row : kModelRows) {
    if (row.role != static_cast<Role>(role++)) return false;
  }
  for (const LayerTensorRow& row : kLayerRows) {
    if (row.role != static_cast<Role>(role++)) return false;
  }
  return role == kRoles;
}
static_assert(RolesAreInOrder());

}  // namespace

std::span<const ModelTensorRow> ModelTensorRows() { return kModelRows; }
std::span<const LayerTensorRow> LayerTensorRows() { return kLayerRows; }

}  // namespace headlight
