// Multi-head latent attention (arXiv 2405.04434), absorbed: queries go into the space of the
// latent, so that one cached row [c, k_rope] serves every head as key and, its first part, as
// value; what the heads blend comes out of that space afterwards.
#include <algorithm>

#include "kernels/vector_ops.h"
#include "model/decoder.h"
#include "model/latent_products.h"

namespace headlight {

// Latents of all rows, queries of those from first_row on.
void Decoder::ProjectLatents(size_t layer, Rows input, size_t first_row) noexcept {
  const LatentSpec& latent = model_.spec.layers[layer].latent;
  const LayerWeights& weights = model_.layers[layer];
  const size_t d_model = model_.spec.d_model;
  Multiply(weights.w_kv_a, input, d_model, kv_latent_, 0);
  if (first_row == n_tokens_) return;
  if (latent.q_rank == 0) {
    Multiply(weights.w_q, input, d_model, q_plain_, first_row);
    return;
  }
  Multiply(weights.w_q_a, input, d_model, q_latent_, first_row);
  ForRows(first_row, [&](size_t row) {
    Norm(weights.q_a_norm, q_latent_.at(row), latent.q_rank, q_latent_.at(row));
  });
  Multiply(weights.w_q_b, q_latent_, latent.q_rank, q_plain_, first_row);
}

// [c, k_rope]: the latent is normalised, the rest rotated; the value is the key's first part.
void Decoder::FinishLatentKey(size_t layer, size_t row) noexcept {
  const LatentSpec& latent = model_.spec.layers[layer].latent;
  float* k = kv_latent_.at(row);
  Norm(model_.layers[layer].kv_a_norm, k, latent.rank, k);
  rope_tables_[rope_of_layer_[layer]].Rotate(k + latent.rank, pos0_ + row);
  cache_->layer(layer).WriteRow(pos0_ + row, k, k);
}

// q [n_heads, d_nope + d_rope] -> [n_heads, rank + d_rope]: q_nope times its head's key matrix, and
// q_rope rotated.
void Decoder::AbsorbQueries(size_t layer, size_t first_row) noexcept {
  if (first_row == n_tokens_) return;
  const LayerSpec& spec = model_.spec.layers[layer];
  const LatentSpec& latent = spec.latent;
  const LayerWeights& weights = model_.layers[layer];
  const size_t n_heads = spec.heads.n_q_heads;
  const RopeTable& rope = rope_tables_[rope_of_layer_[layer]];
  ForRows(first_row, [&](size_t row) {
    for (size_t head = 0; head < n_heads; ++head) {
      float* rotated = q_.at(row) + head * spec.heads.d_qk + latent.rank;
      std::copy_n(q_plain_.at(row) + head * latent.d_qk() + latent.d_nope, latent.d_rope, rotated);
      rope.Rotate(rotated, pos0_ + row);
    }
  });
  for (size_t head = 0; head < n_heads; ++head) {
    const Rows q = {q_plain_.data + head * latent.d_qk(), q_plain_.stride};
    const Rows absorbed = {q_.data + head * spec.heads.d_qk, q_.stride};
    if (weights.w_k_b.data != nullptr) {
      Multiply(weights.w_k_b.at(head), q, latent.d_nope, absorbed, first_row);
      continue;
    }
    const MatrixRows keys = {&weights.w_kv_b, head * (latent.d_nope + latent.d_v), latent.d_nope};
    ForRows(first_row, [&](size_t row) { MultiplyTransposed(keys, q.at(row), absorbed.at(row)); });
  }
}

// What the heads blended, [n_heads, rank], through their value matrices: [n_heads, d_v].
void Decoder::ExpandValues(size_t layer, size_t first_row) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  const LatentSpec& latent = spec.latent;
  const LayerWeights& weights = model_.layers[layer];
  for (size_t head = 0; head < spec.heads.n_q_heads; ++head) {
    const Rows blend = {heads_.data + head * latent.rank, heads_.stride};
    const Rows value = {head_values_.data + head * latent.d_v, head_values_.stride};
    if (weights.w_v_b.data != nullptr) {
      Multiply(weights.w_v_b.at(head), blend, latent.rank, value, first_row);
      continue;
    }
    const size_t first = head * (latent.d_nope + latent.d_v) + latent.d_nope;
    const MatrixRows values = {&weights.w_kv_b, first, latent.d_v};
    ForRows(first_row, [&](size_t row) { MultiplyRows(values, blend.at(row), value.at(row)); });
  }
}

// Keys and values of every head from the cached latent of a position.
void Decoder::ExpandRow(size_t layer, size_t row) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  const LatentSpec& latent = spec.latent;
  const LayerWeights& weights = model_.layers[layer];
  PlainHeads& plain = *plain_heads_;
  const KvHeadView cached = cache_->layer(layer).head(0);
  float* c = plain.latent.data();
  for (size_t i = 0; i < spec.heads.d_qk; ++i) c[i] = cached.KeyAt(row, i);
  for (size_t head = 0; head < spec.heads.n_q_heads; ++head) {
    float* k = plain.keys.data() + head * latent.d_qk();
    float* v = plain.values.data() + head * latent.d_v;
    const size_t joined = head * (latent.d_nope + latent.d_v);
    if (weights.w_k_b.data != nullptr) {
      const PackedMatrix keys = weights.w_k_b.at(head);
      const PackedMatrix values = weights.w_v_b.at(head);
      MultiplyTransposed({&keys, 0, latent.rank}, c, k);
      MultiplyRows({&values, 0, latent.d_v}, c, v);
    } else {
      MultiplyRows({&weights.w_kv_b, joined, latent.d_nope}, c, k);
      MultiplyRows({&weights.w_kv_b, joined + latent.d_nope, latent.d_v}, c, v);
    }
    std::copy_n(c + latent.rank, latent.d_rope, k + latent.d_nope);
  }
  plain.rows.WriteRow(row, plain.keys.data(), plain.values.data());
}

// The same attention without absorption.
void Decoder::AttendPlain(size_t layer, size_t first_row) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  const RopeTable& rope = rope_tables_[rope_of_layer_[layer]];
  ForRows(first_row, [&](size_t row) {
    for (size_t head = 0; head < spec.heads.n_q_heads; ++head) {
      rope.Rotate(q_plain_.at(row) + head * spec.latent.d_qk() + spec.latent.d_nope, pos0_ + row);
    }
  });
  AttentionArgs args;
  args.q = q_plain_.at(first_row);
  args.q_stride = q_plain_.stride;
  args.n_tokens = n_tokens_ - first_row;
  args.pos0 = pos0_ + first_row;
  args.kv = &plain_heads_->rows;
  args.n_kv = pos0_ + n_tokens_;
  args.out = head_values_.at(first_row);
  args.out_stride = head_values_.stride;
  for (size_t row = 0; row < args.n_kv; ++row) ExpandRow(layer, row);
  AttentionSpec attention = attention_specs_[layer];
  attention.layout = PlainLayout(spec);
  headlight::Attend(attention, args, attention_workspace_, pool_);
}

}  // namespace headlight
