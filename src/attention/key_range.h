// Which cache rows a query admits: the mask as a range, so that kernels skip what is masked instead
// of computing it.
#ifndef HEADLIGHT_ATTENTION_KEY_RANGE_H_
#define HEADLIGHT_ATTENTION_KEY_RANGE_H_

#include <algorithm>
#include <cstddef>

#include "attention/attention.h"

namespace headlight {

// Rows [begin, end), begin <= end.
struct KeyRange {
  size_t begin;
  size_t end;
};

// Rows that a query at `pos` admits out of [0, n_kv). Both bounds grow with pos, so queries at
// pos_first..pos_last together admit [KeysOf(pos_first).begin, KeysOf(pos_last).end).
inline KeyRange KeysOf(const AttentionSpec& spec, const AttentionArgs& args, size_t pos) {
  const size_t seen = pos < args.n_prefix ? args.n_prefix : pos + 1;
  const size_t end = spec.causal ? std::min(args.n_kv, seen) : args.n_kv;
  const size_t begin = spec.window == 0 || pos < spec.window ? 0 : pos - spec.window + 1;
  return {std::min(begin, end), end};
}

// The part of `keys` in [begin, end).
inline KeyRange Within(KeyRange keys, size_t begin, size_t end) {
  return {std::clamp(keys.begin, begin, end), std::clamp(keys.end, begin, end)};
}

// What a row admits of a chunk: hull without hole, which lies inside.
struct ChunkKeys {
  KeyRange hull;
  KeyRange hole;
};

// keys: the row's window (KeysOf); start: of a chunk of kDecodeChunk keys. Below the window only
// sinks are admitted.
inline ChunkKeys ChunkKeysOf(const AttentionSpec& spec, KeyRange keys, size_t start) {
  const KeyRange window = Within(keys, start, start + kDecodeChunk);
  const size_t n_sinks = spec.window == 0 ? 0 : std::min(spec.n_sinks, keys.begin);
  const KeyRange sinks = Within({0, n_sinks}, start, start + kDecodeChunk);
  if (sinks.begin == sinks.end) return {window, {start, start}};
  if (window.begin == window.end) return {sinks, {sinks.end, sinks.end}};
  return {{sinks.begin, window.end}, {sinks.end, window.begin}};
}

// The chunks that rows with windows inside `all` have keys in, in order.
struct ChunkWalk {
  size_t n_sink_chunks;  // from the cache's first row on
  size_t first;          // chunk of the windows
  size_t n_chunks;

  ChunkWalk(const AttentionSpec& spec, KeyRange all) : first(all.begin / kDecodeChunk) {
    const size_t n_sinks = spec.window == 0 ? 0 : std::min(spec.n_sinks, all.begin);
    const bool has_window = all.begin != all.end;
    n_sink_chunks = CeilDiv(n_sinks, kDecodeChunk);
    if (has_window) n_sink_chunks = std::min(n_sink_chunks, first);
    n_chunks = n_sink_chunks + (has_window ? CeilDiv(all.end, kDecodeChunk) - first : 0);
  }
  size_t Start(size_t i) const {
    return (i < n_sink_chunks ? i : first + i - n_sink_chunks) * kDecodeChunk;
  }
};

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_KEY_RANGE_H_
