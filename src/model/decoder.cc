#include "model/decoder.h"

#include <algorithm>
#include <limits>

#include "kernels/vector_ops.h"

namespace headlight {
namespace {

constexpr size_t kFloatsPerLine = kAlignment / sizeof(float);

// Rows a task of a row loop: a few microseconds of work, well above the price of handing out a
// task.
constexpr size_t kRowsPerTask = 4;
// Below, a row loop runs on the calling thread: waking the others would cost more than they do.
constexpr size_t kMinParallelRows = 2 * kRowsPerTask;

// Row strides of the buffers and how many floats a chunk's row needs in all.
struct BufferPlan {
  size_t d_model = 0, q = 0, k = 0, v = 0, heads = 0, d_ff = 0;
  size_t widest_product = 0;  // columns of the widest x of a product
  HeadLayout widest_layout;

  size_t row_floats() const { return 2 * d_model + std::max(q + k + v + heads, 2 * d_ff); }
};

size_t Stride(size_t n) { return RoundUp(n, kFloatsPerLine); }

BufferPlan PlanBuffers(const ModelSpec& spec) {
  BufferPlan plan;
  plan.d_model = Stride(spec.d_model);
  plan.widest_product = spec.d_model;
  for (const LayerSpec& layer : spec.layers) {
    const HeadLayout& heads = layer.heads;
    plan.q = std::max(plan.q, Stride(heads.q_width()));
    plan.k = std::max(plan.k, Stride(heads.k_width()));
    plan.v = std::max(plan.v, Stride(heads.v_width()));
    plan.heads = std::max(plan.heads, Stride(heads.out_width()));
    plan.widest_product = std::max(plan.widest_product, heads.out_width());
    if (layer.feed_forward == FeedForwardKind::kGated) {
      plan.d_ff = std::max(plan.d_ff, Stride(layer.d_ff));
      plan.widest_product = std::max(plan.widest_product, layer.d_ff);
    }
    HeadLayout& widest = plan.widest_layout;
    widest.n_q_heads = std::max(widest.n_q_heads, heads.n_q_heads);
    widest.n_kv_heads = std::max(widest.n_kv_heads, heads.n_kv_heads);
    widest.d_qk = std::max(widest.d_qk, heads.d_qk);
    widest.d_v = std::max(widest.d_v, heads.d_v);
  }
  return plan;
}

// On wasm32 a product of sizes must become an allocation that fails, not one that wraps around.
size_t ClampToSize(uint64_t n) {
  return static_cast<size_t>(std::min<uint64_t>(n, std::numeric_limits<size_t>::max()));
}

size_t BufferFloats(const BufferPlan& plan, size_t max_tokens) {
  return ClampToSize(uint64_t{plan.row_floats()} * max_tokens);
}

// The distinct rotary specs of the layers in order of appearance; layers with equal specs share a
// table.
std::vector<RopeSpec> DistinctRopeSpecs(const ModelSpec& spec) {
  std::vector<RopeSpec> distinct;
  for (const LayerSpec& layer : spec.layers) {
    if (std::find(distinct.begin(), distinct.end(), layer.rope) == distinct.end()) {
      distinct.push_back(layer.rope);
    }
  }
  return distinct;
}

AttentionSpec AttentionSpecOf(const LayerSpec& layer, DotForm dot_form) {
  AttentionSpec spec;
  spec.layout = layer.heads;
  spec.scale = layer.attention_scale;
  spec.window = layer.window;
  spec.softcap = layer.attention_softcap;
  spec.dot_form = dot_form;
  return spec;
}

}  // namespace

Decoder::Decoder(const Model& model, const DecoderOptions& options, ThreadPool& pool)
    : model_(model),
      pool_(pool),
      activations_(options.max_tokens, PlanBuffers(model.spec).widest_product, options.activations),
      attention_workspace_(PlanBuffers(model.spec).widest_layout, options.n_ctx, pool.n_threads()) {
  const BufferPlan plan = PlanBuffers(model.spec);
  const std::vector<RopeSpec> distinct = DistinctRopeSpecs(model.spec);
  rope_tables_.reserve(distinct.size());
  for (const RopeSpec& rope : distinct) rope_tables_.emplace_back(rope, options.n_ctx);
  for (const LayerSpec& layer : model.spec.layers) {
    const auto found = std::find(distinct.begin(), distinct.end(), layer.rope);
    rope_of_layer_.push_back(static_cast<size_t>(found - distinct.begin()));
    // The form that the loader's probe found for the weights.
    attention_specs_.push_back(AttentionSpecOf(layer, model.head.shape.form));
    CheckAttentionSpec(attention_specs_.back());
  }
  d_model_stride_ = plan.d_model;
  q_stride_ = plan.q;
  k_stride_ = plan.k;
  v_stride_ = plan.v;
  heads_stride_ = plan.heads;
  d_ff_stride_ = plan.d_ff;
  buffer_ = AlignedArray<float>(BufferFloats(plan, options.max_tokens));
  const size_t n = options.max_tokens;
  x_ = buffer_.data();
  h_ = x_ + n * d_model_stride_;
  q_ = h_ + n * d_model_stride_;
  k_ = q_ + n * q_stride_;
  v_ = k_ + n * k_stride_;
  heads_ = v_ + n * v_stride_;
  gate_ = q_;
  up_ = gate_ + n * d_ff_stride_;
}

size_t Decoder::WorkspaceBytes(const ModelSpec& spec, const DecoderOptions& options,
                               size_t n_threads) {
  const BufferPlan plan = PlanBuffers(spec);
  uint64_t bytes = uint64_t{BufferFloats(plan, options.max_tokens)} * sizeof(float);
  bytes +=
      Activations::WorkspaceBytes(options.max_tokens, plan.widest_product, options.activations);
  bytes += AttentionWorkspace::Bytes(plan.widest_layout, options.n_ctx, n_threads);
  for (const RopeSpec& rope : DistinctRopeSpecs(spec))
    bytes += RopeTable::Bytes(rope, options.n_ctx);
  return ClampToSize(bytes);
}

template <typename F>
void Decoder::ForRows(size_t begin, size_t end, const F& f) noexcept {
  const size_t n_rows = end - begin;
  if (n_rows < kMinParallelRows || pool_.n_threads() == 1) {
    for (size_t row = begin; row < end; ++row) f(row);
    return;
  }
  pool_.ParallelFor(CeilDiv(n_rows, kRowsPerTask), [&](size_t task, size_t) {
    const size_t first = begin + task * kRowsPerTask;
    const size_t last = std::min(first + kRowsPerTask, end);
    for (size_t row = first; row < last; ++row) f(row);
  });
}

void Decoder::SetActivations(const float* x, size_t stride, size_t n_cols,
                             size_t first_row) noexcept {
  activations_.Set(x + first_row * stride, n_tokens_ - first_row, n_cols, stride);
}

void Decoder::Start(const DecoderChunk& chunk, KvCache& cache) noexcept {
  cache_ = &cache;
  n_tokens_ = chunk.tokens.size();
  pos0_ = chunk.pos0;
  logits_of_ = chunk.logits_of;
  logits_ = chunk.logits;
  times_ = chunk.times;
  capture_ = chunk.capture;
  clock_.Start(times_);
  next_step_ = 0;
  for (RopeTable& table : rope_tables_) table.Ensure(pos0_ + n_tokens_);
  const size_t d_model = model_.spec.d_model;
  const float scale = model_.spec.embedding_scale;
  ForRows(0, [&](size_t row) {
    float* x = x_ + row * d_model_stride_;
    DecodeRow(model_.embedding, chunk.tokens[row], x);
    if (scale == 1.0f) return;
    for (size_t i = 0; i < d_model; ++i) x[i] *= scale;
  });
  if (capture_ != nullptr) CaptureResidual(0, 0);
  clock_.Mark(Stage::kEmbedding);
}

bool Decoder::Step() noexcept {
  const size_t n_layers = model_.layers.size();
  const size_t n_steps = n_layers + (logits_of_ == LogitsOf::kNone ? 0 : 1);
  if (next_step_ >= n_steps) return false;
  clock_.Start(times_);
  if (next_step_ < n_layers) {
    RunLayer(next_step_);
  } else {
    RunHead(logits_of_ == LogitsOf::kLastRow ? n_tokens_ - 1 : 0, n_tokens_, logits_);
  }
  return ++next_step_ < n_steps;
}

// Above the last layer only the rows whose logits are wanted, or which are captured, go on: the
// others are there for their keys and values. That saves nearly a layer of every prompt chunk.
size_t Decoder::FirstRowAfterCache(size_t layer) const noexcept {
  if (layer + 1 < model_.layers.size()) return 0;
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

void Decoder::RunLayer(size_t layer) noexcept {
  const size_t first_row = FirstRowAfterCache(layer);
  Attention(layer, first_row);
  if (first_row == n_tokens_) return;
  FeedForward(layer, first_row);
  if (capture_ != nullptr) CaptureResidual(layer + 1, first_row);
}

void Decoder::ProjectQkv(const LayerWeights& weights, size_t first_row) noexcept {
  const size_t d_model = model_.spec.d_model;
  ForRows(0, [&](size_t row) {
    RmsNorm(x_ + row * d_model_stride_, weights.attention_norm, d_model, model_.spec.norm_eps,
            h_ + row * d_model_stride_);
  });
  clock_.Mark(Stage::kNorms);
  const MatMulJob q = {&weights.w_q, q_ + first_row * q_stride_, q_stride_};
  const MatMulJob kv[] = {{&weights.w_k, k_, k_stride_}, {&weights.w_v, v_, v_stride_}};
  SetActivations(h_, d_model_stride_, d_model, 0);
  if (first_row == 0) {
    const MatMulJob qkv[] = {q, kv[0], kv[1]};
    MatMul(qkv, activations_, pool_);
    return;
  }
  MatMul(kv, activations_, pool_);
  if (first_row == n_tokens_) return;
  SetActivations(h_, d_model_stride_, d_model, first_row);
  MatMul({&q, 1}, activations_, pool_);
}

void Decoder::Attention(size_t layer, size_t first_row) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  const LayerWeights& weights = model_.layers[layer];
  const HeadLayout& heads = spec.heads;
  ProjectQkv(weights, first_row);
  clock_.Mark(Stage::kProjections);

  const RopeTable& rope = rope_tables_[rope_of_layer_[layer]];
  KvLayer& kv = cache_->layer(layer);
  ForRows(0, [&](size_t row) {
    float* k = k_ + row * k_stride_;
    rope.RotateHeads(k, heads.n_kv_heads, heads.d_qk, pos0_ + row);
    kv.WriteRow(pos0_ + row, k, v_ + row * v_stride_);
    if (row < first_row) return;
    rope.RotateHeads(q_ + row * q_stride_, heads.n_q_heads, heads.d_qk, pos0_ + row);
  });
  clock_.Mark(Stage::kPositions);
  if (first_row == n_tokens_) return;

  AttentionArgs args;
  args.q = q_ + first_row * q_stride_;
  args.q_stride = q_stride_;
  args.n_tokens = n_tokens_ - first_row;
  args.pos0 = pos0_ + first_row;
  args.kv = &kv;
  args.n_kv = pos0_ + n_tokens_;
  args.out = heads_ + first_row * heads_stride_;
  args.out_stride = heads_stride_;
  AttentionCapture attention_capture;
  ForwardCapture::Layer* captured = capture_ == nullptr ? nullptr : capture_->FindLayer(layer);
  if (captured != nullptr) {
    attention_capture = capture_->AttentionOf(*captured, args.pos0);
    args.capture = &attention_capture;
  }
  Attend(attention_specs_[layer], args, attention_workspace_, pool_);
  if (captured != nullptr) CaptureHeadOutputs(*captured, first_row);
  clock_.Mark(Stage::kAttention);

  const MatMulJob out = {&weights.w_o, h_ + first_row * d_model_stride_, d_model_stride_};
  SetActivations(heads_, heads_stride_, heads.out_width(), first_row);
  MatMul({&out, 1}, activations_, pool_);
  clock_.Mark(Stage::kProjections);
}

// Begins with the residual sum of attention, so that each row is read once for the sum and the
// norm.
void Decoder::FeedForward(size_t layer, size_t first_row) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  const LayerWeights& weights = model_.layers[layer];
  const size_t d_model = model_.spec.d_model;
  const bool has_feed_forward = spec.feed_forward == FeedForwardKind::kGated;
  ForRows(first_row, [&](size_t row) {
    float* x = x_ + row * d_model_stride_;
    float* h = h_ + row * d_model_stride_;
    AddTo(x, h, d_model);
    if (has_feed_forward) RmsNorm(x, weights.feed_forward_norm, d_model, model_.spec.norm_eps, h);
  });
  clock_.Mark(Stage::kNorms);
  if (!has_feed_forward) return;

  const MatMulJob gate_up[] = {{&weights.w_gate, gate_ + first_row * d_ff_stride_, d_ff_stride_},
                               {&weights.w_up, up_ + first_row * d_ff_stride_, d_ff_stride_}};
  SetActivations(h_, d_model_stride_, d_model, first_row);
  MatMul(gate_up, activations_, pool_);
  clock_.Mark(Stage::kFeedForward);
  ForRows(first_row, [&](size_t row) {
    float* gate = gate_ + row * d_ff_stride_;
    SiluMul(gate, up_ + row * d_ff_stride_, spec.d_ff, gate);
  });
  clock_.Mark(Stage::kActivation);

  const MatMulJob down = {&weights.w_down, h_ + first_row * d_model_stride_, d_model_stride_};
  SetActivations(gate_, d_ff_stride_, spec.d_ff, first_row);
  MatMul({&down, 1}, activations_, pool_);
  clock_.Mark(Stage::kFeedForward);
  ForRows(first_row, [&](size_t row) {
    AddTo(x_ + row * d_model_stride_, h_ + row * d_model_stride_, d_model);
  });
  clock_.Mark(Stage::kNorms);
}

void Decoder::RunHead(size_t begin, size_t end, float* out) noexcept {
  const size_t d_model = model_.spec.d_model;
  ForRows(begin, end, [&](size_t row) {
    RmsNorm(x_ + row * d_model_stride_, model_.output_norm, d_model, model_.spec.norm_eps,
            h_ + row * d_model_stride_);
  });
  clock_.Mark(Stage::kNorms);
  const MatMulJob head = {&model_.head, out, model_.spec.vocab_size};
  activations_.Set(h_ + begin * d_model_stride_, end - begin, d_model, d_model_stride_);
  MatMul({&head, 1}, activations_, pool_);
  clock_.Mark(Stage::kHead);
}

}  // namespace headlight
