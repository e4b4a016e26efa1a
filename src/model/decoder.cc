#include "model/decoder.h"

#include <string>

#include "base/error.h"
#include "kernels/vector_ops.h"
#include "position/absolute.h"

namespace headlight {
namespace {

void CheckPositions(const ModelSpec& spec, size_t n_ctx) {
  if (spec.positions != AddedPositions::kLearned || n_ctx <= spec.n_ctx_train) return;
  throw Error(ErrorCode::kBadOption,
              "n_ctx is " + std::to_string(n_ctx) +
                  ", the model's table of learned positions has " +
                  std::to_string(spec.n_ctx_train) + " rows; use a smaller n_ctx",
              {{"option", "n_ctx"},
               {"value", std::to_string(n_ctx)},
               {"range", "at most " + std::to_string(spec.n_ctx_train)}});
}

}  // namespace

Decoder::Decoder(const Model& model, const DecoderOptions& options, ThreadPool& pool)
    : model_(model),
      pool_(pool),
      plan_(PlanDecoder(model.spec, options.latent)),
      activations_(options.max_tokens, plan_.widest_product, options.activations),
      attention_workspace_(plan_.widest_layout, options.n_ctx, pool.n_threads()) {
  CheckPositions(model.spec, options.n_ctx);
  const std::vector<RopeSpec> distinct = DistinctRopeSpecs(model.spec);
  rope_tables_.reserve(distinct.size());
  for (const RopeSpec& rope : distinct) rope_tables_.emplace_back(rope, options.n_ctx);
  for (size_t i = 0; i < model.spec.layers.size(); ++i) {
    const LayerSpec& layer = model.spec.layers[i];
    const auto found = std::find(distinct.begin(), distinct.end(), layer.rope);
    rope_of_layer_.push_back(static_cast<size_t>(found - distinct.begin()));
    alibi_slopes_.emplace_back();
    if (layer.alibi_max_bias != 0.0f) {
      alibi_slopes_.back() =
          AlibiSlopes(layer.heads.n_q_heads, static_cast<double>(layer.alibi_max_bias));
    }
    const float* slopes = alibi_slopes_.back().empty() ? nullptr : alibi_slopes_.back().data();
    // The form that the loader's probe found for the weights.
    attention_specs_.push_back(
        AttentionSpecOf(layer, model.layers[i], slopes, model.head.shape.form));
    const KeySpan span = EvictedSpan(options.eviction, {layer.window, layer.n_sinks});
    attention_specs_.back().window = span.window;
    attention_specs_.back().n_sinks = span.n_sinks;
    CheckAttentionSpec(attention_specs_.back());
  }
  const LayerSpec* latent = FindLatentLayer(model.spec);
  if (latent != nullptr && options.latent == LatentComputation::kPlain) {
    plain_heads_ =
        std::make_unique<PlainHeads>(PlainLayout(*latent), latent->heads.d_qk, options.n_ctx);
  }
  buffer_ = AlignedArray<float>(BufferFloats(plan_, options.max_tokens));
  PlaceBuffers(options.max_tokens);
  MakeEvictionBuffers(options);
}

void Decoder::PlaceBuffers(size_t max_tokens) {
  const DecoderStrides& strides = plan_.strides;
  BufferPlacer placer(buffer_.data(), max_tokens);
  const auto place = [](BufferPlacer& from, size_t stride) {
    return Rows{from.Take(stride), stride};
  };
  x_ = place(placer, strides.d_model);
  h_ = place(placer, strides.d_model);
  branch_ = place(placer, strides.branch);
  BufferPlacer attention = placer, feed_forward = placer;
  q_ = place(attention, strides.q);
  k_ = place(attention, strides.k);
  v_ = place(attention, strides.v);
  heads_ = place(attention, strides.heads);
  gate_heads_ = place(attention, strides.gate_heads);
  q_latent_ = place(attention, strides.q_latent);
  q_plain_ = place(attention, strides.q_plain);
  kv_latent_ = place(attention, strides.kv_latent);
  head_values_ = place(attention, strides.head_values);
  gate_ = place(feed_forward, strides.d_ff);
  up_ = place(feed_forward, strides.d_ff);
  router_ = place(feed_forward, strides.router);
  expert_in_ = place(feed_forward, strides.expert);
  expert_out_ = place(feed_forward, strides.expert);
  expert_sum_ = place(feed_forward, strides.expert);
  if (plan_.n_experts_used == 0) return;
  chosen_.resize(max_tokens * plan_.n_experts_used);
  rows_of_expert_.resize(max_tokens);
}

size_t Decoder::WorkspaceBytes(const ModelSpec& spec, const DecoderOptions& options,
                               size_t n_threads) {
  const DecoderPlan plan = PlanDecoder(spec, options.latent);
  uint64_t bytes = uint64_t{BufferFloats(plan, options.max_tokens)} * sizeof(float);
  bytes += EvictionBytes(plan, options);
  bytes +=
      Activations::WorkspaceBytes(options.max_tokens, plan.widest_product, options.activations);
  bytes += AttentionWorkspace::Bytes(plan.widest_layout, options.n_ctx, n_threads);
  for (const RopeSpec& rope : DistinctRopeSpecs(spec))
    bytes += RopeTable::Bytes(rope, options.n_ctx);
  const LayerSpec* latent = FindLatentLayer(spec);
  if (latent != nullptr && options.latent == LatentComputation::kPlain)
    bytes += PlainHeads::Bytes(PlainLayout(*latent), latent->heads.d_qk, options.n_ctx);
  return ClampToSize(bytes);
}

void Decoder::Norm(const NormWeights& weights, const float* x, size_t n, float* y) const noexcept {
  const ModelSpec& spec = model_.spec;
  if (spec.norm == NormKind::kRms) {
    RmsNorm(x, weights.w, n, spec.norm_eps, y);
  } else {
    LayerNorm(x, weights.w, weights.b, n, spec.norm_eps, y);
  }
}

void Decoder::SetActivations(Rows x, size_t n_cols, size_t first_row) noexcept {
  activations_.Set(x.at(first_row), n_tokens_ - first_row, n_cols, x.stride);
}

void Decoder::Multiply(const PackedMatrix& w, Rows x, size_t n_cols, Rows y,
                       size_t first_row) noexcept {
  const MatMulJob job = {&w, y.at(first_row), y.stride};
  SetActivations(x, n_cols, first_row);
  MatMul({&job, 1}, activations_, pool_);
}

void Decoder::Start(const DecoderChunk& chunk, KvCache& cache) noexcept {
  cache_ = &cache;
  cache.BeginChunk(chunk.pos0 + chunk.tokens.size());
  counts_from_ = chunk.counts_from;
  n_tokens_ = chunk.tokens.size();
  pos0_ = chunk.pos0;
  logits_of_ = chunk.logits_of;
  logits_ = chunk.logits;
  times_ = chunk.times;
  capture_ = chunk.capture;
  observer_ = chunk.observer;
  clock_.Start(times_);
  EnterLayer(0);
  for (RopeTable& table : rope_tables_) table.Ensure(pos0_ + n_tokens_);
  Embed(chunk.tokens);
  clock_.Mark(Stage::kEmbedding);
  if (capture_ != nullptr) CaptureResidual(0, 0);
}

void Decoder::Embed(std::span<const uint32_t> tokens) noexcept {
  const ModelSpec& spec = model_.spec;
  const size_t d_model = spec.d_model;
  ForRows(0, [&](size_t row) {
    float* x = x_.at(row);
    DecodeRow(model_.embedding, tokens[row], x);
    if (spec.embedding_scale != 1.0f) Scale(x, spec.embedding_scale, d_model);
    if (spec.positions == AddedPositions::kLearned) {
      float* position = h_.at(row);
      DecodeRow(model_.positions, pos0_ + row, position);
      AddTo(x, position, d_model);
    }
    if (spec.positions == AddedPositions::kSinusoidal) AddSinusoid(pos0_ + row, d_model, x);
    if (model_.embedding_norm.w != nullptr) Norm(model_.embedding_norm, x, d_model, x);
  });
}

// Above the last layer only the rows whose logits are wanted, or which are captured, go on: the
// others are there for their keys and values. That saves nearly a layer of every prompt chunk.
size_t Decoder::FirstRowAfterCache(size_t layer) const noexcept {
  if (layer + 1 < model_.layers.size() || cache_->kept(layer) != nullptr || observer_ != nullptr) {
    return 0;
  }
  const size_t first_captured = FirstCapturedRow();
  switch (logits_of_) {
    case LogitsOf::kNone:
      return first_captured;
    case LogitsOf::kLastRow:
      return std::min(first_captured, n_tokens_ - 1);
    case LogitsOf::kAllRows:
      return 0;
  }
  return 0;
}

void Decoder::RunHead(RowRange rows, float* out, MatMulBand band) noexcept {
  const ModelSpec& spec = model_.spec;
  if (band.is_first()) {
    ForRows(rows.begin, rows.end,
            [&](size_t row) { Norm(model_.output_norm, x_.at(row), spec.d_model, h_.at(row)); });
    clock_.Mark(Stage::kNorms);
    activations_.Set(h_.at(rows.begin), rows.end - rows.begin, spec.d_model, h_.stride);
  }
  const MatMulJob head = BandOf({&model_.head, out, spec.vocab_size}, band);
  MatMul({&head, 1}, activations_, pool_);
  const bool is_plain =
      model_.head_bias == nullptr && spec.logit_scale == 1.0f && spec.logit_softcap == 0.0f;
  if (band.is_last() && !is_plain) {
    ForRows(rows.begin, rows.end,
            [&](size_t row) { FinishLogits(out + (row - rows.begin) * spec.vocab_size); });
  }
  clock_.Mark(Stage::kHead);
}

// What follows the head's product in one row.
void Decoder::FinishLogits(float* logits) const noexcept {
  const ModelSpec& spec = model_.spec;
  if (model_.head_bias != nullptr) AddTo(logits, model_.head_bias, spec.vocab_size);
  if (spec.logit_scale != 1.0f) Scale(logits, spec.logit_scale, spec.vocab_size);
  if (spec.logit_softcap != 0.0f) Softcap(logits, spec.logit_softcap, spec.vocab_size);
}

}  // namespace headlight
