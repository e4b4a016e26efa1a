#include "model/decoder_plan.h"

#include <algorithm>
#include <limits>

namespace headlight {
namespace {

constexpr size_t kFloatsPerLine = kAlignment / sizeof(float);

// Grows a stride to hold rows of n floats.
void Widen(size_t& stride, size_t n) { stride = std::max(stride, RoundUp(n, kFloatsPerLine)); }

void WidenLayout(HeadLayout& widest, const HeadLayout& heads) {
  widest.n_q_heads = std::max(widest.n_q_heads, heads.n_q_heads);
  widest.n_kv_heads = std::max(widest.n_kv_heads, heads.n_kv_heads);
  widest.d_qk = std::max(widest.d_qk, heads.d_qk);
  widest.d_v = std::max(widest.d_v, heads.d_v);
}

void PlanLatent(const LayerSpec& layer, DecoderPlan& plan) {
  DecoderStrides& strides = plan.strides;
  const LatentSpec& latent = layer.latent;
  const size_t n_heads = layer.heads.n_q_heads;
  Widen(strides.q_latent, latent.q_rank);
  Widen(strides.q_plain, n_heads * latent.d_qk());
  Widen(strides.kv_latent, latent.rank + latent.d_rope);
  Widen(strides.head_values, n_heads * latent.d_v);
  plan.widest_product =
      std::max({plan.widest_product, latent.q_rank, latent.rank, n_heads * latent.d_v});
}

void PlanAttention(const LayerSpec& layer, DecoderPlan& plan) {
  DecoderStrides& strides = plan.strides;
  const HeadLayout& heads = layer.heads;
  WidenLayout(plan.widest_layout, heads);
  Widen(strides.q, heads.q_width());
  Widen(strides.k, heads.k_width());
  Widen(strides.v, heads.v_width());
  Widen(strides.heads, layer.out_width());
  plan.widest_product = std::max(plan.widest_product, layer.out_width());
  if (layer.latent.rank != 0) PlanLatent(layer, plan);
  if (layer.tensors.Has(TensorRole::kAttentionGate)) Widen(strides.gate_heads, heads.out_width());
  if (layer.tensors.Has(TensorRole::kHeadGate)) Widen(strides.gate_heads, heads.n_q_heads);
}

void PlanFeedForward(const ModelSpec& spec, const LayerSpec& layer, DecoderPlan& plan) {
  if (layer.feed_forward == FeedForwardKind::kNone) return;
  DecoderStrides& strides = plan.strides;
  size_t d_ff = layer.d_ff;
  if (layer.feed_forward == FeedForwardKind::kExperts) {
    d_ff = std::max(layer.experts.d_ff, layer.experts.d_ff_shared);
    Widen(strides.router, layer.experts.n);
    Widen(strides.expert, spec.d_model);
    plan.n_experts_used = std::max(plan.n_experts_used, layer.experts.n_used);
  }
  Widen(strides.d_ff, d_ff);
  plan.widest_product = std::max(plan.widest_product, d_ff);
}

}  // namespace

size_t DecoderStrides::row_floats() const {
  return 2 * d_model + branch + std::max(attention_floats(), feed_forward_floats());
}

HeadLayout PlainLayout(const LayerSpec& layer) {
  const size_t n = layer.heads.n_q_heads;
  return {n, n, layer.latent.d_qk(), layer.latent.d_v};
}

PlainHeads::PlainHeads(const HeadLayout& layout, size_t rank, size_t n_ctx)
    : rows(layout, {}, n_ctx), latent(rank), keys(layout.k_width()), values(layout.v_width()) {}

size_t PlainHeads::Bytes(const HeadLayout& layout, size_t rank, size_t n_ctx) {
  const size_t n_floats = rank + layout.k_width() + layout.v_width();
  return ClampToSize(uint64_t{KvLayer::Bytes(layout, {}, n_ctx)} + n_floats * sizeof(float));
}

const LayerSpec* FindLatentLayer(const ModelSpec& spec) {
  for (const LayerSpec& layer : spec.layers) {
    if (layer.latent.rank != 0) return &layer;
  }
  return nullptr;
}

DecoderPlan PlanDecoder(const ModelSpec& spec, LatentComputation latent) {
  DecoderPlan plan;
  Widen(plan.strides.d_model, spec.d_model);
  plan.widest_product = spec.d_model;
  for (const LayerSpec& layer : spec.layers) {
    PlanAttention(layer, plan);
    PlanFeedForward(spec, layer, plan);
    if (layer.is_parallel) Widen(plan.strides.branch, spec.d_model);
    if (layer.latent.rank != 0 && latent == LatentComputation::kPlain)
      WidenLayout(plan.widest_layout, PlainLayout(layer));
  }
  return plan;
}

size_t ClampToSize(uint64_t n) {
  return static_cast<size_t>(std::min<uint64_t>(n, std::numeric_limits<size_t>::max()));
}

size_t BufferFloats(const DecoderPlan& plan, size_t max_tokens) {
  return ClampToSize(uint64_t{plan.strides.row_floats()} * max_tokens);
}

std::vector<RopeSpec> DistinctRopeSpecs(const ModelSpec& spec) {
  std::vector<RopeSpec> distinct;
  for (const LayerSpec& layer : spec.layers) {
    if (std::find(distinct.begin(), distinct.end(), layer.rope) == distinct.end()) {
      distinct.push_back(layer.rope);
    }
  }
  return distinct;
}

AttentionSpec AttentionSpecOf(const LayerSpec& layer, const LayerWeights& weights,
                              const float* alibi_slopes, DotForm dot_form) {
  AttentionSpec spec;
  spec.layout = layer.heads;
  spec.scale = layer.attention_scale;
  spec.window = layer.window;
  spec.n_sinks = layer.n_sinks;
  spec.softcap = layer.attention_softcap;
  spec.alibi_slopes = alibi_slopes;
  spec.sink_logits = weights.sinks;
  spec.dot_form = dot_form;
  return spec;
}

}  // namespace headlight
