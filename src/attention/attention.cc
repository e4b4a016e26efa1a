#include "attention/attention.h"

#include <cmath>
#include <limits>
#include <string>

#include "attention/scratch.h"
#include "base/error.h"

namespace headlight {
namespace {

// In double and saturating: on wasm32 too large a context has to fail to allocate, not wrap around.
size_t WorkspaceFloats(const HeadLayout& widest, size_t n_ctx, size_t n_threads) {
  const double threads = static_cast<double>(AttentionScratch(widest, nullptr).n_floats()) *
                         static_cast<double>(n_threads);
  const double partials = static_cast<double>(CeilDiv(n_ctx, kDecodeChunk)) *
                          static_cast<double>(widest.n_q_heads) *
                          static_cast<double>(PartialFloats(widest.d_v));
  constexpr size_t kMax = std::numeric_limits<size_t>::max() / sizeof(float);
  const double total = threads + partials;  // exact below 2^53
  return total < static_cast<double>(kMax) ? static_cast<size_t>(total) : kMax;
}

[[noreturn]] void ThrowBadSpec(const char* field, const std::string& value, const char* rule) {
  throw Error(ErrorCode::kBadOption,
              "attention " + std::string(field) + " is " + value + "; " + rule,
              {{"option", field}, {"value", value}});
}

// One number for each query head, or null.
void CheckFinite(const char* field, const float* values, size_t n) {
  for (size_t i = 0; values != nullptr && i < n; ++i) {
    if (!std::isfinite(values[i])) ThrowBadSpec(field, std::to_string(values[i]), "each is finite");
  }
}

}  // namespace

void CheckAttentionSpec(const AttentionSpec& spec) {
  const HeadLayout& layout = spec.layout;
  if (layout.n_kv_heads == 0 || layout.n_q_heads == 0 ||
      layout.n_q_heads % layout.n_kv_heads != 0) {
    ThrowBadSpec("n_kv_heads", std::to_string(layout.n_kv_heads),
                 ("it has to divide n_q_heads = " + std::to_string(layout.n_q_heads)).c_str());
  }
  if (layout.d_qk == 0) ThrowBadSpec("d_qk", "0", "it has to be at least 1");
  if (layout.d_v == 0) ThrowBadSpec("d_v", "0", "it has to be at least 1");
  if (!std::isfinite(spec.scale)) {
    ThrowBadSpec("scale", std::to_string(spec.scale),
                 "it has to be finite, usually 1 / sqrt(d_qk)");
  }
  if (!std::isfinite(spec.softcap) || spec.softcap < 0.0f) {
    ThrowBadSpec("softcap", std::to_string(spec.softcap), "it has to be 0 (none) or positive");
  }
  CheckFinite("alibi_slopes", spec.alibi_slopes, layout.n_q_heads);
  CheckFinite("sink_logits", spec.sink_logits, layout.n_q_heads);
}

AttentionWorkspace::AttentionWorkspace(const HeadLayout& widest, size_t n_ctx, size_t n_threads)
    : n_threads_(n_threads),
      thread_floats_(AttentionScratch(widest, nullptr).n_floats()),
      floats_(WorkspaceFloats(widest, n_ctx, n_threads)) {}

size_t AttentionWorkspace::Bytes(const HeadLayout& widest, size_t n_ctx, size_t n_threads) {
  return WorkspaceFloats(widest, n_ctx, n_threads) * sizeof(float);
}

void Attend(const AttentionSpec& spec, const AttentionArgs& args, AttentionWorkspace& workspace,
            ThreadPool& pool) noexcept {
  if (args.n_tokens == 1) {
    AttentionDecode(spec, args, workspace, pool);
  } else {
    AttentionTiled(spec, args, workspace, pool);
  }
}

}  // namespace headlight
