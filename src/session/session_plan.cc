#include "session/session_plan.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "model/decoder.h"
#include "session/session.h"

namespace headlight {
namespace {

void CheckAtMost(const char* name, size_t value, size_t limit, const char* what) {
  if (value <= limit) return;
  const std::string range = "at most " + std::to_string(limit) + ", " + what;
  throw Error(ErrorCode::kBadOption,
              std::string(name) + " is " + std::to_string(value) + ", it must be " + range,
              {{"option", name}, {"value", std::to_string(value)}, {"range", range}});
}

void CheckEviction(const ModelSpec& spec, const EvictionOptions& eviction) {
  if (eviction.policy == EvictionPolicy::kNone) return;
  for (const LayerSpec& layer : spec.layers) {
    if (!layer.fixed_heads.empty()) {
      throw Error(
          ErrorCode::kUnsupported,
          "eviction serves no model with heads that were replaced by a fixed pattern, which "
          "reads values wherever they are; use eviction 'none'",
          {{"option", "eviction.policy"}});
    }
    if (layer.alibi_max_bias == 0.0f && layer.latent.rank == 0) continue;
    throw Error(
        ErrorCode::kUnsupported,
        "eviction serves no model with ALiBi, whose scores are of distances in the text, or "
        "with latent attention; use eviction 'none'",
        {{"option", "eviction.policy"}});
  }
  if (ChoosesRows(eviction)) {
    CheckAtMost("eviction.window", eviction.window, eviction.budget,
                "the budget, of which the recent keys are part");
    if (eviction.window != 0) return;
  }
  CheckAtMost("eviction.sinks", eviction.n_sinks, kMaxSinks,
              "more first keys than that never help");
  if (eviction.window == 0) {
    throw Error(ErrorCode::kBadOption,
                "eviction.window is 0, it must be at least 1: a query's own key",
                {{"option", "eviction.window"}, {"value", "0"}, {"range", "at least 1"}});
  }
  const size_t n_left = spec.n_ctx_train - std::min(spec.n_ctx_train, eviction.n_sinks);
  CheckAtMost("eviction.window", eviction.window, n_left,
              "what the model's context leaves beside the sinks");
}

}  // namespace

DecoderOptions DecoderOptionsOf(const SessionPlan& plan, const SessionOptions& options_given) {
  DecoderOptions options;
  options.n_ctx = plan.n_ctx;
  options.max_tokens = plan.prefill_chunk;
  options.activations = options_given.activations;
  options.eviction = options_given.eviction;
  return options;
}

SessionPlan PlanSession(const ModelSpec& spec, const SessionOptions& options, size_t n_threads) {
  CheckEviction(spec, options.eviction);
  if (options.eviction.policy == EvictionPolicy::kSinks) {
    CheckAtMost("n_ctx", options.n_ctx, kMaxStreamCtx, "the length of the longest stream");
  } else {
    CheckAtMost("n_ctx", options.n_ctx, spec.n_ctx_train,
                "the context that the model was trained for");
  }
  CheckAtMost("prefill_chunk", options.prefill_chunk, kMaxPrefillChunk,
              "where nothing is gained any more");
  SessionPlan plan;
  plan.n_ctx = options.n_ctx != 0 ? options.n_ctx : std::min(spec.n_ctx_train, kDefaultMaxCtx);
  const size_t chunk = options.prefill_chunk != 0 ? options.prefill_chunk : kDefaultPrefillChunk;
  plan.prefill_chunk = std::min(chunk, plan.n_ctx);
  plan.kv_cache_bytes =
      KvCache::Bytes(Decoder::PlanCache(spec, DecoderOptionsOf(plan, options)), options.kv_format);
  for (const LayerSpec& layer : spec.layers) {
    plan.kv_bytes_per_token += KvLayer::BytesPerToken(layer.heads, options.kv_format);
  }
  plan.workspace_bytes = Decoder::WorkspaceBytes(spec, DecoderOptionsOf(plan, options), n_threads) +
                         spec.vocab_size * sizeof(float);
  return plan;
}

}  // namespace headlight
