// What giving keys up asks of a decoder: the rows of each layer's cache, a second query for sinks,
// and the attention that keys receive where a layer chooses its rows.
#include <algorithm>

#include "model/decoder.h"

namespace headlight {
namespace {

// Keys of a layer without a window.
size_t FullLayerRows(const DecoderOptions& options) {
  const bool is_h2o = options.eviction.policy == EvictionPolicy::kH2o;
  return is_h2o ? std::min(options.n_ctx, options.eviction.budget + kH2oStep) : options.n_ctx;
}

KeptMassSize KeptMassSizeOf(const DecoderPlan& plan, const DecoderOptions& options) {
  const bool is_h2o = options.eviction.policy == EvictionPolicy::kH2o;
  const size_t n_counted = is_h2o ? options.max_tokens : options.eviction.window;
  return {plan.widest_layout.n_q_heads, std::min(options.max_tokens, n_counted), options.max_tokens,
          FullLayerRows(options)};
}

size_t SinkQueryFloats(const DecoderPlan& plan, const DecoderOptions& options) {
  if (options.eviction.policy != EvictionPolicy::kSinks) return 0;
  return ClampToSize(uint64_t{plan.strides.q} * options.max_tokens);
}

}  // namespace

std::vector<KvLayerPlan> Decoder::PlanCache(const ModelSpec& spec, const DecoderOptions& options) {
  std::vector<KvLayerPlan> plans;
  for (const LayerSpec& layer : spec.layers) {
    const KeySpan span = EvictedSpan(options.eviction, {layer.window, layer.n_sinks});
    KvDemand demand{span.window, span.n_sinks, options.max_tokens};
    // Fixed heads read values by position, however far back.
    if (!layer.fixed_heads.empty()) demand.window = 0;
    const bool chooses_rows = ChoosesRows(options.eviction) && layer.window == 0;
    const KvPlacement chosen{FullLayerRows(options), 0, 0};
    plans.push_back(
        {layer.heads, chooses_rows ? chosen : PlaceKv(demand, options.n_ctx), chooses_rows});
  }
  return plans;
}

uint64_t Decoder::EvictionBytes(const DecoderPlan& plan, const DecoderOptions& options) {
  const uint64_t n_bytes = uint64_t{SinkQueryFloats(plan, options)} * sizeof(float);
  if (!ChoosesRows(options.eviction)) return n_bytes;
  return n_bytes + KeptMass::Bytes(KeptMassSizeOf(plan, options));
}

void Decoder::MakeEvictionBuffers(const DecoderOptions& options) {
  q_sinks_ = AlignedArray<float>(SinkQueryFloats(plan_, options));
  if (ChoosesRows(options.eviction)) kept_mass_.emplace(KeptMassSizeOf(plan_, options));
}

size_t Decoder::SinkDistance(size_t layer) const noexcept {
  const AttentionSpec& spec = attention_specs_[layer];
  // First keys that a layer keeps by itself are met at their own positions.
  const LayerSpec& own = model_.spec.layers[layer];
  const bool is_own = KeySpan{own.window, own.n_sinks} == KeySpan{spec.window, spec.n_sinks};
  return is_own || spec.n_sinks == 0 ? 0 : spec.n_sinks + spec.window - 1;
}

void Decoder::MakeSinkQuery(size_t layer, size_t row) noexcept {
  const size_t distance = SinkDistance(layer);
  if (distance == 0 || pos0_ + row <= distance) return;
  const HeadLayout& heads = model_.spec.layers[layer].heads;
  float* q_sinks = q_sinks_.data() + row * q_.stride;
  std::copy_n(q_.at(row), heads.q_width(), q_sinks);
  rope_tables_[rope_of_layer_[layer]].RotateHeads(q_sinks, heads.n_q_heads, heads.d_qk, distance);
}

size_t Decoder::FirstCacheRow(size_t layer) noexcept {
  const KeptRows* kept = cache_->kept(layer);
  return kept == nullptr ? pos0_ : kept->n_rows();
}

}  // namespace headlight
