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

// What attention gave joins the stream in a sequential layer, and the feed-forward's input is made:
// each row is read once for both. In a parallel one attention's branch waits in branch_; x is still
// the layer's input, h what attention read of it.
void Decoder::EnterFeedForward(size_t layer, size_t first_row) noexcept {
  const LayerWeights& weights = model_.layers[layer];
  const size_t d_model = model_.spec.d_model;
  const LayerSpec& spec = model_.spec.layers[layer];
  const bool has_norm =
      spec.feed_forward != FeedForwardKind::kNone && weights.feed_forward_norm.w != nullptr;
  if (spec.is_parallel && !has_norm) return;
  ForRows(first_row, [&](size_t row) {
    if (!spec.is_parallel) {
      AddBranch(layer, weights.b_o, weights.attention_post_norm, h_.at(row), x_.at(row));
    }
    if (has_norm) Norm(weights.feed_forward_norm, x_.at(row), d_model, h_.at(row));
  });
  clock_.Mark(Stage::kNorms);
  if (!spec.is_parallel) Show(layer, LayerTensor::kAfterAttention, x_, d_model);
}

Decoder::Rows Decoder::FeedForwardInput(size_t layer) const noexcept {
  const LayerWeights& weights = model_.layers[layer];
  const bool shares_norm =
      model_.spec.layers[layer].is_parallel && weights.attention_norm.w != nullptr;
  return weights.feed_forward_norm.w != nullptr || shares_norm ? h_ : x_;
}

// What is still to join the stream: the feed-forward's branch, and attention's in a parallel layer.
void Decoder::LeaveLayer(size_t layer, size_t first_row) noexcept {
  const LayerWeights& weights = model_.layers[layer];
  const LayerSpec& spec = model_.spec.layers[layer];
  const bool has_feed_forward = spec.feed_forward != FeedForwardKind::kNone;
  if (spec.is_parallel || has_feed_forward) {
    ForRows(first_row, [&](size_t row) {
      if (spec.is_parallel) {
        AddBranch(layer, weights.b_o, weights.attention_post_norm, branch_.at(row), x_.at(row));
      }
      if (!has_feed_forward) return;
      AddBranch(layer, weights.b_down, weights.feed_forward_post_norm, h_.at(row), x_.at(row));
    });
    clock_.Mark(Stage::kNorms);
  }
  if (capture_ != nullptr) CaptureResidual(layer + 1, first_row);
  Show(layer, LayerTensor::kOutput, x_, model_.spec.d_model);
}

void Decoder::DenseUp(size_t layer, size_t first_row, MatMulBand band) noexcept {
  const FeedForwardWeights weights = DenseWeights(layer);
  const Rows input = FeedForwardInput(layer);
  const RowRange rows = {first_row, n_tokens_};
  if (band.is_first()) Show(layer, LayerTensor::kFeedForwardNorm, input, model_.spec.d_model);
  ProjectUp(weights, input, rows, band);
  if (!band.is_last()) return;
  const size_t d_ff = weights.up.shape.n_rows;
  if (weights.gate.data != nullptr) Show(layer, LayerTensor::kGate, gate_, d_ff);
  Show(layer, LayerTensor::kUp, up_, d_ff);
  ActivateRows(weights, model_.spec.layers[layer].activation, rows);
  Show(layer, LayerTensor::kActivated, gate_, d_ff);
}

void Decoder::DenseDown(size_t layer, size_t first_row, MatMulBand band) noexcept {
  ProjectDown(DenseWeights(layer), {first_row, n_tokens_}, h_, band);
  if (band.is_last()) Show(layer, LayerTensor::kDown, h_, model_.spec.d_model);
}

Decoder::FeedForwardWeights Decoder::DenseWeights(size_t layer) const noexcept {
  const LayerWeights& weights = model_.layers[layer];
  return {weights.w_gate, weights.w_up, weights.w_down, weights.b_gate, weights.b_up};
}

void Decoder::RunFeedForward(const FeedForwardWeights& weights, Activation activation, Rows input,
                             RowRange rows, Rows out) noexcept {
  ProjectUp(weights, input, rows, {});
  ActivateRows(weights, activation, rows);
  ProjectDown(weights, rows, out, {});
}

// The bands of a product follow one another: what it reads is quantised for the first.
void Decoder::ProjectUp(const FeedForwardWeights& weights, Rows input, RowRange rows,
                        MatMulBand band) noexcept {
  const bool is_gated = weights.gate.data != nullptr;
  // The gate first, as in most files.
  const MatMulJob jobs[2] = {BandOf({&weights.gate, gate_.at(rows.begin), gate_.stride}, band),
                             BandOf({&weights.up, up_.at(rows.begin), up_.stride}, band)};
  if (band.is_first()) {
    activations_.Set(input.at(rows.begin), rows.end - rows.begin, weights.up.shape.n_cols,
                     input.stride);
  }
  MatMul(std::span(jobs).last(is_gated ? 2 : 1), activations_, pool_);
  clock_.Mark(Stage::kFeedForward);
}

void Decoder::ActivateRows(const FeedForwardWeights& weights, Activation activation,
                           RowRange rows) noexcept {
  const size_t d_ff = weights.up.shape.n_rows;
  ForRows(rows.begin, rows.end, [&](size_t row) {
    float* gate = gate_.at(row);
    float* up = up_.at(row);
    if (weights.b_gate != nullptr) AddTo(gate, weights.b_gate, d_ff);
    if (weights.b_up != nullptr) AddTo(up, weights.b_up, d_ff);
    if (weights.gate.data != nullptr) {
      ActivateMul(activation, gate, up, d_ff, gate);
    } else {
      Activate(activation, up, d_ff, gate);
    }
  });
  clock_.Mark(Stage::kActivation);
}

void Decoder::ProjectDown(const FeedForwardWeights& weights, RowRange rows, Rows out,
                          MatMulBand band) noexcept {
  const MatMulJob down = BandOf({&weights.down, out.at(rows.begin), out.stride}, band);
  if (band.is_first()) {
    activations_.Set(gate_.at(rows.begin), rows.end - rows.begin, weights.up.shape.n_rows,
                     gate_.stride);
  }
  MatMul({&down, 1}, activations_, pool_);
  clock_.Mark(Stage::kFeedForward);
}

}  // namespace headlight
