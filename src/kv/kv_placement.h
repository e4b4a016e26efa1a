// Where the row of a position stands in a layer's cache. Contiguous: position p is row p. Ring: a
// layer whose queries look back over a window keeps only that many rows and some; older ones are
// overwritten in place. Rows of one attention chunk stay side by side, so kernels do the same
// arithmetic in the same order over either.
#ifndef HEADLIGHT_KV_KV_PLACEMENT_H_
#define HEADLIGHT_KV_KV_PLACEMENT_H_

#include <cstddef>

#include "base/aligned.h"

namespace headlight {

// Rings are made of whole chunks of this many rows: what attention takes at a time.
inline constexpr size_t kRingChunk = 256;

struct KvPlacement {
  size_t n_rows = 0;    // that are stored
  size_t n_pinned = 0;  // positions below stay in their own rows for ever (sinks), whole chunks
  size_t window = 0;    // keys that a query looks back over, itself included; 0: contiguous

  bool is_ring() const { return window != 0; }
  size_t ring_rows() const { return n_rows - n_pinned; }
  size_t Row(size_t pos) const {
    if (!is_ring() || pos < n_pinned) return pos;
    return n_pinned + (pos - n_pinned) % ring_rows();
  }
  // Whether a query at position n_rows_left finds all of its window, and the pinned rows, after
  // positions up to n_written (exclusive) were stored.
  bool CanRollBack(size_t n_rows_left, size_t n_written) const {
    if (!is_ring() || n_written <= n_rows || n_rows_left <= n_pinned) return true;
    const size_t oldest = n_rows_left < window ? 0 : n_rows_left - window + 1;
    const size_t wanted = oldest < n_pinned ? n_pinned : oldest;
    return wanted >= n_written - ring_rows();
  }
  bool operator==(const KvPlacement&) const = default;
};

// What a layer asks of its cache.
struct KvDemand {
  size_t window = 0;      // 0: all keys
  size_t n_sinks = 0;     // keys from the first on that stay when the window has left them behind
  size_t max_tokens = 0;  // stored by one call, before its queries attend
};

// A ring where it is smaller than n_ctx rows: window + max_tokens rows, and the sinks', each
// rounded up to kRingChunk.
inline KvPlacement PlaceKv(const KvDemand& demand, size_t n_ctx) {
  KvPlacement place{n_ctx, 0, 0};
  if (demand.window == 0 || demand.window >= n_ctx) return place;
  const size_t n_pinned = RoundUp(demand.n_sinks, kRingChunk);
  const size_t n_rows = n_pinned + RoundUp(demand.window + demand.max_tokens, kRingChunk);
  if (n_rows >= n_ctx) return place;
  return {n_rows, n_pinned, demand.window};
}

}  // namespace headlight

#endif  // HEADLIGHT_KV_KV_PLACEMENT_H_
