// One conversation over shared weights: its KV cache, its token history, its sampler, and
// Advance(budget), which works in small steps so that the caller's thread can cancel, report
// progress and serve others in between. A sequence gives the same numbers bit for bit however it
// came to be computed: at once or token by token, from the start or on top of what the cache holds.
// Tokens only, no text. One thread at a time.
#ifndef HEADLIGHT_SESSION_SESSION_H_
#define HEADLIGHT_SESSION_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "kernels/matmul.h"
#include "kv/eviction.h"
#include "kv/kv_cache.h"
#include "model/forward_capture.h"
#include "model/model.h"
#include "model/stage_times.h"
#include "sample/sampler.h"
#include "session/saved_session.h"

namespace headlight {

struct SessionOptions {
  size_t n_ctx = 0;  // 0: min(model's, kDefaultMaxCtx)
  KvCacheFormat kv_format;
  ActivationType activations = ActivationType::kInt8;
  EvictionOptions eviction = {};  // how keys are given up, if they are
  // Tokens of a prefill step, at most kMaxPrefillChunk; 0: kDefaultPrefillChunk.
  size_t prefill_chunk = 0;
};

// A cache for more than this costs memory that few conversations use; a caller can ask for more.
inline constexpr size_t kDefaultMaxCtx = 4096;
// With sinks a session may go on past the model's context; the history and the tables of angles
// grow with it.
inline constexpr size_t kMaxStreamCtx = size_t{1} << 20;
// Measured with 135M parameters (Q8_0, one x86 core): 64 to 256 tokens are within 1 % of each
// other, 32 is 7 % slower. The smallest of them has the shortest steps and the smallest workspace.
inline constexpr size_t kDefaultPrefillChunk = 64;
// Beyond, a step only gets longer (so Advance overshoots its budget) and the workspace larger.
inline constexpr size_t kMaxPrefillChunk = 1024;

// What a session allocates, known from the spec alone.
struct SessionPlan {
  size_t n_ctx = 0;
  size_t prefill_chunk = 0;
  size_t kv_cache_bytes = 0;  // layers with a window keep little more than it
  size_t kv_bytes_per_token = 0;
  size_t workspace_bytes = 0;  // exact; logits of one row included
};
// Throws Error(kBadOption) for an n_ctx of more than the model's (unless eviction keeps every
// distance below that), a prefill_chunk of more than kMaxPrefillChunk, or an eviction that keeps no
// key, more than kMaxSinks first ones, or more than the model's context.
SessionPlan PlanSession(const ModelSpec& spec, const SessionOptions& options, size_t n_threads);

// What to keep of a computation, to be looked at, and of which of its tokens. Rows that are in the
// cache already are computed again for it.
struct CaptureRequest {
  enum class RowsOf : uint8_t { kLast, kAll, kListed };

  CaptureOptions what;
  RowsOf rows_of = RowsOf::kLast;
  std::vector<uint32_t> rows;  // kListed: positions in the given tokens, none twice
};

struct GenerateOptions {
  SamplerOptions sampler;
  size_t max_tokens = 0;              // 0: until the context is full
  std::vector<uint32_t> stop_tokens;  // end-of-generation ids: end the run, not part of the result
  bool ignore_stop_tokens = false;
  // Of rows of the prompt, then of each step's one row.
  std::optional<CaptureRequest> capture;
};

// kLength: max_tokens were generated, or the last one found no room in the context.
enum class FinishReason : uint8_t { kNone, kStop, kLength, kAborted };

struct AdvanceResult {
  bool done = false;
  FinishReason finish = FinishReason::kNone;
  size_t n_prompt_done = 0;  // prompt tokens in the cache, reused ones included
  size_t n_prompt = 0;
  std::vector<SampledToken> tokens;  // generated in this call, in order
  // As GenerateOptions::capture asks: one of the prompt, when its first token is sampled, then one
  // a step, of the row that the step's token is sampled from.
  std::vector<ForwardCapture> captures;
};

// Milliseconds and counts of the current or last run. Time between calls of Advance does not count.
struct RunStats {
  size_t n_prompt = 0;
  size_t n_prompt_reused = 0;  // found in the cache, not computed again
  size_t n_generated = 0;
  size_t n_decode_steps = 0;  // of one token each, in decode_ms: n_generated less 1, usually
  double prefill_ms = 0.0;    // of the n_prompt - n_prompt_reused others, up to the first token
  double decode_ms = 0.0;
  StageTimes prefill_stages, decode_stages;  // what of those it went into
};

class Session {
 public:
  // Throws Error(kBadOption | kOutOfMemory). The pool must outlive the session.
  Session(std::shared_ptr<const Model> model, const SessionOptions& options, ThreadPool& pool);
  ~Session();

  // Starts a run on the full token sequence `tokens`, in place of a run that is not finished. The
  // longest prefix already in the cache is kept, the rest will be computed; the last token always
  // is, for its logits. Clears the cancel flag. Throws Error(kContextFull) if tokens.size() >
  // n_ctx, kBadOption for an empty sequence, an id >= vocab_size or a bad option. An error leaves
  // the session, and a run in progress, as they were.
  void Begin(std::span<const uint32_t> tokens, const GenerateOptions& options);
  // Works until a token or a prefill chunk is done, about budget_ms have passed (it can stop after
  // any step of the decoder, and does at least one) or the run ends. Without a run it does nothing
  // and reports how the last one ended. Throws Error(kInternal) if the model's numbers overflowed;
  // the run has then ended and the cache is empty.
  AdvanceResult Advance(double budget_ms);
  // Ends the run; what is in the cache stays valid. The next Begin may reuse it.
  void Cancel();
  // Ends the run and keeps the first n_tokens of the history, and of the cache what it can: where a
  // layer's ring no longer holds what the next token looks back on, the next run computes the
  // history again. Throws kBadOption if n_tokens > history.
  void Truncate(size_t n_tokens);

  // Takes over the history and the rows of another session of the same model and options, in place
  // of its own and of a run in progress: a copy of kv_bytes_per_token for each row.
  void CopyFrom(Session& other);
  // Saves history and rows (saved_session.h): SavedBytes() bytes in all, in pieces. All three throw
  // Error(kUnsupported) where an eviction chooses rows.
  uint64_t SavedBytes() const;
  void Save(SavedSink& sink) const;
  // Takes over what Save wrote, in place of the history and of a run in progress. Throws like
  // ReadSaved; the session is then as it was.
  void Restore(SavedSource& source);

  // Logits without generation: all positions ([n_tokens, vocab_size]) or the last ([vocab_size]).
  // Blocks until done, ends a run in progress, leaves `tokens` as the history. For the last
  // position a prefix in the cache is kept. Throws like Begin, Error(kOutOfMemory), and
  // Error(kAborted) when the cancel flag is set meanwhile.
  std::vector<float> Logits(std::span<const uint32_t> tokens, bool all_positions);
  // The same, and what `capture` asks for, if it is given.
  struct Forward {
    std::vector<float> logits;
    std::unique_ptr<ForwardCapture> capture;
  };
  Forward Compute(std::span<const uint32_t> tokens, bool all_positions,
                  const CaptureRequest* capture);
  // The same in pieces of about budget_ms: until AdvanceForward has the result. What ends a run
  // ends it too; AdvanceForward throws Error(kAborted) then, and without BeginForward. What is in
  // the cache by then stays valid.
  void BeginForward(std::span<const uint32_t> tokens, bool all_positions,
                    const CaptureRequest* capture);
  std::optional<Forward> AdvanceForward(double budget_ms = std::numeric_limits<double>::infinity());

  // Asked before each step, between two layers, on the thread that computes: true ends the run, and
  // Advance reports kAborted. For stops by another thread.
  void set_stop_asked(std::function<bool()> stop_asked);

  // Tokens whose rows are in the cache, plus the last sampled one, whose row is not. A stop token
  // that ended a run is not part of it. While a prompt is being computed: what of it is done.
  const std::vector<uint32_t>& history() const;
  const RunStats& stats() const;
  const SessionPlan& plan() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headlight

#endif  // HEADLIGHT_SESSION_SESSION_H_
