// One block of a model, tensor by tensor: what the decoder has in memory while the layer runs, and
// how long it took to get from each to the next.
#ifndef HEADLIGHT_LAB_BLOCK_TRACE_H_
#define HEADLIGHT_LAB_BLOCK_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "kv/kv_cache.h"
#include "model/layer_observer.h"
#include "model/model.h"

namespace headlight {

struct BlockTraceOptions {
  size_t layer = 0;
  KvCacheFormat kv_format;
  // The last token alone, with the others in the cache; else all tokens at once.
  bool last_only = false;
  double budget_ms = 100.0;  // the pass is repeated for so long, and the times are means
};

struct TracedTensor {
  LayerTensor what = LayerTensor::kInput;
  size_t n_rows = 0;
  size_t n_cols = 0;
  double ms = 0.0;  // since the tensor before; 0 for the first, and for what was there
};

struct BlockTrace {
  std::vector<TracedTensor> tensors;
  std::vector<float> values;  // of all tensors, [n_rows, n_cols] one after the other
  size_t n_passes = 0;
};

// Throws Error(kBadOption | kOutOfMemory). At most kMaxTraceTokens tokens.
inline constexpr size_t kMaxTraceTokens = 512;
BlockTrace TraceBlock(std::shared_ptr<const Model> model, std::span<const uint32_t> tokens,
                      const BlockTraceOptions& options, ThreadPool& pool);

}  // namespace headlight

#endif  // HEADLIGHT_LAB_BLOCK_TRACE_H_
