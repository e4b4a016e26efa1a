// The forward pass, the only one: a chunk of tokens through every layer, a layer or a part of one a
// call, so that its owner can stop after any call and go on later. It reads plain data (ModelSpec,
// LayerSpec) and knows no architecture by name. It neither samples nor decides which rows of the
// cache are live. decoder.cc: embeddings, head; decoder_steps.cc: the order; decoder_attention.cc,
// decoder_feed_forward.cc, decoder_experts.cc: what a layer does; decoder_eviction.cc: fewer keys.
#ifndef HEADLIGHT_MODEL_DECODER_H_
#define HEADLIGHT_MODEL_DECODER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "base/aligned.h"
#include "base/parallel.h"
#include "kernels/matmul.h"
#include "kv/eviction.h"
#include "kv/kv_cache.h"
#include "model/decoder_plan.h"
#include "model/forward_capture.h"
#include "model/kept_mass.h"
#include "model/layer_observer.h"
#include "model/model.h"
#include "model/stage_times.h"
#include "position/rope.h"

namespace headlight {

struct DecoderOptions {
  size_t n_ctx = 0;       // positions
  size_t max_tokens = 0;  // of a chunk
  ActivationType activations = ActivationType::kInt8;
  LatentComputation latent = LatentComputation::kAbsorbed;
  EvictionOptions eviction = {};
};

// Which rows of a chunk go through the head.
enum class LogitsOf : uint8_t { kNone, kLastRow, kAllRows };

struct DecoderChunk {
  std::span<const uint32_t> tokens;  // 1..max_tokens ids below vocab_size; may go away after Start
  size_t pos0 = 0;                   // position of the first; cache rows below it are live
  LogitsOf logits_of = LogitsOf::kNone;
  float* logits = nullptr;      // [1, vocab_size] for kLastRow, [n_tokens, vocab_size] for kAllRows
  StageTimes* times = nullptr;  // added to, if given; must outlive the chunk
  // Filled, if given, with what it asks for of the chunk's positions; must outlive the chunk.
  ForwardCapture* capture = nullptr;
  // With an eviction by attention: queries from this position on count.
  size_t counts_from = 0;
  // Shown the tensors of every layer, if given; then every row goes through the whole of the last
  // layer too.
  LayerObserver* observer = nullptr;
};

class Decoder {
 public:
  // model and pool must outlive the decoder. Throws Error(kOutOfMemory), Error(kBadOption) for
  // rotary or attention settings that no kernel can honour, and for an n_ctx beyond a table of
  // learned positions.
  Decoder(const Model& model, const DecoderOptions& options, ThreadPool& pool);
  // Exactly what the constructor allocates in buffers, known from the spec alone; saturates.
  static size_t WorkspaceBytes(const ModelSpec& spec, const DecoderOptions& options,
                               size_t n_threads);

  // What each layer's cache has to hold under `options`: of a windowed layer no more than its
  // window and a chunk, rounded up.
  static std::vector<KvLayerPlan> PlanCache(const ModelSpec& spec, const DecoderOptions& options);

  // Looks up the embeddings of a chunk and forgets any unfinished one. cache: a KvCache with the
  // model's layers as PlanCache has them and room for pos0 + n_tokens positions; rows from pos0 on
  // are overwritten, layer by layer. The caller marks them live when the chunk is done.
  void Start(const DecoderChunk& chunk, KvCache& cache) noexcept;
  // Runs the next layer, or after the last one the head; of a large model a part of it, about
  // kStepWeights. Returns whether something is left to run.
  bool Step() noexcept;

 private:
  // Rows [first_row, n_tokens) of a buffer.
  struct Rows {
    float* data = nullptr;
    size_t stride = 0;
    float* at(size_t row) const { return data + row * stride; }
  };

  struct RowRange {
    size_t begin = 0, end = 0;
  };

  // decoder_steps.cc. Each part says what follows it, and how many weights it multiplied.
  enum class LayerPart : uint8_t {
    kAttention,
    kAttentionOutput,
    kUp,
    kDown,
    kExperts,
    kHead,
    kNone
  };
  size_t RunPart() noexcept;
  size_t AttentionPart(size_t layer) noexcept;
  size_t AttentionOutputPart(size_t layer) noexcept;
  size_t DensePart(size_t layer) noexcept;
  size_t ExpertsPart(size_t layer) noexcept;
  size_t HeadPart() noexcept;
  // Of a product of the part at work.
  size_t NBands(size_t n_weights) const noexcept;
  void Enter(LayerPart part) noexcept;
  void EnterLayer(size_t layer) noexcept;
  void Leave(size_t layer, size_t first_row) noexcept;

  void PlaceBuffers(size_t max_tokens);
  void Embed(std::span<const uint32_t> tokens) noexcept;
  // Final norm and head of rows of x, to out [end - begin, vocab_size]; the bands in order.
  void RunHead(RowRange rows, float* out, MatMulBand band) noexcept;
  void FinishLogits(float* logits) const noexcept;
  size_t FirstRowAfterCache(size_t layer) const noexcept;

  // decoder_attention.cc. Attention leaves the heads' outputs in their buffer, AttentionOutput what
  // the branch adds, without the output's bias, in `out`.
  void Attention(size_t layer, size_t first_row) noexcept;
  void AttentionOutput(size_t layer, size_t first_row, Rows out) noexcept;
  void ProjectQkv(size_t layer, Rows input, size_t first_row) noexcept;
  void FinishQuery(size_t layer, size_t row) noexcept;
  void FinishKeyValue(size_t layer, size_t row) noexcept;
  void Attend(size_t layer, size_t first_row) noexcept;
  void GateHeads(size_t layer, size_t first_row) noexcept;
  void FixedHeads(size_t layer, size_t first_row) noexcept;

  // decoder_latent.cc: the same of a layer with latent attention.
  void ProjectLatents(size_t layer, Rows input, size_t first_row) noexcept;
  void FinishLatentKey(size_t layer, size_t row) noexcept;
  void AbsorbQueries(size_t layer, size_t first_row) noexcept;
  void ExpandValues(size_t layer, size_t first_row) noexcept;
  void ExpandRow(size_t layer, size_t row) noexcept;
  void AttendPlain(size_t layer, size_t first_row) noexcept;
  // decoder_eviction.cc.
  static uint64_t EvictionBytes(const DecoderPlan& plan, const DecoderOptions& options);
  void MakeEvictionBuffers(const DecoderOptions& options);
  // From the first sink's place in the cache to the newest key's, once it is full; 0: no sinks.
  size_t SinkDistance(size_t layer) const noexcept;
  // The copy of a finished but not yet rotated query that meets the sinks, if it is behind them.
  void MakeSinkQuery(size_t layer, size_t row) noexcept;
  // Where the chunk's first key stands: at its position, or behind the rows that were kept.
  size_t FirstCacheRow(size_t layer) noexcept;

  // decoder_feed_forward.cc. What it adds, without the bias, is in h when LeaveLayer is called.
  void EnterFeedForward(size_t layer, size_t first_row) noexcept;
  Rows FeedForwardInput(size_t layer) const noexcept;
  void LeaveLayer(size_t layer, size_t first_row) noexcept;
  struct FeedForwardWeights {
    PackedMatrix gate;  // without data: not gated
    PackedMatrix up, down;
    const float* b_gate = nullptr;
    const float* b_up = nullptr;
  };
  FeedForwardWeights DenseWeights(size_t layer) const noexcept;
  // The bands in order.
  void DenseUp(size_t layer, size_t first_row, MatMulBand band) noexcept;
  void DenseDown(size_t layer, size_t first_row, MatMulBand band) noexcept;
  // act(gate) * up or act(up), then down, of rows [begin, end).
  void RunFeedForward(const FeedForwardWeights& weights, Activation activation, Rows input,
                      RowRange rows, Rows out) noexcept;
  void ProjectUp(const FeedForwardWeights& weights, Rows input, RowRange rows,
                 MatMulBand band) noexcept;
  void ActivateRows(const FeedForwardWeights& weights, Activation activation,
                    RowRange rows) noexcept;
  void ProjectDown(const FeedForwardWeights& weights, RowRange rows, Rows out,
                   MatMulBand band) noexcept;

  // decoder_experts.cc.
  struct ChosenExpert {
    uint32_t expert = 0;
    float weight = 0.0f;
  };
  struct ChosenRow {
    size_t row = 0;
    float weight = 0.0f;
  };
  // One expert of all, in order; what they add is in h after the last. Whether a row chose it.
  bool Experts(size_t layer, size_t first_row, uint32_t expert) noexcept;
  void ChooseExperts(size_t layer, size_t row) noexcept;
  bool RunExpert(size_t layer, uint32_t expert, Rows input, size_t first_row) noexcept;
  void RunSharedExpert(size_t layer, Rows input, size_t first_row) noexcept;
  std::span<ChosenExpert> ChosenBy(size_t layer, size_t row) noexcept;

  void AddBranch(size_t layer, const float* bias, const NormWeights& post_norm, float* branch,
                 float* x) const noexcept;

  // To the observer, if there is one.
  void Show(size_t layer, LayerTensor what, Rows rows, size_t n_cols) noexcept {
    if (observer_ == nullptr) return;
    observer_->OnRows(layer, what, {rows.data, n_tokens_, n_cols, rows.stride});
  }

  void Norm(const NormWeights& weights, const float* x, size_t n, float* y) const noexcept;
  // One product of rows [first_row, n_tokens) of x, whose rows have n_cols elements.
  void Multiply(const PackedMatrix& w, Rows x, size_t n_cols, Rows y, size_t first_row) noexcept;
  void SetActivations(Rows x, size_t n_cols, size_t first_row) noexcept;

  // decoder_capture.cc: with a capture only.
  template <typename F>
  void ForCapturedRows(size_t first_row, const F& f) const noexcept;
  void CaptureHeadOutputs(size_t layer, size_t first_row) noexcept;
  void CaptureResidual(size_t n_layers_done, size_t first_row) noexcept;
  // Of the chunk; n_tokens where none is captured.
  size_t FirstCapturedRow() const noexcept;

  template <typename F>
  void ForRows(size_t begin, size_t end, const F& f) noexcept;
  template <typename F>
  void ForRows(size_t first_row, const F& f) noexcept {
    ForRows(first_row, n_tokens_, f);
  }

  const Model& model_;
  ThreadPool& pool_;
  DecoderPlan plan_;
  Activations activations_;
  AttentionWorkspace attention_workspace_;
  std::unique_ptr<PlainHeads> plain_heads_;  // null unless latent attention is computed plainly
  std::vector<std::vector<float>> alibi_slopes_;  // a layer each; empty without ALiBi
  std::vector<AttentionSpec> attention_specs_;    // a layer each
  std::vector<RopeTable> rope_tables_;            // one for each distinct RopeSpec
  std::vector<size_t> rope_of_layer_;             // index of a layer's table

  // [max_tokens, stride] each, see DecoderStrides. x: the residual stream. h: a norm of it, and
  // what a branch adds. branch: what attention adds where both branches read one input.
  AlignedArray<float> buffer_;
  Rows x_, h_, branch_;
  Rows q_, k_, v_, heads_, gate_heads_;
  Rows q_latent_, q_plain_, kv_latent_, head_values_;
  // In the memory of those of attention. expert_in, expert_out: rows of the tokens that chose one
  // expert; expert_sum: what all experts add to a token.
  Rows gate_, up_, router_, expert_in_, expert_out_, expert_sum_;
  std::vector<ChosenExpert> chosen_;       // [max_tokens, n_experts_used], by expert
  std::vector<ChosenRow> rows_of_expert_;  // [max_tokens] of those that chose the one at work

  AlignedArray<float> q_sinks_;        // [max_tokens, q stride] with sinks
  std::optional<KeptMass> kept_mass_;  // with layers that choose their rows

  // The chunk at work.
  KvCache* cache_ = nullptr;
  size_t n_tokens_ = 0, pos0_ = 0;
  LogitsOf logits_of_ = LogitsOf::kNone;
  float* logits_ = nullptr;
  StageTimes* times_ = nullptr;
  ForwardCapture* capture_ = nullptr;
  size_t counts_from_ = 0;
  LayerObserver* observer_ = nullptr;
  StageClock clock_;
  // What comes next; at first nothing is left.
  size_t next_layer_ = 0;  // the number of layers: the head
  LayerPart part_ = LayerPart::kNone;
  size_t band_ = 0;  // of the part's product, or expert
};

// Rows a task of a row loop: a few microseconds of work, well above the price of handing out a
// task.
inline constexpr size_t kRowsPerTask = 4;
// Below, a row loop runs on the calling thread: waking the others would cost more than they do.
inline constexpr size_t kMinParallelRows = 2 * kRowsPerTask;

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

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_DECODER_H_
