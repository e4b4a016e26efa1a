// One chunk of keys against a few query rows: the work that attention_tiled and attention_decode
// share. Because both are made of it, a row comes out the same bit for bit from either.
#ifndef HEADLIGHT_ATTENTION_ATTENTION_CHUNK_H_
#define HEADLIGHT_ATTENTION_ATTENTION_CHUNK_H_

#include <cstddef>
#include <span>

#include "attention/attention.h"
#include "attention/key_range.h"
#include "attention/scratch.h"
#include "kv/kv_cache.h"

namespace headlight {

// What happens to the scores of one query row: what is added, which keys of the chunk inside its
// range it does not admit, and where they are kept.
struct RowBias {
  KeyRange hole{0, 0};
  const float* mask = nullptr;  // [n_kv] or null
  float alibi_slope = 0.0f;
  size_t pos = 0;
  const float* q_sinks = nullptr;  // [d_qk] not scaled, or null: the query that meets the sinks
  float* capture = nullptr;        // [n_kv] or null: where its scores of `stage` go
  CaptureStage stage = CaptureStage::kWeights;
};

// Of query head q_head at row t of the call.
inline RowBias BiasOf(const AttentionSpec& spec, const AttentionArgs& args, size_t q_head,
                      size_t t) {
  RowBias bias;
  const AttentionMask& mask = args.mask;
  if (mask.values != nullptr) {
    bias.mask = mask.values + q_head * mask.head_stride + t * mask.row_stride;
  }
  if (spec.alibi_slopes != nullptr) bias.alibi_slope = spec.alibi_slopes[q_head];
  bias.pos = args.pos0 + t;
  if (args.q_sinks != nullptr && bias.pos >= spec.n_sinks + spec.window) {
    bias.q_sinks = args.q_sinks + t * args.q_stride + q_head * spec.layout.d_qk;
  }
  if (args.capture != nullptr) {
    bias.capture = args.capture->Row(q_head, t);
    bias.stage = args.capture->stage;
  }
  return bias;
}

// Query rows of one KV head: row i is one query head at one position, its query in scratch.q by
// PrepareQueries.
struct ChunkRows {
  const RowBias* biases;  // [n_rows]
  const KeyRange* keys;   // [n_rows] what each admits of the chunk, maybe nothing; neither bound
                          // decreases with i
  size_t n_rows;          // 1..kBlockRows
  float* partials;  // out [n_rows, PartialFloats(d_v)], rows partial_stride floats apart: max, sum,
                    // -, -, acc
  size_t partial_stride;
};

// n_heads adjacent heads of one token's queries q [n_heads, d_qk], scaled, into scratch.q from row
// first_row on; as codes if keys of type k_type want that.
void PrepareQueries(const AttentionSpec& spec, CacheType k_type, std::span<const float> q,
                    size_t first_row, const AttentionScratch& scratch) noexcept;

// The partial (max, sum, acc) of each row over rows.keys, all inside one chunk of kDecodeChunk
// keys. kv: of the head, numbered as in the cache. Reads scratch.q, uses scratch.scores and
// scratch.rows.
void AttendChunk(const AttentionSpec& spec, const KvHeadView& kv, const ChunkRows& rows,
                 const AttentionScratch& scratch) noexcept;

// Joins the partial of a later chunk of the same row into total; both [PartialFloats(d_v)].
void MergePartial(const float* partial, size_t d_v, float* total) noexcept;

// out[d_v] = acc / sum, the sum with query head q_head's sink if there are sinks.
void FinishRow(const AttentionSpec& spec, size_t q_head, const float* total, float* out) noexcept;

// Before the first chunk of query head q_head at row t, if it is captured: nothing is admitted yet.
void BeginCapture(const AttentionArgs& args, size_t q_head, size_t t) noexcept;
// After the last one. total: the row's (max, sum, ..).
void FinishCapture(const AttentionSpec& spec, const AttentionArgs& args, size_t q_head, size_t t,
                   const float* total) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_ATTENTION_CHUNK_H_
