// Which tiles of kTileKeys keys an explicit mask leaves anything of, so that kernels skip the
// others. Private to src/attention.
#ifndef HEADLIGHT_ATTENTION_LIVE_TILES_H_
#define HEADLIGHT_ATTENTION_LIVE_TILES_H_

#include <cstddef>
#include <cstdint>

#include "attention/key_range.h"
#include "attention/online_softmax-inl.h"
#include "attention/scratch.h"

namespace headlight {

// Bit i: tile i of a chunk, counted from the chunk's first key.
using LiveTiles = uint8_t;
static_assert(kDecodeChunk / kTileKeys <= 8 * sizeof(LiveTiles));
inline constexpr LiveTiles kAllTiles = 0xFF;

inline bool IsLive(LiveTiles live, size_t tile) { return (live >> tile & 1) != 0; }

// mask [n_kv]: what is added to the scores of one row. Of the tiles from all.begin on, those in
// which it admits a key.
inline LiveTiles LiveTilesOf(const float* mask, KeyRange all) {
  constexpr F32x4 kF32;
  const VecF32 masked = hn::Set(kF32, kMaskedScore);
  LiveTiles live = 0;
  for (size_t tile = 0, key = all.begin; key < all.end; ++tile, key += kTileKeys) {
    const size_t n_keys = std::min(kTileKeys, all.end - key);
    VecF32 max = masked;
    for (size_t i = 0; i < n_keys; i += 4) {
      max = hn::Max(max, n_keys - i >= 4 ? hn::LoadU(kF32, mask + key + i)
                                         : hn::LoadNOr(masked, kF32, mask + key + i, n_keys - i));
    }
    if (!(hn::ReduceMax(kF32, max) == kMaskedScore)) live |= static_cast<LiveTiles>(1u << tile);
  }
  return live;
}

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_LIVE_TILES_H_
