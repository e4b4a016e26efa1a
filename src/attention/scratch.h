// How the fast kernels lay out a thread's part of AttentionWorkspace, and the tile sizes that fix its size. Private to
// src/attention.
#ifndef HEADLIGHT_ATTENTION_SCRATCH_H_
#define HEADLIGHT_ATTENTION_SCRATCH_H_

#include <algorithm>
#include <cstddef>

#include "attention/attention.h"
#include "base/aligned.h"
#include "base/head_layout.h"

namespace headlight {

// Prefill. Queries are worked on in panels of two vectors (lane = query); a block of kTileQ queries meets every loaded key
// tile, which pays for converting it. Tiles are decode's chunks, for the same bits; they are read from the second-level cache
// then, which costs 3 % (V8, x86) against tiles of 64.
inline constexpr size_t kPanel = 8;
inline constexpr size_t kTileQ = 64;
inline constexpr size_t kTileK = kDecodeChunk;
inline constexpr size_t kPanels = kTileQ / kPanel;
// Keys that the inner product takes at a time; a tile's last group may write scores of rows past its end.
inline constexpr size_t kKeyGroup = 4;

// One thread's buffers in prefill; pointers are 64-byte aligned.
struct TiledScratch {
  float* q;       // [kPanels, d_qk, kPanel] scaled queries
  float* out;     // [kPanels, d_v rounded up to 4, kPanel] sum of weight * value
  float* state;   // [kPanels, 2 (max, sum), kPanel]
  float* scores;  // [kTileK + kKeyGroup, kPanel]
  float* k;       // [kTileK, d_qk rounded up to 8] f32 copy of a key tile of another format
  float* v;       // [kTileK, d_v rounded up to 8] the same for values
};

// Decode. Cache rows are taken this many at a time: as f32 they stay in the first-level cache while every query head and
// strip of columns passes over them, and memory is read in address order.
inline constexpr size_t kDecodeRows = 32;
// The last group of keys of a chunk may write up to seven scores past its end.
inline constexpr size_t kScorePadding = 8;

// One thread's buffers in decode.
struct DecodeScratch {
  float* q;       // [n_q_per_kv, d_qk rounded up to 8] scaled queries, zero-padded
  float* scores;  // [n_q_per_kv, kDecodeChunk + kScorePadding]
  float* rows;    // [kDecodeRows, max(d_qk, d_v) rounded up to 8] f32 copy of cache rows of another format
};

// Floats of one chunk's partial result of one query head: max, sum, two of padding, then acc [d_v rounded up to 8].
inline constexpr size_t kPartialHeader = 4;
constexpr size_t PartialFloats(size_t d_v) { return kPartialHeader + RoundUp(d_v, 8); }

namespace scratch_internal {

// Hands out consecutive 64-byte aligned pieces; with a null base it only counts.
class Carver {
 public:
  explicit Carver(float* base) : base_(base) {}
  float* Take(size_t n_floats) {
    float* piece = base_ == nullptr ? nullptr : base_ + n_taken_;
    n_taken_ += RoundUp(n_floats, kAlignment / sizeof(float));
    return piece;
  }
  size_t n_taken() const { return n_taken_; }

 private:
  float* base_;
  size_t n_taken_ = 0;
};

inline TiledScratch CarveTiled(const HeadLayout& layout, Carver& carver) {
  TiledScratch s{};
  s.q = carver.Take(kTileQ * layout.d_qk);
  s.out = carver.Take(kTileQ * RoundUp(layout.d_v, 4));
  s.state = carver.Take(kTileQ * 2);
  s.scores = carver.Take((kTileK + kKeyGroup) * kPanel);
  s.k = carver.Take(kTileK * RoundUp(layout.d_qk, 8));
  s.v = carver.Take(kTileK * RoundUp(layout.d_v, 8));
  return s;
}

inline DecodeScratch CarveDecode(size_t n_q_per_kv, size_t d_qk, size_t d_v, Carver& carver) {
  DecodeScratch s{};
  s.q = carver.Take(n_q_per_kv * RoundUp(d_qk, 8));
  s.scores = carver.Take(n_q_per_kv * (kDecodeChunk + kScorePadding));
  s.rows = carver.Take(kDecodeRows * RoundUp(std::max(d_qk, d_v), 8));
  return s;
}

}  // namespace scratch_internal

inline TiledScratch TiledScratchOf(const HeadLayout& layout, float* thread_scratch) {
  scratch_internal::Carver carver(thread_scratch);
  return scratch_internal::CarveTiled(layout, carver);
}

inline DecodeScratch DecodeScratchOf(const HeadLayout& layout, float* thread_scratch) {
  scratch_internal::Carver carver(thread_scratch);
  return scratch_internal::CarveDecode(layout.n_q_per_kv(), layout.d_qk, layout.d_v, carver);
}

// Floats of one thread for every layout that exceeds `widest` in no field. Such a layer may have more query heads per KV
// head than `widest`, but never more than that has query heads.
inline size_t ThreadScratchFloats(const HeadLayout& widest) {
  scratch_internal::Carver tiled(nullptr);
  scratch_internal::CarveTiled(widest, tiled);
  scratch_internal::Carver decode(nullptr);
  scratch_internal::CarveDecode(widest.n_q_heads, widest.d_qk, widest.d_v, decode);
  return tiled.n_taken() > decode.n_taken() ? tiled.n_taken() : decode.n_taken();
}

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_SCRATCH_H_
