#include "session/session.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "model/decoder.h"
#include "session/capture_request.h"
#include "session/session_checks.h"
#include "session/session_plan.h"
#include "session/step_pace.h"
#include "session/stopwatch.h"

namespace headlight {
namespace {

// Room for n_tokens rows of logits. Throws Error(kOutOfMemory).
std::vector<float> MakeLogits(size_t n_tokens, size_t vocab_size) {
  std::vector<float> logits;
  const uint64_t n = uint64_t{n_tokens} * vocab_size;
  try {
    if (n > logits.max_size()) throw std::bad_alloc();
    logits.resize(static_cast<size_t>(n));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory,
                "no memory for the logits of " + std::to_string(n_tokens) +
                    " positions; ask for the last one only, or for fewer tokens",
                {{"needed_bytes", std::to_string(n * sizeof(float))}});
  }
  return logits;
}

// A sequence to compute; the rows of its first n_reused tokens are in the cache.
struct Prompt {
  std::vector<uint32_t> tokens;
  size_t n_reused = 0;
};

struct Run {
  Prompt prompt;
  GenerateOptions options;
  Sampler sampler;
  bool is_decoding = false;  // the prompt is done, tokens come one by one

  const CaptureRequest* capture() const {
    return options.capture.has_value() ? &*options.capture : nullptr;
  }
};

// Logits without generation.
struct ForwardRun {
  Prompt prompt;
  bool all_positions = false;
  std::vector<float> logits;
};

}  // namespace

struct Session::Impl {
  Impl(std::shared_ptr<const Model> m, const SessionOptions& options, ThreadPool& pool)
      : model(std::move(m)),
        plan(PlanSession(model->spec, options, pool.n_threads())),
        activations(options.activations),
        eviction(options.eviction),
        cache(Decoder::PlanCache(model->spec, DecoderOptionsOf(plan, options)), options.kv_format,
              plan.n_ctx),
        decoder(*model, DecoderOptionsOf(plan, options), pool),
        logits(model->spec.vocab_size),
        pace(model->spec, plan.prefill_chunk) {
    history.reserve(plan.n_ctx + 1);
  }

  size_t vocab_size() const { return model->spec.vocab_size; }
  SavedFit Fit() const { return {model->content_hash, cache.format(), activations, vocab_size()}; }

  Prompt Reuse(std::span<const uint32_t> tokens, const ForwardCapture* for_capture) const;
  void CutTo(size_t n_tokens);
  void EndRun(FinishReason reason);
  void Restart(const Prompt& prompt, std::unique_ptr<ForwardCapture> prompt_capture);
  void StartPromptChunk(const Prompt& prompt, LogitsOf last_chunk, float* chunk_logits);
  void StartStep();
  bool StepChunk(std::span<const uint32_t> prompt);
  void CommitChunk(std::span<const uint32_t> prompt);
  // For another step: one that would end long after the budget is not begun.
  bool HasTime(const Stopwatch& stopwatch, double budget_ms) const {
    return stopwatch.ms() + pace.step_ms() / 2 < budget_ms;
  }
  bool PromptDone(const Prompt& prompt) const { return cache.n_rows() == prompt.tokens.size(); }
  void TakeToken(Run& current, AdvanceResult& result);

  std::shared_ptr<const Model> model;
  SessionPlan plan;
  ActivationType activations;
  EvictionOptions eviction;
  KvCache cache;
  Decoder decoder;
  AlignedArray<float> logits;  // [vocab_size]: of the last row
  std::vector<uint32_t> history;
  std::optional<Run> run;  // or forward
  std::optional<ForwardRun> forward;
  FinishReason finish = FinishReason::kNone;  // of the last run
  RunStats stats;
  std::function<bool()> stop_asked = [] { return false; };

  StepPace pace;
  // The chunk that the decoder is at; its rows count as live when it is done.
  bool has_chunk = false;
  size_t n_chunk = 0;
  std::unique_ptr<ForwardCapture> capture;  // of the prompt or the step at work, or null
};

Prompt Session::Impl::Reuse(std::span<const uint32_t> tokens,
                            const ForwardCapture* for_capture) const {
  const size_t n_comparable = std::min(cache.n_rows(), tokens.size());
  const auto begin = tokens.begin();
  const auto differs =
      std::mismatch(begin, begin + static_cast<std::ptrdiff_t>(n_comparable), history.begin());
  const size_t n_common = static_cast<size_t>(differs.first - begin);
  Prompt prompt;
  prompt.tokens.assign(begin, tokens.end());
  prompt.n_reused = std::min(n_common, tokens.size() - 1);
  if (for_capture != nullptr) {
    prompt.n_reused = std::min<size_t>(prompt.n_reused, for_capture->first_position());
  }
  prompt.n_reused = cache.Restorable(prompt.n_reused);
  return prompt;
}

// An unfinished chunk is forgotten: its rows were never live.
void Session::Impl::CutTo(size_t n_tokens) {
  has_chunk = false;
  capture.reset();
  history.resize(n_tokens);
  cache.RollBack(std::min(cache.n_rows(), n_tokens));
}

void Session::Impl::EndRun(FinishReason reason) {
  run.reset();
  forward.reset();
  finish = reason;
}

// Whatever was under way ends, and the prompt is next.
void Session::Impl::Restart(const Prompt& prompt, std::unique_ptr<ForwardCapture> prompt_capture) {
  EndRun(FinishReason::kNone);
  CutTo(prompt.n_reused);
  if (eviction.policy == EvictionPolicy::kSnapKv) cache.ClearMass();
  capture = std::move(prompt_capture);
  stats = {};
  stats.n_prompt = prompt.tokens.size();
  stats.n_prompt_reused = prompt.n_reused;
}

void Session::Impl::StartPromptChunk(const Prompt& prompt, LogitsOf last_chunk,
                                     float* chunk_logits) {
  DecoderChunk chunk;
  chunk.pos0 = cache.n_rows();
  const size_t n_left = prompt.tokens.size() - chunk.pos0;
  n_chunk = std::min(pace.n_tokens(), n_left);
  if (eviction.policy == EvictionPolicy::kH2o) {
    n_chunk = std::min(n_chunk, kH2oStep - chunk.pos0 % kH2oStep);
  }
  if (eviction.policy == EvictionPolicy::kSnapKv) {
    chunk.counts_from = prompt.tokens.size() - std::min(prompt.tokens.size(), eviction.window);
  }
  const bool is_last = n_chunk == n_left;
  chunk.tokens = std::span(prompt.tokens).subspan(chunk.pos0, n_chunk);
  const bool wants_all = last_chunk == LogitsOf::kAllRows;
  chunk.logits_of = wants_all || is_last ? last_chunk : LogitsOf::kNone;
  chunk.logits = chunk_logits + (wants_all ? chunk.pos0 * vocab_size() : 0);
  chunk.times = &stats.prefill_stages;
  chunk.capture = capture.get();
  has_chunk = true;
  decoder.Start(chunk, cache);
}

void Session::Impl::StartStep() {
  DecoderChunk chunk;
  chunk.pos0 = cache.n_rows();
  capture = MakeStepCapture(model->spec, run->capture(), chunk.pos0);
  chunk.capture = capture.get();
  chunk.tokens = std::span(history).subspan(chunk.pos0, 1);
  chunk.logits_of = LogitsOf::kLastRow;
  chunk.logits = logits.data();
  chunk.times = &stats.decode_stages;
  if (eviction.policy == EvictionPolicy::kSnapKv) chunk.counts_from = plan.n_ctx;
  n_chunk = 1;
  has_chunk = true;
  decoder.Start(chunk, cache);
}

// A step of the chunk at work, and what follows its last; whether that was it. prompt: as below.
bool Session::Impl::StepChunk(std::span<const uint32_t> prompt) {
  const Stopwatch stopwatch;
  const bool has_more = decoder.Step();
  pace.Stepped(stopwatch.ms());
  if (has_more) return false;
  if (!prompt.empty()) pace.ChunkDone(n_chunk);
  CommitChunk(prompt);
  return true;
}

// Makes the chunk's rows live. prompt: the tokens that join the history, empty for a step, whose
// token is there already.
void Session::Impl::CommitChunk(std::span<const uint32_t> prompt) {
  const size_t pos0 = cache.n_rows();
  if (!prompt.empty()) {
    const std::span<const uint32_t> tokens = prompt.subspan(pos0, n_chunk);
    history.insert(history.end(), tokens.begin(), tokens.end());
  }
  cache.CommitChunk(pos0 + n_chunk);
  cache.Evict(eviction, cache.n_rows() == prompt.size());
  has_chunk = false;
}

void Session::Impl::TakeToken(Run& current, AdvanceResult& result) {
  const GenerateOptions& options = current.options;
  SampledToken token = current.sampler.Sample({logits.data(), logits.size()}, history);
  const std::vector<uint32_t>& stops = options.stop_tokens;
  if (!options.ignore_stop_tokens &&
      std::find(stops.begin(), stops.end(), token.id) != stops.end()) {
    EndRun(FinishReason::kStop);
    return;
  }
  history.push_back(token.id);
  result.tokens.push_back(std::move(token));
  ++stats.n_generated;
  const bool is_enough = stats.n_generated == options.max_tokens;
  if (is_enough || cache.n_rows() == plan.n_ctx) EndRun(FinishReason::kLength);
}

Session::Session(std::shared_ptr<const Model> model, const SessionOptions& options,
                 ThreadPool& pool)
    : impl_(std::make_unique<Impl>(std::move(model), options, pool)) {}

Session::~Session() = default;

void Session::Begin(std::span<const uint32_t> tokens, const GenerateOptions& options) {
  Impl& s = *impl_;
  CheckTokens(tokens, s.plan.n_ctx, s.vocab_size());
  CheckIds("stop_tokens", options.stop_tokens, s.vocab_size());
  // Everything that can fail is done before the first change.
  Run run = {{}, options, Sampler(options.sampler, s.vocab_size())};
  CheckCapture(run.capture(), s.eviction);
  auto capture = MakePromptCapture(s.model->spec, run.capture(), tokens.size());
  run.prompt = s.Reuse(tokens, capture.get());
  s.Restart(run.prompt, std::move(capture));
  s.run = std::move(run);
}

AdvanceResult Session::Advance(double budget_ms) {
  Impl& s = *impl_;
  AdvanceResult result;
  if (s.run.has_value()) {
    const Stopwatch stopwatch;
    const bool is_decoding = s.run->is_decoding;
    bool chunk_done = false;
    try {
      do {
        if (s.stop_asked()) {
          s.EndRun(FinishReason::kAborted);
          break;
        }
        if (!s.has_chunk && is_decoding) s.StartStep();
        if (!s.has_chunk) s.StartPromptChunk(s.run->prompt, LogitsOf::kLastRow, s.logits.data());
        chunk_done = s.StepChunk(is_decoding ? std::span<const uint32_t>() : s.run->prompt.tokens);
        if (!chunk_done) continue;
        if (is_decoding) ++s.stats.n_decode_steps;
        s.run->is_decoding = is_decoding || s.PromptDone(s.run->prompt);
        if (s.run->is_decoding) {
          if (s.capture != nullptr) result.captures.push_back(std::move(*s.capture));
          s.capture.reset();
          const Stopwatch sampling;
          s.TakeToken(*s.run, result);
          (is_decoding ? s.stats.decode_stages : s.stats.prefill_stages)[Stage::kSampling] +=
              sampling.ms();
        }
      } while (!chunk_done && s.HasTime(stopwatch, budget_ms));
    } catch (...) {
      // The rows may hold what made the logits unusable.
      s.EndRun(FinishReason::kAborted);
      s.CutTo(0);
      throw;
    }
    (is_decoding ? s.stats.decode_ms : s.stats.prefill_ms) += stopwatch.ms();
  }
  result.done = !s.run.has_value();
  result.finish = s.finish;
  result.n_prompt = s.stats.n_prompt;
  result.n_prompt_done = std::min(s.cache.n_rows(), s.stats.n_prompt);
  return result;
}

void Session::Cancel() {
  const bool is_under_way = impl_->run.has_value() || impl_->forward.has_value();
  if (is_under_way) impl_->EndRun(FinishReason::kAborted);
}

void Session::Truncate(size_t n_tokens) {
  const size_t n_history = impl_->history.size();
  if (n_tokens > n_history) {
    throw Error(ErrorCode::kBadOption,
                "n_tokens is " + std::to_string(n_tokens) + ", it must be at most the history's " +
                    std::to_string(n_history),
                {{"option", "n_tokens"},
                 {"value", std::to_string(n_tokens)},
                 {"range", "at most " + std::to_string(n_history)}});
  }
  Cancel();
  impl_->CutTo(n_tokens);
}

void Session::CopyFrom(Session& other) {
  if (&other == this) return;
  Cancel();
  Impl& s = *impl_;
  s.CutTo(0);
  s.stats = {};
  s.history = other.impl_->history;
  s.cache.CopyRows(other.impl_->cache);
}

uint64_t Session::SavedBytes() const {
  CheckSave(impl_->eviction);
  return headlight::SavedBytes(impl_->history.size(), impl_->cache);
}

void Session::Save(SavedSink& sink) const {
  CheckSave(impl_->eviction);
  WriteSaved(impl_->Fit(), impl_->history, impl_->cache, sink);
}

void Session::Restore(SavedSource& source) {
  Impl& s = *impl_;
  CheckSave(s.eviction);
  const std::vector<uint32_t> history = ReadSaved(s.Fit(), source, s.cache);
  Cancel();
  s.has_chunk = false;
  s.capture.reset();
  s.stats = {};
  s.history.assign(history.begin(), history.end());
}

std::vector<float> Session::Logits(std::span<const uint32_t> tokens, bool all_positions) {
  return Compute(tokens, all_positions, nullptr).logits;
}

Session::Forward Session::Compute(std::span<const uint32_t> tokens, bool all_positions,
                                  const CaptureRequest* request) {
  BeginForward(tokens, all_positions, request);
  return AdvanceForward().value();
}

void Session::BeginForward(std::span<const uint32_t> tokens, bool all_positions,
                           const CaptureRequest* request) {
  Impl& s = *impl_;
  CheckTokens(tokens, s.plan.n_ctx, s.vocab_size());
  CheckCapture(request, s.eviction);
  auto capture = MakePromptCapture(s.model->spec, request, tokens.size());
  ForwardRun forward = {{}, all_positions, {}};
  forward.logits = MakeLogits(all_positions ? tokens.size() : 1, s.vocab_size());
  forward.prompt = s.Reuse(tokens, capture.get());
  if (all_positions) forward.prompt.n_reused = 0;  // the cache has no logits of earlier rows
  s.Restart(forward.prompt, std::move(capture));
  s.forward = std::move(forward);
}

std::optional<Session::Forward> Session::AdvanceForward(double budget_ms) {
  Impl& s = *impl_;
  const Stopwatch stopwatch;
  do {
    if (!s.forward.has_value() || s.stop_asked()) {
      s.EndRun(FinishReason::kAborted);
      throw Error(ErrorCode::kAborted, "the computation of logits was cancelled");
    }
    const Prompt& prompt = s.forward->prompt;
    const LogitsOf wanted = s.forward->all_positions ? LogitsOf::kAllRows : LogitsOf::kLastRow;
    if (!s.has_chunk) s.StartPromptChunk(prompt, wanted, s.forward->logits.data());
    if (s.StepChunk(prompt.tokens) && s.PromptDone(prompt)) break;
  } while (s.HasTime(stopwatch, budget_ms));
  s.stats.prefill_ms += stopwatch.ms();
  if (!s.PromptDone(s.forward->prompt)) return std::nullopt;
  Forward result = {std::move(s.forward->logits), std::move(s.capture)};
  s.forward.reset();
  return result;
}

void Session::set_stop_asked(std::function<bool()> stop_asked) {
  impl_->stop_asked = std::move(stop_asked);
}
const std::vector<uint32_t>& Session::history() const { return impl_->history; }
const RunStats& Session::stats() const { return impl_->stats; }
const SessionPlan& Session::plan() const { return impl_->plan; }

}  // namespace headlight
