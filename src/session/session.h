// One conversation over shared weights: its KV cache, its token history, its sampler, and Advance(budget), which works in
// small steps so that the caller's thread can cancel, report progress and serve others in between.
#ifndef HEADLIGHT_SESSION_SESSION_H_
#define HEADLIGHT_SESSION_SESSION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "kernels/matmul.h"
#include "kv/kv_cache.h"
#include "model/model.h"
#include "sample/sampler.h"

namespace headlight {

struct SessionOptions {
  size_t n_ctx = 0;            // 0: min(model's, 4096)
  KvCacheFormat kv_format;
  ActivationType activations = ActivationType::kInt8;
  size_t prefill_chunk = 0;    // tokens of a prefill step; 0: the default
};

// What a session would allocate, known from the spec alone.
struct SessionPlan {
  size_t n_ctx = 0;
  size_t kv_cache_bytes = 0;
  size_t kv_bytes_per_token = 0;
  size_t workspace_bytes = 0;
};
// Throws Error(kBadOption) for an n_ctx of more than the model's.
SessionPlan PlanSession(const ModelSpec& spec, const SessionOptions& options, size_t n_threads);

struct GenerateOptions {
  SamplerOptions sampler;
  size_t max_tokens = 0;                   // 0: until the context is full
  std::vector<uint32_t> stop_tokens;       // end-of-generation ids: end the run, not part of the result
  bool ignore_stop_tokens = false;
};

enum class FinishReason : uint8_t { kNone, kStop, kLength, kAborted };

struct AdvanceResult {
  bool done = false;
  FinishReason finish = FinishReason::kNone;
  size_t n_prompt_done = 0;               // prompt tokens in the cache, reused ones included
  size_t n_prompt = 0;
  std::vector<SampledToken> tokens;       // generated in this call, in order
};

// Milliseconds and counts of the current or last run.
struct RunStats {
  size_t n_prompt = 0;
  size_t n_prompt_reused = 0;  // found in the cache, not computed again
  size_t n_generated = 0;
  double prefill_ms = 0.0;
  double decode_ms = 0.0;
};

class Session {
 public:
  // Throws Error(kBadOption | kOutOfMemory). The pool must outlive the session.
  Session(std::shared_ptr<const Model> model, const SessionOptions& options, ThreadPool& pool);
  ~Session();

  // Starts a run on the full token sequence `tokens`: the longest prefix already in the cache is kept, the rest will be
  // computed. Throws Error(kContextFull) if tokens.size() > n_ctx, kBadOption for an empty sequence or an id >= vocab_size.
  // An error leaves the session as it was.
  void Begin(std::span<const uint32_t> tokens, const GenerateOptions& options);
  // Works for about budget_ms (at least one step: it can stop after any layer), until a token is there or the run ends.
  AdvanceResult Advance(double budget_ms);
  // Ends the run; what is in the cache stays valid. The next Begin may reuse it.
  void Cancel();
  // Keeps the first n_tokens of the history and the cache. Throws kBadOption if n_tokens > history.
  void Truncate(size_t n_tokens);

  // Logits without generation: all positions ([n_tokens, vocab_size]) or the last ([vocab_size]). Blocks until done.
  std::vector<float> Logits(std::span<const uint32_t> tokens, bool all_positions);

  // Set to true by another thread to make Advance return after the current layer (shared memory builds).
  std::atomic<uint32_t>& cancel_flag();

  const std::vector<uint32_t>& history() const;  // tokens whose rows are in the cache, plus the last sampled one
  const RunStats& stats() const;
  const SessionPlan& plan() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headlight

#endif  // HEADLIGHT_SESSION_SESSION_H_
