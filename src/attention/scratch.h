// A thread's part of AttentionWorkspace, and the block sizes that fix its size. Private to
// src/attention.
#ifndef HEADLIGHT_ATTENTION_SCRATCH_H_
#define HEADLIGHT_ATTENTION_SCRATCH_H_

#include <algorithm>
#include <cstddef>

#include "attention/attention.h"
#include "attention/attention_codes.h"
#include "base/aligned.h"
#include "base/head_layout.h"

namespace headlight {

// Query rows of a block, which meet every loaded key together: enough to pay for converting it. A
// multiple of 2 to 6, so that the heads of most layouts are not cut.
inline constexpr size_t kBlockRows = 60;
// Cache rows are taken this many at a time: as f32 they stay in the first-level cache while every
// query row passes over them, and memory is read in address order.
inline constexpr size_t kTileKeys = 32;
// The last group of keys of a chunk may write up to seven scores past its end.
inline constexpr size_t kScorePadding = 8;
inline constexpr size_t kScoreStride = kDecodeChunk + kScorePadding;

// Floats of one row's (max, sum, acc): max, sum, two of padding, then acc [d_v rounded up to 8].
inline constexpr size_t kPartialHeader = 4;
constexpr size_t PartialFloats(size_t d_v) { return kPartialHeader + RoundUp(d_v, 8); }

// A tile of the narrowest head has room for the scales of a chunk.
static_assert(kTileKeys * 8 >= kDecodeChunk);

// Pointers are 64-byte aligned.
struct AttentionScratch {
  float* q;       // [kBlockRows, d_qk rounded up to 8] scaled queries, zero-padded; with int8 keys
                  // their codes, rows in the same places
  float* scores;  // [kBlockRows, kScoreStride] scores, then weights, of one chunk of keys; with
                  // int8 values then the codes of the weights
  float* rows;    // [kTileKeys, max(d_qk, d_v) rounded up to 8] f32 copy of f16 cache rows, or the
                  // scales of a chunk of int8 rows
  CodedRow* q_rows;  // [kBlockRows] of the codes of queries
  float* partials;   // [kBlockRows, PartialFloats(d_v)] of one chunk
  float* totals;     // [kBlockRows, PartialFloats(d_v)] of the chunks so far

  // With a null base the pointers are meaningless.
  AttentionScratch(const HeadLayout& layout, float* base) {
    const auto take = [&](size_t n) {
      float* piece = base == nullptr ? nullptr : base + n_floats_;
      n_floats_ += RoundUp(n, kAlignment / sizeof(float));
      return piece;
    };
    q = take(kBlockRows * RoundUp(layout.d_qk, 8));
    scores = take(kBlockRows * kScoreStride);
    rows = take(kTileKeys * RoundUp(std::max(layout.d_qk, layout.d_v), 8));
    partials = take(kBlockRows * PartialFloats(layout.d_v));
    totals = take(kBlockRows * PartialFloats(layout.d_v));
    q_rows = reinterpret_cast<CodedRow*>(take(kBlockRows * sizeof(CodedRow) / sizeof(float)));
  }
  size_t n_floats() const { return n_floats_; }

 private:
  size_t n_floats_ = 0;
};

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_SCRATCH_H_
