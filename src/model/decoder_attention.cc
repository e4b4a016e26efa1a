// What attention does in a layer: queries, keys and values of the chunk's rows, the cache, the
// blend, the output product.
#include <cmath>

#include "kernels/vector_ops.h"
#include "model/decoder.h"

namespace headlight {
namespace {

// Normalises heads x [n_heads * d_qk] in place.
template <typename F>
void NormHeads(QkNorm kind, size_t n_heads, size_t d_qk, const NormWeights& weights, float* x,
               const F& norm) noexcept {
  if (kind == QkNorm::kRow) {
    norm(weights, x, n_heads * d_qk);
    return;
  }
  for (size_t head = 0; head < n_heads; ++head) {
    const size_t at = kind == QkNorm::kOwnHead ? head * d_qk : 0;
    norm(NormWeights{weights.w + at, nullptr}, x + head * d_qk, d_qk);
  }
}

}  // namespace

void Decoder::Attention(size_t layer, size_t first_row) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  const LayerWeights& weights = model_.layers[layer];
  const size_t d_model = model_.spec.d_model;
  Rows input = x_;
  if (weights.attention_norm.w != nullptr) {
    input = h_;
    ForRows(0, [&](size_t row) { Norm(weights.attention_norm, x_.at(row), d_model, h_.at(row)); });
    clock_.Mark(Stage::kNorms);
  }
  const bool is_latent = spec.latent.rank != 0;
  if (is_latent) {
    ProjectLatents(layer, input, first_row);
    clock_.Mark(Stage::kProjections);
    ForRows(0, [&](size_t row) { FinishLatentKey(layer, row); });
    if (plain_heads_ == nullptr) AbsorbQueries(layer, first_row);
  } else {
    ProjectQkv(layer, input, first_row);
    clock_.Mark(Stage::kProjections);
    Show(layer, LayerTensor::kNorm, input, d_model);
    Show(layer, LayerTensor::kQ, q_, spec.heads.q_width());
    Show(layer, LayerTensor::kK, k_, spec.heads.k_width());
    Show(layer, LayerTensor::kV, v_, spec.heads.v_width());
    ForRows(0, [&](size_t row) {
      FinishKeyValue(layer, row);
      if (row >= first_row) FinishQuery(layer, row);
    });
  }
  clock_.Mark(Stage::kPositions);
  if (!is_latent) {
    Show(layer, LayerTensor::kQRotated, q_, spec.heads.q_width());
    Show(layer, LayerTensor::kKRotated, k_, spec.heads.k_width());
  }
  if (first_row == n_tokens_) return;
  if (is_latent && plain_heads_ != nullptr) {
    AttendPlain(layer, first_row);
  } else {
    Attend(layer, first_row);
  }
  GateHeads(layer, first_row);
  if (capture_ != nullptr) CaptureHeadOutputs(layer, first_row);
  clock_.Mark(Stage::kAttention);
  if (!is_latent) Show(layer, LayerTensor::kHeads, heads_, spec.out_width());
}

void Decoder::AttentionOutput(size_t layer, size_t first_row, Rows out) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  const LayerWeights& weights = model_.layers[layer];
  if (spec.latent.rank != 0) {
    if (plain_heads_ == nullptr) ExpandValues(layer, first_row);
    Multiply(weights.w_o, head_values_, spec.heads.n_q_heads * spec.latent.d_v, out, first_row);
  } else {
    Multiply(weights.w_o, heads_, spec.out_width(), out, first_row);
  }
  clock_.Mark(Stage::kProjections);
  Show(layer, LayerTensor::kAttentionOut, out, model_.spec.d_model);
}

// Keys and values of all rows, queries and gates of those from first_row on.
void Decoder::ProjectQkv(size_t layer, Rows input, size_t first_row) noexcept {
  const LayerWeights& weights = model_.layers[layer];
  const size_t d_model = model_.spec.d_model;
  const bool has_gate = gate_heads_.data != nullptr && (weights.w_attention_gate.data != nullptr ||
                                                        weights.w_head_gate.data != nullptr);
  const PackedMatrix& w_gate =
      weights.w_attention_gate.data != nullptr ? weights.w_attention_gate : weights.w_head_gate;
  // In the order of most files, which is that of the weights in memory.
  MatMulJob jobs[4];
  size_t n_jobs = 0;
  if (has_gate) jobs[n_jobs++] = {&w_gate, gate_heads_.at(first_row), gate_heads_.stride};
  jobs[n_jobs++] = {&weights.w_q, q_.at(first_row), q_.stride};
  const size_t n_of_queries = n_jobs;
  jobs[n_jobs++] = {&weights.w_k, k_.data, k_.stride};
  jobs[n_jobs++] = {&weights.w_v, v_.data, v_.stride};
  SetActivations(input, d_model, 0);
  if (first_row == 0) {
    MatMul({jobs, n_jobs}, activations_, pool_);
    return;
  }
  MatMul({jobs + n_of_queries, n_jobs - n_of_queries}, activations_, pool_);
  if (first_row == n_tokens_) return;
  SetActivations(input, d_model, first_row);
  MatMul({jobs, n_of_queries}, activations_, pool_);
}

void Decoder::FinishQuery(size_t layer, size_t row) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  const LayerWeights& weights = model_.layers[layer];
  const HeadLayout& heads = spec.heads;
  float* q = q_.at(row);
  if (weights.b_q != nullptr) AddTo(q, weights.b_q, heads.q_width());
  if (spec.qkv_clamp != 0.0f) Clamp(q, spec.qkv_clamp, heads.q_width());
  if (weights.q_norm.w != nullptr) {
    NormHeads(spec.qk_norm, heads.n_q_heads, heads.d_qk, weights.q_norm, q,
              [&](const NormWeights& w, float* x, size_t n) { Norm(w, x, n, x); });
  }
  MakeSinkQuery(layer, row);
  rope_tables_[rope_of_layer_[layer]].RotateHeads(q, heads.n_q_heads, heads.d_qk, pos0_ + row);
}

void Decoder::FinishKeyValue(size_t layer, size_t row) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  const LayerWeights& weights = model_.layers[layer];
  const HeadLayout& heads = spec.heads;
  float* k = k_.at(row);
  float* v = v_.at(row);
  if (weights.b_k != nullptr) AddTo(k, weights.b_k, heads.k_width());
  if (weights.b_v != nullptr) AddTo(v, weights.b_v, heads.v_width());
  if (spec.qkv_clamp != 0.0f) {
    Clamp(k, spec.qkv_clamp, heads.k_width());
    Clamp(v, spec.qkv_clamp, heads.v_width());
  }
  if (weights.k_norm.w != nullptr) {
    NormHeads(spec.qk_norm, heads.n_kv_heads, heads.d_qk, weights.k_norm, k,
              [&](const NormWeights& w, float* x, size_t n) { Norm(w, x, n, x); });
  }
  rope_tables_[rope_of_layer_[layer]].RotateHeads(k, heads.n_kv_heads, heads.d_qk, pos0_ + row);
  cache_->layer(layer).WriteRow(FirstCacheRow(layer) + row, k, v);
}

void Decoder::Attend(size_t layer, size_t first_row) noexcept {
  const size_t first_cache_row = FirstCacheRow(layer);
  AttentionArgs args;
  args.q = q_.at(first_row);
  args.q_stride = q_.stride;
  args.n_tokens = n_tokens_ - first_row;
  args.pos0 = first_cache_row + first_row;
  args.kv = &cache_->layer(layer);
  args.n_kv = first_cache_row + n_tokens_;
  args.out = heads_.at(first_row);
  args.out_stride = heads_.stride;
  if (SinkDistance(layer) != 0) args.q_sinks = q_sinks_.data() + first_row * q_.stride;
  AttentionCapture attention_capture;
  ForwardCapture::Layer* captured = capture_ == nullptr ? nullptr : capture_->FindLayer(layer);
  if (captured != nullptr) {
    attention_capture = capture_->AttentionOf(*captured, args.pos0);
    args.capture = &attention_capture;
  }
  KeptRows* kept = cache_->kept(layer);
  if (kept != nullptr) {
    const size_t n_before = counts_from_ < pos0_ ? 0 : counts_from_ - pos0_;
    args.capture = kept_mass_->Begin(first_row, args.n_tokens, n_before);
  }
  headlight::Attend(attention_specs_[layer], args, attention_workspace_, pool_);
  if (kept != nullptr) kept_mass_->AddTo(attention_specs_[layer].layout, args.n_kv, *kept);
  FixedHeads(layer, first_row);
}

// Heads whose weights are known beforehand: their outputs [n_fixed, d_v] follow those of the
// others.
void Decoder::FixedHeads(size_t layer, size_t first_row) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  if (spec.fixed_heads.empty()) return;
  const KvLayer& kv = cache_->layer(layer);
  ForRows(first_row, [&](size_t row) {
    float* out = heads_.at(row) + spec.heads.out_width();
    for (const FixedHead& head : spec.fixed_heads) {
      BlendFixed(head.pattern, kv.head(head.kv_head), spec.heads.d_v, pos0_ + row, out);
      out += spec.heads.d_v;
    }
  });
}

// Multiplies what the heads blended by its gates.
void Decoder::GateHeads(size_t layer, size_t first_row) noexcept {
  const HeadLayout& heads = model_.spec.layers[layer].heads;
  const LayerWeights& weights = model_.layers[layer];
  if (weights.w_attention_gate.data != nullptr) {
    ForRows(first_row, [&](size_t row) {
      MulSigmoid(heads_.at(row), gate_heads_.at(row), heads.out_width());
    });
  }
  if (weights.w_head_gate.data == nullptr) return;
  ForRows(first_row, [&](size_t row) {
    for (size_t head = 0; head < heads.n_q_heads; ++head) {
      const double gate = static_cast<double>(gate_heads_.at(row)[head]);
      Scale(heads_.at(row) + head * heads.d_v, static_cast<float>(1.0 / (1.0 + std::exp(-gate))),
            heads.d_v);
    }
  });
}

}  // namespace headlight
