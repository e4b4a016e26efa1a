// The feed-forward of a layer, and how what both branches give joins the residual stream.
#include "kernels/activation.h"
#include "kernels/vector_ops.h"
#include "model/decoder.h"

namespace headlight {

// x += scale * post_norm(branch + bias), where branch [d_model] is what a branch's last product
// gave; it is changed.
void Decoder::AddBranch(size_t layer, const float* bias, const NormWeights& post_norm,
                        float* branch, float* x) const noexcept {
  const size_t d_model = model_.spec.d_model;
  const float scale = model_.spec.layers[layer].residual_scale;
  if (bias != nullptr) AddTo(branch, bias, d_model);
  if (post_norm.w != nullptr) Norm(post_norm, branch, d_model, branch);
  if (scale != 1.0f) Scale(branch, scale, d_model);
  AddTo(x, branch, d_model);
}

// Begins with the residual sum of attention, so that each row is read once for the sum and the
// norm.
void Decoder::SequentialResidual(size_t layer, size_t first_row) noexcept {
  const LayerWeights& weights = model_.layers[layer];
  const size_t d_model = model_.spec.d_model;
  const bool has_feed_forward = model_.spec.layers[layer].feed_forward != FeedForwardKind::kNone;
  const bool has_norm = weights.feed_forward_norm.w != nullptr;
  ForRows(first_row, [&](size_t row) {
    AddBranch(layer, weights.b_o, weights.attention_post_norm, h_.at(row), x_.at(row));
    if (has_feed_forward && has_norm) {
      Norm(weights.feed_forward_norm, x_.at(row), d_model, h_.at(row));
    }
  });
  clock_.Mark(Stage::kNorms);
  Show(layer, LayerTensor::kAfterAttention, x_, d_model);
  if (!has_feed_forward) return;
  FeedForward(layer, has_norm ? h_ : x_, first_row);
  ForRows(first_row, [&](size_t row) {
    AddBranch(layer, weights.b_down, weights.feed_forward_post_norm, h_.at(row), x_.at(row));
  });
  clock_.Mark(Stage::kNorms);
}

// Attention's branch waits in branch_; x is still the layer's input, h what attention read of it.
void Decoder::ParallelResidual(size_t layer, size_t first_row) noexcept {
  const LayerWeights& weights = model_.layers[layer];
  const size_t d_model = model_.spec.d_model;
  const bool has_feed_forward = model_.spec.layers[layer].feed_forward != FeedForwardKind::kNone;
  if (has_feed_forward) {
    Rows input = weights.attention_norm.w != nullptr ? h_ : x_;
    if (weights.feed_forward_norm.w != nullptr) {
      input = h_;
      ForRows(first_row, [&](size_t row) {
        Norm(weights.feed_forward_norm, x_.at(row), d_model, h_.at(row));
      });
      clock_.Mark(Stage::kNorms);
    }
    FeedForward(layer, input, first_row);
  }
  ForRows(first_row, [&](size_t row) {
    AddBranch(layer, weights.b_o, weights.attention_post_norm, branch_.at(row), x_.at(row));
    if (!has_feed_forward) return;
    AddBranch(layer, weights.b_down, weights.feed_forward_post_norm, h_.at(row), x_.at(row));
  });
  clock_.Mark(Stage::kNorms);
}

void Decoder::FeedForward(size_t layer, Rows input, size_t first_row) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  const LayerWeights& weights = model_.layers[layer];
  if (spec.feed_forward == FeedForwardKind::kExperts) return Experts(layer, input, first_row);
  const FeedForwardWeights dense = {weights.w_gate, weights.w_up, weights.w_down, weights.b_gate,
                                    weights.b_up};
  Show(layer, LayerTensor::kFeedForwardNorm, input, model_.spec.d_model);
  shown_layer_ = layer;
  RunFeedForward(dense, spec.activation, input, {first_row, n_tokens_}, h_);
  shown_layer_ = kNoLayer;
  Show(layer, LayerTensor::kDown, h_, model_.spec.d_model);
}

void Decoder::RunFeedForward(const FeedForwardWeights& weights, Activation activation, Rows input,
                             RowRange rows, Rows out) noexcept {
  const size_t n_rows = rows.end - rows.begin;
  const size_t d_ff = weights.up.shape.n_rows;
  const bool is_gated = weights.gate.data != nullptr;
  const MatMulJob jobs[2] = {{&weights.up, up_.at(rows.begin), up_.stride},
                             {&weights.gate, gate_.at(rows.begin), gate_.stride}};
  activations_.Set(input.at(rows.begin), n_rows, weights.up.shape.n_cols, input.stride);
  MatMul(std::span(jobs).first(is_gated ? 2 : 1), activations_, pool_);
  clock_.Mark(Stage::kFeedForward);
  if (shown_layer_ != kNoLayer) {
    if (is_gated) Show(shown_layer_, LayerTensor::kGate, gate_, d_ff);
    Show(shown_layer_, LayerTensor::kUp, up_, d_ff);
  }
  ForRows(rows.begin, rows.end, [&](size_t row) {
    float* gate = gate_.at(row);
    float* up = up_.at(row);
    if (weights.b_gate != nullptr) AddTo(gate, weights.b_gate, d_ff);
    if (weights.b_up != nullptr) AddTo(up, weights.b_up, d_ff);
    if (is_gated) {
      ActivateMul(activation, gate, up, d_ff, gate);
    } else {
      Activate(activation, up, d_ff, gate);
    }
  });
  clock_.Mark(Stage::kActivation);
  if (shown_layer_ != kNoLayer) Show(shown_layer_, LayerTensor::kActivated, gate_, d_ff);
  const MatMulJob down = {&weights.down, out.at(rows.begin), out.stride};
  activations_.Set(gate_.at(rows.begin), n_rows, d_ff, gate_.stride);
  MatMul({&down, 1}, activations_, pool_);
  clock_.Mark(Stage::kFeedForward);
}

}  // namespace headlight
