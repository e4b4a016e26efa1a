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

}  // namespace

std::vector<HeadLayout> HeadLayouts(const ModelSpec& spec) {
  std::vector<HeadLayout> layouts;
  for (const LayerSpec& layer : spec.layers) layouts.push_back(layer.heads);
  return layouts;
}

DecoderOptions DecoderOptionsOf(const SessionPlan& plan, ActivationType activations) {
  DecoderOptions options;
  options.n_ctx = plan.n_ctx;
  options.max_tokens = plan.prefill_chunk;
  options.activations = activations;
  return options;
}

SessionPlan PlanSession(const ModelSpec& spec, const SessionOptions& options, size_t n_threads) {
  CheckAtMost("n_ctx", options.n_ctx, spec.n_ctx_train,
              "the context that the model was trained for");
  CheckAtMost("prefill_chunk", options.prefill_chunk, kMaxPrefillChunk,
              "where nothing is gained any more");
  SessionPlan plan;
  plan.n_ctx = options.n_ctx != 0 ? options.n_ctx : std::min(spec.n_ctx_train, kDefaultMaxCtx);
  const size_t chunk = options.prefill_chunk != 0 ? options.prefill_chunk : kDefaultPrefillChunk;
  plan.prefill_chunk = std::min(chunk, plan.n_ctx);
  plan.kv_cache_bytes = KvCache::Bytes(HeadLayouts(spec), options.kv_format, plan.n_ctx);
  for (const LayerSpec& layer : spec.layers) {
    plan.kv_bytes_per_token += KvLayer::BytesPerToken(layer.heads, options.kv_format);
  }
  plan.workspace_bytes =
      Decoder::WorkspaceBytes(spec, DecoderOptionsOf(plan, options.activations), n_threads) +
      spec.vocab_size * sizeof(float);
  return plan;
}

}  // namespace headlight
