// Which keys a session keeps when it keeps fewer than all: plain data, chosen once for a session,
// and the choice itself.
#ifndef HEADLIGHT_KV_EVICTION_H_
#define HEADLIGHT_KV_EVICTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headlight {

enum class EvictionPolicy : uint8_t {
  kNone,
  // The first keys and the most recent ones (StreamingLLM, arXiv 2309.17453). A query meets the
  // first keys as if what is between had never been: at the distances of their places in the cache.
  // Keys are never rewritten; a second copy of the query is rotated for them.
  kSinks,
  // Heavy hitters (H2O, arXiv 2306.14048): the keys with the most attention so far, over all
  // queries and the query heads of their KV head, and the most recent ones. Keys keep their
  // positions.
  kH2o,
  // At the end of each prompt the keys that its last queries attend to most, after averaging over
  // five neighbours, and those queries' own (SnapKV, arXiv 2404.14469). What is generated then
  // stays.
  kSnapKv,
};

struct EvictionOptions {
  EvictionPolicy policy = EvictionPolicy::kNone;
  size_t n_sinks = 4;   // kSinks: the first keys
  size_t window = 128;  // the recent keys that always stay, the query's own included; kSnapKv: also
                        // the queries whose attention counts
  size_t budget = 0;    // kH2o, kSnapKv: keys that each layer and KV head keeps
  bool operator==(const EvictionOptions&) const = default;
};

// More first keys than this have never helped, and fewer fit into a kernel's scratch.
inline constexpr size_t kMaxSinks = 32;
// H2O gives keys up at positions that are multiples of this, wherever chunks end: the same keys for
// a prompt and for its tokens one by one. A cache holds that many more than its budget.
inline constexpr size_t kH2oStep = 64;

// Whether layers that attend to everything keep rows of their choice (kept_rows.h).
inline bool ChoosesRows(const EvictionOptions& options) {
  return options.policy == EvictionPolicy::kH2o || options.policy == EvictionPolicy::kSnapKv;
}

// The keys that a layer's queries attend to: the recent ones, and first ones that stay when the
// window has left them behind.
struct KeySpan {
  size_t window = 0;  // 0: all
  size_t n_sinks = 0;
  bool operator==(const KeySpan&) const = default;
};

// What `options` leave of a layer's own span.
inline KeySpan EvictedSpan(const EvictionOptions& options, KeySpan own) {
  const bool applies =
      options.policy == EvictionPolicy::kSinks && (own.window == 0 || own.window > options.window);
  return applies ? KeySpan{options.window, options.n_sinks} : own;
}

// The n_victims rows of one head that the policy (kH2o or kSnapKv) gives up, of rows that hold
// `positions` and have received `mass`; never one of the `window` most recent positions. Of equal
// mass the older goes first. n_victims <= rows - window.
std::vector<uint32_t> ChooseVictims(const EvictionOptions& options,
                                    std::span<const uint32_t> positions,
                                    std::span<const float> mass, size_t n_victims);

}  // namespace headlight

#endif  // HEADLIGHT_KV_EVICTION_H_
