// One chunk of keys against a few query rows: the work that attention_tiled and attention_decode
// share. Because both are made of it, a row comes out the same bit for bit from either.
#ifndef HEADLIGHT_ATTENTION_ATTENTION_CHUNK_H_
#define HEADLIGHT_ATTENTION_ATTENTION_CHUNK_H_

#include <cstddef>

#include "attention/attention.h"
#include "attention/key_range.h"
#include "attention/scratch.h"
#include "kv/kv_cache.h"

namespace headlight {

// Query rows of one KV head: row i is one query head at one position.
struct ChunkRows {
  const float* q;        // [n_rows, d_qk rounded up to 8] scaled, zero-padded
  const KeyRange* keys;  // [n_rows] what each admits of the chunk, maybe nothing; neither bound
                         // decreases with i
  size_t n_rows;         // 1..kBlockRows
  float* partials;  // out [n_rows, PartialFloats(d_v)], rows partial_stride floats apart: max, sum,
                    // -, -, acc
  size_t partial_stride;
};

// Scaled copies of n_heads adjacent heads of one token's queries, q [n_heads, d_qk] -> dst
// [n_heads, d_qk rounded up to 8].
void ScaleQueries(const AttentionSpec& spec, const float* q, size_t n_heads, float* dst) noexcept;

// The partial (max, sum, acc) of each row over rows.keys, all inside one chunk of kDecodeChunk
// keys. Uses scratch.scores and scratch.rows.
void AttendChunk(const AttentionSpec& spec, const KvHeadView& kv, const ChunkRows& rows,
                 const AttentionScratch& scratch) noexcept;

// Joins the partial of a later chunk of the same row into total; both [PartialFloats(d_v)].
void MergePartial(const float* partial, size_t d_v, float* total) noexcept;

// out[d_v] = acc / sum.
void FinishRow(const float* total, size_t d_v, float* out) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_ATTENTION_CHUNK_H_
