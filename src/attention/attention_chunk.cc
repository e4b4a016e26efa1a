// Three steps a chunk: scores of all keys, softmax of each row, weighted sum of all values. Keys
// and values are read as the cache holds them, a vector being four elements of a row, with nothing
// to transpose; a few query rows share each loaded vector in registers, and all rows of the block
// share a tile of kTileKeys keys in the first-level cache.
//
// The order of every sum, which fixes a row's bits whatever else is computed beside it:
//   score    products by element modulo 4, then 0 + 2 and 1 + 3, then those
//   sum      weights by key modulo 4, counted from the chunk's start, then likewise
//   acc      keys ascending
#include "attention/attention_chunk.h"

#include <algorithm>
#include <type_traits>

#include "attention/attention_codes.h"
#include "attention/kv_rows-inl.h"
#include "attention/live_tiles.h"
#include "attention/online_softmax-inl.h"
#include "attention/score_transform-inl.h"
#include "attention/sink_scores-inl.h"
#include "attention/tile_products-inl.h"
#include "kv/int8_rows.h"

namespace headlight {
namespace {

// Calls body(first row, number of rows as a constant) until all n_rows had their turn. Four are two
// pairs: their accumulators fit in registers.
template <class Body>
HWY_INLINE void ForGroups(size_t n_rows, const Body& body) {
  for (size_t row = 0; row < n_rows;) {
    const size_t left = n_rows - row;
    if (left == 1) {
      body(row, std::integral_constant<size_t, 1>());
      row += 1;
    } else if (left == 2 || left == 4) {
      body(row, std::integral_constant<size_t, 2>());
      row += 2;
    } else {
      body(row, std::integral_constant<size_t, 3>());
      row += 3;
    }
  }
}

// The same for work that takes the number of rows as it comes: one copy of the body instead of
// three.
template <class Body>
void ForEachGroup(size_t n_rows, const Body& body) {
  for (size_t row = 0; row < n_rows;) {
    const size_t left = n_rows - row;
    const size_t count = left == 1 ? 1 : left == 2 || left == 4 ? 2 : 3;
    body(row, count);
    row += count;
  }
}

// A chunk's work, common to its steps.
struct Chunk {
  const AttentionSpec& spec;
  const KvHeadView& kv;
  const ChunkRows& rows;
  const AttentionScratch& scratch;
  KeyRange all;  // what the rows admit together, from a multiple of 4: place 0 of the scores
  const LiveTiles* live;  // [n_rows] what explicit masks leave of each row, or null: everything

  // Tiles in which one of n rows from `first` on admits a key.
  LiveTiles Live(size_t first, size_t n) const {
    if (live == nullptr) return kAllTiles;
    LiveTiles any = 0;
    for (size_t row = first; row < first + n; ++row) any |= live[row];
    return any;
  }
  KeyRange Tile(size_t tile) const {
    const size_t begin = all.begin + tile * kTileKeys;
    return {std::min(begin, all.end), std::min(begin + kTileKeys, all.end)};
  }
  size_t NTiles() const { return CeilDiv(all.end - all.begin, kTileKeys); }
  // What rows first..last admit together, from a multiple of 4.
  KeyRange Keys(size_t first, size_t last) const {
    return {rows.keys[first].begin / 4 * 4, rows.keys[last].end};
  }
  Group GroupAt(size_t row, size_t key) const {
    const size_t q_stride = RoundUp(spec.layout.d_qk, 8);
    return {scratch.q + row * q_stride, q_stride,
            scratch.scores + row * kScoreStride + (key - all.begin),
            rows.partials + row * rows.partial_stride + kPartialHeader, rows.partial_stride};
  }
};

// Calls body(cache rows as f32, how many, group, number of its query rows) for each tile of
// kTileKeys keys and each group of query rows that admits some of it: with those. Tiles that no
// row admits are neither read nor computed.
template <class Body>
HWY_INLINE void ForTileGroups(const Chunk& chunk, CacheType type, const void* cache, size_t stride,
                              const Body& body) {
  const LiveTiles any = chunk.Live(0, chunk.rows.n_rows);
  for (size_t i = 0; i < chunk.NTiles(); ++i) {
    if (!IsLive(any, i)) continue;
    const KeyRange tile = chunk.Tile(i);
    const float* rows = RowsAsF32(type, cache, stride, tile, chunk.scratch.rows);
    ForGroups(chunk.rows.n_rows, [&](size_t row, auto count) {
      if (!IsLive(chunk.Live(row, count), i)) return;
      const KeyRange own = chunk.Keys(row, row + count - 1);
      const size_t begin = std::max(tile.begin, own.begin);
      const size_t end = std::min(tile.end, own.end);
      if (begin >= end) return;
      body(rows + (begin - tile.begin) * stride, end - begin, chunk.GroupAt(row, begin), count);
    });
  }
}

// Groups of four int8 rows that hold rows [keys.begin, keys.end); begin is a multiple of 4.
size_t Int8Groups(KeyRange keys) { return CeilDiv(keys.end - keys.begin, kInt8GroupRows); }

// Bytes of those groups.
size_t Int8Bytes(KeyRange keys, size_t stride) {
  return Int8Groups(keys) * kInt8GroupRows * stride;
}

// The first block of an int8 row that begins a group.
const uint8_t* Int8Blocks(const void* rows, size_t stride, size_t row) {
  return static_cast<const uint8_t*>(rows) + row * stride;
}

// Calls body(first query row, number of rows, keys) for each group of query rows and each longest
// run of tiles of which it admits something.
template <class Body>
void ForLiveRuns(const Chunk& chunk, const Body& body) {
  ForEachGroup(chunk.rows.n_rows, [&](size_t row, size_t count) {
    const KeyRange own = chunk.Keys(row, row + count - 1);
    const LiveTiles live = chunk.Live(row, count);
    const size_t n_tiles = chunk.NTiles();
    for (size_t tile = 0; tile < n_tiles; ++tile) {
      if (!IsLive(live, tile)) continue;
      const size_t first = tile;
      while (tile + 1 < n_tiles && IsLive(live, tile + 1)) ++tile;
      const size_t begin = std::max(own.begin, chunk.Tile(first).begin);
      const size_t end = std::min(own.end, chunk.Tile(tile).end);
      if (begin < end) body(row, count, KeyRange{begin, end});
    }
  });
}

// int8 keys: one product for each group of rows. All keys of a chunk stay in the first-level cache.
void ScoreCodes(const Chunk& chunk) {
  const KvHeadView& kv = chunk.kv;
  const size_t q_stride = RoundUp(chunk.spec.layout.d_qk, 8);
  ReadInOrder(Int8Blocks(kv.k, kv.k_stride, chunk.all.begin), Int8Bytes(chunk.all, kv.k_stride),
              chunk.scratch.rows);
  const float* scales = ScalesAsF32(kv.k_scales, chunk.all, chunk.scratch.rows);
  ForLiveRuns(chunk, [&](size_t row, size_t count, KeyRange run) {
    const Group group = chunk.GroupAt(row, run.begin);
    CodeProduct product{};
    product.blocks = Int8Blocks(kv.k, kv.k_stride, run.begin);
    product.block_stride = kInt8GroupRows * kv.k_stride;
    product.step_stride = kCodeBlockBytes;
    product.n_blocks = Int8Groups(run);
    product.n_steps = kv.k_stride / kCodeBlockCols;
    product.codes = reinterpret_cast<const uint8_t*>(group.q);
    product.codes_stride = q_stride * sizeof(float);
    product.rows = chunk.scratch.q_rows + row;
    product.block_scales = scales + (run.begin - chunk.all.begin);
    product.out = group.weights;
    product.out_stride = kScoreStride;
    MultiplyCodes(chunk.spec.dot_form, CodeOperand::kQuery, count, product);
  });
}

void ScoreKeys(const Chunk& chunk) {
  const KvHeadView& kv = chunk.kv;
  if (kv.format.k == CacheType::kInt8) return ScoreCodes(chunk);
  ForTileGroups(chunk, kv.format.k, kv.k, kv.k_stride,
                [&](const float* k, size_t n_keys, const Group& group, auto count) {
                  ScoreTile<count, kScoreKeys[count]>(k, kv.k_stride, n_keys, group);
                });
}

// Everything that turns dot products into the scores that the softmax sees joins here: scores of
// one row and keys [keys.begin, keys.end), padded to whole vectors.
void TransformScores(const AttentionSpec& spec, const RowBias& bias, KeyRange keys, float* scores) {
  const size_t n_keys = keys.end - keys.begin;
  const size_t n_vecs = CeilDiv(n_keys, 4);
  const auto keep = [&](CaptureStage stage) {
    if (bias.capture == nullptr || bias.stage != stage) return;
    std::copy_n(scores, n_keys, bias.capture + keys.begin);
  };
  keep(CaptureStage::kScaled);
  if (spec.softcap != 0.0f) SoftcapScores(spec.softcap, scores, n_vecs, 4);
  keep(CaptureStage::kSoftcapped);
  if (bias.alibi_slope != 0.0f) AddAlibi(bias.alibi_slope, bias.pos, keys.begin, scores, n_vecs);
  if (bias.mask != nullptr) AddMask(bias.mask + keys.begin, scores, n_keys);
  keep(CaptureStage::kScores);
  keep(CaptureStage::kWeights);  // scores for now: FinishCapture has the row's maximum and sum
}

// Keys of `whole`, the row's keys in whole vectors, that it does not admit. Scores of tiles that it
// admits nothing of may never have been computed.
void ExcludeKeys(const Chunk& chunk, size_t row, KeyRange whole) {
  const KeyRange own = chunk.rows.keys[row];
  const RowBias& bias = chunk.rows.biases[row];
  float* scores = chunk.scratch.scores + row * kScoreStride;
  const auto exclude = [&](KeyRange keys) {
    if (keys.begin >= keys.end) return;
    std::fill(scores + (keys.begin - chunk.all.begin), scores + (keys.end - chunk.all.begin),
              kMaskedScore);
    if (bias.capture == nullptr || keys.begin >= own.end) return;
    std::fill(bias.capture + keys.begin, bias.capture + std::min(keys.end, own.end), kMaskedScore);
  };
  exclude({whole.begin, own.begin});
  exclude({own.end, whole.end});
  exclude(bias.hole);
  if (chunk.live == nullptr) return;
  for (size_t tile = 0; tile < chunk.NTiles(); ++tile) {
    if (IsLive(chunk.live[row], tile)) continue;
    exclude(Within(chunk.Tile(tile), whole.begin, whole.end));
  }
}

// max and sum of a row's partial; acc is zero.
void BeginPartial(const Chunk& chunk, size_t row, const SoftmaxState& state) {
  float* partial = chunk.rows.partials + row * chunk.rows.partial_stride;
  partial[0] = state.max;
  partial[1] = state.sum;
  std::fill_n(partial + kPartialHeader, RoundUp(chunk.spec.layout.d_v, 8), 0.0f);
}

// Scores of one row -> weights, and max and sum of its partial. `group`: what the rows of its group
// admit; keys in there that this row does not admit get weight 0.
void SoftmaxRow(const Chunk& chunk, size_t row, KeyRange group) {
  float* scores = chunk.scratch.scores + row * kScoreStride;
  const auto at = [&](size_t key) { return scores + (key - chunk.all.begin); };
  const KeyRange own = chunk.rows.keys[row];
  const size_t begin = own.begin / 4 * 4;
  const size_t n_vecs = own.begin < own.end ? CeilDiv(own.end - begin, 4) : 0;
  const size_t end = begin + 4 * n_vecs;
  if (n_vecs != 0) {
    TransformScores(chunk.spec, chunk.rows.biases[row], {begin, own.end}, at(begin));
    ExcludeKeys(chunk, row, {begin, end});
  }
  const SoftmaxState state = UpdateSoftmax(at(begin), n_vecs);
  std::fill(at(group.begin), at(begin), 0.0f);
  if (end < group.end) std::fill(at(end), at(RoundUp(group.end, 4)), 0.0f);  // whole vectors
  BeginPartial(chunk, row, state);
}

void SoftmaxRows(const Chunk& chunk) {
  ForEachGroup(chunk.rows.n_rows, [&](size_t first, size_t count) {
    const KeyRange group = chunk.Keys(first, first + count - 1);
    for (size_t row = first; row < first + count; ++row) SoftmaxRow(chunk, row, group);
  });
}

// What n query rows from `first` on admit together, from their first live tile to the last: the
// integer sum of a chunk's int8 values is made in one go.
KeyRange LiveHull(const Chunk& chunk, size_t first, size_t n) {
  const KeyRange own = chunk.Keys(first, first + n - 1);
  const LiveTiles live = chunk.Live(first, n);
  size_t begin = 0;
  size_t end = chunk.NTiles();
  while (begin < end && !IsLive(live, begin)) ++begin;
  while (begin < end && !IsLive(live, end - 1)) --end;
  if (begin == end) return {own.begin, own.begin};
  return {std::max(own.begin, chunk.Tile(begin).begin), std::min(own.end, chunk.Tile(end - 1).end)};
}

// int8 values: weights become codes in their place, then one product for each group of rows.
void AccumulateCodes(const Chunk& chunk) {
  const KvHeadView& kv = chunk.kv;
  const DotForm form = chunk.spec.dot_form;
  ReadInOrder(Int8Blocks(kv.v, kv.v_stride, chunk.all.begin), Int8Bytes(chunk.all, kv.v_stride),
              chunk.scratch.rows);
  const float* scales = ScalesAsF32(kv.v_scales, chunk.all, chunk.scratch.rows);
  ForEachGroup(chunk.rows.n_rows, [&](size_t row, size_t count) {
    const KeyRange own = LiveHull(chunk, row, count);
    if (own.begin >= own.end) return;
    const Group group = chunk.GroupAt(row, own.begin);
    CodedRow coded[kMaxCodeRows];
    for (size_t r = 0; r < count; ++r) {
      coded[r] = EncodeWeights(form, scales + (own.begin - chunk.all.begin),
                               group.weights + r * kScoreStride, Int8Groups(own));
    }
    CodeProduct product{};
    product.blocks = Int8Blocks(kv.v, kv.v_stride, own.begin);
    product.block_stride = kCodeBlockBytes;
    product.step_stride = kInt8GroupRows * kv.v_stride;
    product.n_blocks = CeilDiv(chunk.spec.layout.d_v, kCodeBlockCols);
    product.n_steps = Int8Groups(own);
    product.codes = reinterpret_cast<const uint8_t*>(group.weights);
    product.codes_stride = kScoreStride * sizeof(float);
    product.rows = coded;
    product.out = group.acc;
    product.out_stride = group.acc_stride;
    MultiplyCodes(form, CodeOperand::kWeights, count, product);
  });
}

void AccumulateValues(const Chunk& chunk) {
  const KvHeadView& kv = chunk.kv;
  if (kv.format.v == CacheType::kInt8) return AccumulateCodes(chunk);
  const size_t width = RoundUp(chunk.spec.layout.d_v, 4);  // less than a row that holds a key too
  ForTileGroups(chunk, kv.format.v, kv.v, kv.v_stride,
                [&](const float* v, size_t n_keys, const Group& group, auto count) {
                  AccumulateTile<count, kValueVecs[count]>(v, kv.v_stride, width, n_keys, group);
                });
}

// live [n_rows]. Whoever looks at scores before the mask gets those of masked keys too.
void FindLiveTiles(const Chunk& chunk, LiveTiles* live) {
  const RowBias* biases = chunk.rows.biases;
  LiveTiles of_mask = kAllTiles;
  for (size_t row = 0; row < chunk.rows.n_rows; ++row) {
    const bool is_new = row == 0 || biases[row].mask != biases[row - 1].mask;  // else padding
    if (is_new) of_mask = LiveTilesOf(biases[row].mask, chunk.all);
    const bool is_watched =
        biases[row].capture != nullptr && biases[row].stage < CaptureStage::kScores;
    live[row] = is_watched ? kAllTiles : of_mask;
  }
}

}  // namespace

void PrepareQueries(const AttentionSpec& spec, CacheType k_type, std::span<const float> q,
                    size_t first_row, const AttentionScratch& scratch) noexcept {
  const size_t d_qk = spec.layout.d_qk;
  const size_t stride = RoundUp(d_qk, 8);
  for (size_t head = 0; head < q.size() / d_qk; ++head) {
    const size_t row = first_row + head;
    float* dst = scratch.q + row * stride;
    for (size_t i = 0; i < d_qk; ++i) dst[i] = q[head * d_qk + i] * spec.scale;
    std::fill(dst + d_qk, dst + stride, 0.0f);
    if (k_type == CacheType::kInt8) scratch.q_rows[row] = EncodeQuery(spec.dot_form, dst, d_qk);
  }
}

void AttendChunk(const AttentionSpec& spec, const KvHeadView& kv, const ChunkRows& rows,
                 const AttentionScratch& scratch) noexcept {
  static_assert(kRingChunk == kDecodeChunk, "a chunk of keys is one stretch of rows");
  const KvHeadView by_position = kv.ByPosition(rows.keys[0].begin);
  Chunk chunk{spec, by_position, rows, scratch, {}, nullptr};
  chunk.all = chunk.Keys(0, rows.n_rows - 1);
  LiveTiles live[kBlockRows];
  if (rows.biases[0].mask != nullptr) {
    FindLiveTiles(chunk, live);
    chunk.live = live;
    if (chunk.Live(0, rows.n_rows) == 0) {
      for (size_t row = 0; row < rows.n_rows; ++row) BeginPartial(chunk, row, kEmptySoftmax);
      return;
    }
  }
  ScoreKeys(chunk);
  if (spec.n_sinks != 0) ScoreSinks(spec, by_position, rows, chunk.all, scratch);
  SoftmaxRows(chunk);
  AccumulateValues(chunk);
}

void MergePartial(const float* partial, size_t d_v, float* total) noexcept {
  constexpr F32x4 kF32;
  SoftmaxState state{total[0], total[1]};
  const MergeFactors factors = MergeSoftmax({partial[0], partial[1]}, state);
  total[0] = state.max;
  total[1] = state.sum;
  for (size_t i = kPartialHeader; i < kPartialHeader + d_v; i += 4) {
    const VecF32 added = hn::Mul(hn::Load(kF32, partial + i), factors.part);
    hn::Store(MulAdd(hn::Load(kF32, total + i), factors.into, added), kF32, total + i);
  }
}

void FinishRow(const AttentionSpec& spec, size_t q_head, const float* total, float* out) noexcept {
  float factor = InverseSum({total[0], total[1]});
  if (spec.sink_logits != nullptr && factor != 0.0f) {
    // A key without a value: its weight only joins the sum.
    SoftmaxState state{total[0], total[1]};
    const MergeFactors factors = MergeSoftmax({spec.sink_logits[q_head], 1.0f}, state);
    factor = hn::GetLane(factors.into) * InverseSum(state);
  }
  for (size_t i = 0; i < spec.layout.d_v; ++i) out[i] = total[kPartialHeader + i] * factor;
}

}  // namespace headlight
