// The order of a chunk's steps: layers part by part, then the head. Where a step ends depends on
// the sizes of the matrices alone, and no number depends on where it ends.
#include <algorithm>

#include "model/decoder.h"

namespace headlight {
namespace {

// Of one token: its step waits for memory, and each product that is cut makes threads meet once
// more.
constexpr size_t kTokenStepWeights = 16 * kStepWeights;

size_t NWeights(const PackedMatrix& w) { return w.shape.n_rows * w.shape.n_cols; }

}  // namespace

bool Decoder::Step() noexcept {
  if (part_ == LayerPart::kNone) return false;
  clock_.Start(times_);
  const size_t layer = next_layer_;
  size_t left = n_tokens_ == 1 ? kTokenStepWeights : kStepWeights;
  while (part_ != LayerPart::kNone && next_layer_ == layer) {
    const size_t n = RunPart();
    if (n >= left) break;
    left -= n;
  }
  return part_ != LayerPart::kNone;
}

size_t Decoder::RunPart() noexcept {
  const size_t layer = next_layer_;
  switch (part_) {
    case LayerPart::kAttention:
      return AttentionPart(layer);
    case LayerPart::kAttentionOutput:
      return AttentionOutputPart(layer);
    case LayerPart::kUp:
    case LayerPart::kDown:
      return DensePart(layer);
    case LayerPart::kExperts:
      return ExpertsPart(layer);
    case LayerPart::kHead:
      return HeadPart();
    case LayerPart::kNone:
      break;
  }
  return 0;
}

size_t Decoder::AttentionPart(size_t layer) noexcept {
  const LayerWeights& weights = model_.layers[layer];
  const size_t first_row = FirstRowAfterCache(layer);
  Show(layer, LayerTensor::kInput, x_, model_.spec.d_model);
  Attention(layer, first_row);
  if (first_row == n_tokens_) {
    EnterLayer(layer + 1);
  } else {
    Enter(LayerPart::kAttentionOutput);
  }
  const size_t n_latent =
      NWeights(weights.w_kv_a) + NWeights(weights.w_q_a) + NWeights(weights.w_q_b);
  return NWeights(weights.w_q) + NWeights(weights.w_k) + NWeights(weights.w_v) + n_latent;
}

size_t Decoder::AttentionOutputPart(size_t layer) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  const size_t first_row = FirstRowAfterCache(layer);
  AttentionOutput(layer, first_row, spec.is_parallel ? branch_ : h_);
  EnterFeedForward(layer, first_row);
  if (spec.feed_forward == FeedForwardKind::kNone) {
    Leave(layer, first_row);
  } else {
    const bool has_experts = spec.feed_forward == FeedForwardKind::kExperts;
    Enter(has_experts ? LayerPart::kExperts : LayerPart::kUp);
  }
  return NWeights(model_.layers[layer].w_o);
}

size_t Decoder::DensePart(size_t layer) noexcept {
  const size_t first_row = FirstRowAfterCache(layer);
  const FeedForwardWeights weights = DenseWeights(layer);
  const bool is_up = part_ == LayerPart::kUp;
  const size_t n_weights =
      is_up ? NWeights(weights.up) + NWeights(weights.gate) : NWeights(weights.down);
  const MatMulBand band = {band_, NBands(n_weights)};
  if (is_up) {
    DenseUp(layer, first_row, band);
  } else {
    DenseDown(layer, first_row, band);
  }
  if (!band.is_last()) {
    ++band_;
  } else if (is_up) {
    Enter(LayerPart::kDown);
  } else {
    Leave(layer, first_row);
  }
  return n_weights / band.n;
}

size_t Decoder::ExpertsPart(size_t layer) noexcept {
  const size_t first_row = FirstRowAfterCache(layer);
  const ExpertsSpec& spec = model_.spec.layers[layer].experts;
  const bool is_chosen = Experts(layer, first_row, static_cast<uint32_t>(band_));
  if (++band_ == spec.n) Leave(layer, first_row);
  return is_chosen ? 3 * spec.d_ff * model_.spec.d_model : 0;
}

size_t Decoder::HeadPart() noexcept {
  const size_t n_weights = NWeights(model_.head);
  const MatMulBand band = {band_, NBands(n_weights)};
  RunHead({logits_of_ == LogitsOf::kLastRow ? n_tokens_ - 1 : 0, n_tokens_}, logits_, band);
  ++band_;
  if (band.is_last()) Enter(LayerPart::kNone);
  return n_weights / band.n;
}

size_t Decoder::NBands(size_t n_weights) const noexcept {
  const bool is_one_row =
      n_tokens_ == 1 || (part_ == LayerPart::kHead && logits_of_ == LogitsOf::kLastRow);
  return std::max<size_t>(CeilDiv(n_weights, is_one_row ? kTokenStepWeights : kStepWeights), 1);
}

void Decoder::Enter(LayerPart part) noexcept {
  part_ = part;
  band_ = 0;
}

void Decoder::EnterLayer(size_t layer) noexcept {
  next_layer_ = layer;
  if (layer < model_.layers.size()) return Enter(LayerPart::kAttention);
  Enter(logits_of_ == LogitsOf::kNone ? LayerPart::kNone : LayerPart::kHead);
}

void Decoder::Leave(size_t layer, size_t first_row) noexcept {
  LeaveLayer(layer, first_row);
  EnterLayer(layer + 1);
}

}  // namespace headlight
