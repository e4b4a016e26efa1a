// The parts of the forward pass that only run when something of it is captured.
#include <algorithm>
#include <cmath>

#include "kernels/vector_ops.h"
#include "model/decoder.h"

namespace headlight {

// Rows of the chunk, from first_row on, that are captured: (row of the chunk, row of the capture).
template <typename F>
void Decoder::ForCapturedRows(size_t first_row, const F& f) const noexcept {
  for (size_t row = first_row; row < n_tokens_; ++row) {
    const uint32_t slot = capture_->slot_of_position[pos0_ + row];
    if (slot != AttentionCapture::kNone) f(row, slot);
  }
}

size_t Decoder::FirstCapturedRow() const noexcept {
  size_t first = n_tokens_;
  if (capture_ == nullptr) return first;
  ForCapturedRows(0, [&](size_t row, uint32_t) { first = std::min(first, row); });
  return first;
}

void Decoder::CaptureHeadOutputs(size_t layer, size_t first_row) noexcept {
  ForwardCapture::Layer* captured = capture_->FindLayer(layer);
  if (captured == nullptr || captured->head_outputs.empty()) return;
  const size_t d_v = captured->d_v;
  ForCapturedRows(first_row, [&](size_t row, uint32_t slot) {
    for (size_t i = 0; i < captured->heads.size(); ++i) {
      std::copy_n(heads_.at(row) + captured->heads[i] * d_v, d_v,
                  captured->head_outputs.data() + (i * capture_->n_rows() + slot) * d_v);
    }
  });
}

void Decoder::CaptureResidual(size_t n_layers_done, size_t first_row) noexcept {
  const size_t d_model = model_.spec.d_model;
  if (!capture_->residual_norms.empty()) {
    float* norms = capture_->residual_norms.data() + n_layers_done * capture_->n_rows();
    ForCapturedRows(first_row, [&](size_t row, uint32_t slot) {
      double sum = 0.0;
      const float* x = x_.at(row);
      for (size_t i = 0; i < d_model; ++i) sum += static_cast<double>(x[i]) * x[i];
      norms[slot] = static_cast<float>(std::sqrt(sum));
    });
  }
  ForwardCapture::Lens* lens = n_layers_done == 0 ? nullptr : capture_->FindLens(n_layers_done - 1);
  if (lens == nullptr) return;
  // A row at a time: the captured ones need not be neighbours.
  ForCapturedRows(first_row, [&](size_t row, uint32_t slot) {
    RunHead({row, row + 1}, lens->logits.data() + slot * model_.spec.vocab_size, {});
  });
}

}  // namespace headlight
