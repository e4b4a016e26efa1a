// The forward pass, the only one: a chunk of tokens through every layer, one layer a call, so that
// its owner can stop after any layer and go on later. It reads plain data (ModelSpec, LayerSpec)
// and knows no architecture by name. It neither samples nor decides which rows of the cache are
// live.
#ifndef HEADLIGHT_MODEL_DECODER_H_
#define HEADLIGHT_MODEL_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "base/aligned.h"
#include "base/parallel.h"
#include "kernels/matmul.h"
#include "kv/kv_cache.h"
#include "model/forward_capture.h"
#include "model/model.h"
#include "model/stage_times.h"
#include "position/rope.h"

namespace headlight {

struct DecoderOptions {
  size_t n_ctx = 0;       // positions
  size_t max_tokens = 0;  // of a chunk
  ActivationType activations = ActivationType::kInt8;
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
};

class Decoder {
 public:
  // model and pool must outlive the decoder. Throws Error(kOutOfMemory), Error(kBadOption) for
  // rotary or attention settings that no kernel can honour.
  Decoder(const Model& model, const DecoderOptions& options, ThreadPool& pool);
  // Exactly what the constructor allocates in buffers, known from the spec alone; saturates.
  static size_t WorkspaceBytes(const ModelSpec& spec, const DecoderOptions& options,
                               size_t n_threads);

  // Looks up the embeddings of a chunk and forgets any unfinished one. cache: a KvCache with the
  // model's layers and at least pos0 + n_tokens rows of room; rows from pos0 on are overwritten,
  // layer by layer. The caller marks them live when the chunk is done.
  void Start(const DecoderChunk& chunk, KvCache& cache) noexcept;
  // Runs the next layer, or after the last one the head. Returns whether something is left to run.
  bool Step() noexcept;

 private:
  void RunLayer(size_t layer) noexcept;
  // Final norm and head of rows [begin, end) of x, to out [end - begin, vocab_size].
  void RunHead(size_t begin, size_t end, float* out) noexcept;
  void Attention(size_t layer, size_t first_row) noexcept;
  void ProjectQkv(const LayerWeights& weights, size_t first_row) noexcept;
  void FeedForward(size_t layer, size_t first_row) noexcept;
  // Sets the activations to rows [first_row, n_tokens) of x.
  void SetActivations(const float* x, size_t stride, size_t n_cols, size_t first_row) noexcept;
  size_t FirstRowAfterCache(size_t layer) const noexcept;
  // With a capture only.
  template <typename F>
  void ForCapturedRows(size_t first_row, const F& f) const noexcept;
  void CaptureHeadOutputs(ForwardCapture::Layer& captured, size_t first_row) noexcept;
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
  Activations activations_;
  AttentionWorkspace attention_workspace_;
  std::vector<AttentionSpec> attention_specs_;  // a layer each
  std::vector<RopeTable> rope_tables_;          // one for each distinct RopeSpec
  std::vector<size_t> rope_of_layer_;           // index of a layer's table

  // Row strides in floats, whole cache lines. x and h are [max_tokens, d_model]; q, k, v, heads
  // (attention's output) share their memory with gate and up, which live when those are dead.
  size_t d_model_stride_, q_stride_, k_stride_, v_stride_, heads_stride_, d_ff_stride_;
  AlignedArray<float> buffer_;
  float *x_, *h_, *q_, *k_, *v_, *heads_, *gate_, *up_;

  // The chunk at work.
  KvCache* cache_ = nullptr;
  size_t n_tokens_ = 0, pos0_ = 0;
  LogitsOf logits_of_ = LogitsOf::kNone;
  float* logits_ = nullptr;
  StageTimes* times_ = nullptr;
  ForwardCapture* capture_ = nullptr;
  StageClock clock_;
  size_t next_step_ = static_cast<size_t>(-1);  // layers, then the head; at first nothing is left
};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_DECODER_H_
