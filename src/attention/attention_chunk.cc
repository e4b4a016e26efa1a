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
#include "attention/online_softmax-inl.h"
#include "attention/score_transform-inl.h"
#include "kv/int8_rows.h"

namespace headlight {
namespace {

// How many keys, and how many vectors of a value, one, two or three query rows take at a time: as
// many accumulators as stay in registers beside the operands (x86 has 16, of which V8 keeps one).
constexpr size_t kScoreKeys[] = {0, 8, 4, 3};
constexpr size_t kValueVecs[] = {0, 8, 4, 3};

// A few query rows against a tile of keys. `weights` are scores before and weights after the
// softmax.
struct Group {
  const float* q;  // [n, q_stride]
  size_t q_stride;
  float* weights;  // [n, kScoreStride] from the tile's first key
  float* acc;      // [n, acc_stride]
  size_t acc_stride;
};

// Lane i of the result is the sum of the lanes of the i-th argument, (0 + 2) + (1 + 3).
HWY_INLINE VecF32 SumsOfLanes(VecF32 a0, VecF32 a1, VecF32 a2, VecF32 a3) {
  constexpr F32x4 kF32;
  const VecF32 ab = hn::Add(hn::InterleaveLower(kF32, a0, a1), hn::InterleaveUpper(kF32, a0, a1));
  const VecF32 cd = hn::Add(hn::InterleaveLower(kF32, a2, a3), hn::InterleaveUpper(kF32, a2, a3));
  return hn::Add(hn::ConcatLowerLower(kF32, cd, ab), hn::ConcatUpperUpper(kF32, cd, ab));
}

// weights[row][key] = k[key] . q[row] for kRows rows and n_keys keys, kKeys at a time; k [n_keys,
// stride].
template <size_t kRows, size_t kKeys>
HWY_NOINLINE void ScoreTile(const float* k, size_t stride, size_t n_keys, const Group& group) {
  constexpr F32x4 kF32;
  for (size_t key = 0; key < n_keys; key += kKeys) {
    // Past the last key its row is read again: rows that are not live are never touched.
    const float* keys[kKeys];
    for (size_t j = 0; j < kKeys; ++j) keys[j] = k + std::min(key + j, n_keys - 1) * stride;
    VecF32 acc[kRows][RoundUp(kKeys, 4)];
    for (auto& row : acc) {
      for (VecF32& a : row) a = hn::Zero(kF32);
    }
    for (size_t i = 0; i < stride; i += 4) {
      VecF32 q[kRows];
      for (size_t r = 0; r < kRows; ++r) q[r] = hn::Load(kF32, group.q + r * group.q_stride + i);
      for (size_t j = 0; j < kKeys; ++j) {
        const VecF32 x = hn::Load(kF32, keys[j] + i);
        for (size_t r = 0; r < kRows; ++r) acc[r][j] = MulAdd(x, q[r], acc[r][j]);
      }
    }
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t j = 0; j < kKeys; j += 4) {
        hn::StoreU(SumsOfLanes(acc[r][j], acc[r][j + 1], acc[r][j + 2], acc[r][j + 3]), kF32,
                   group.weights + r * kScoreStride + key + j);
      }
    }
  }
}

// acc[row][i] += sum over n_keys keys of weights[row][key] * v[key][i] for kRows rows and kVecs
// vectors from column i.
template <size_t kRows, size_t kVecs>
HWY_INLINE void AccumulateStrip(const float* v, size_t stride, size_t n_keys, const Group& group,
                                size_t column) {
  constexpr F32x4 kF32;
  VecF32 acc[kRows][kVecs];
  for (size_t r = 0; r < kRows; ++r) {
    const float* src = group.acc + r * group.acc_stride + column;
    for (size_t j = 0; j < kVecs; ++j) acc[r][j] = hn::Load(kF32, src + 4 * j);
  }
  for (size_t key = 0; key < n_keys; ++key) {
    const float* value = PinPointer(v + key * stride + column);
    const float* weights = PinPointer(group.weights + key);
    VecF32 weight[kRows];
    for (size_t r = 0; r < kRows; ++r) weight[r] = hn::Set(kF32, weights[r * kScoreStride]);
    for (size_t j = 0; j < kVecs; ++j) {
      const VecF32 x = hn::Load(kF32, value + 4 * j);
      for (size_t r = 0; r < kRows; ++r) acc[r][j] = MulAdd(x, weight[r], acc[r][j]);
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    float* dst = group.acc + r * group.acc_stride + column;
    for (size_t j = 0; j < kVecs; ++j) hn::Store(acc[r][j], kF32, dst + 4 * j);
  }
}

// v [n_keys, stride].
template <size_t kRows, size_t kVecs>
HWY_NOINLINE void AccumulateTile(const float* v, size_t stride, size_t n_keys, const Group& group) {
  size_t column = 0;
  for (; column + 4 * kVecs <= stride; column += 4 * kVecs) {
    AccumulateStrip<kRows, kVecs>(v, stride, n_keys, group, column);
  }
  for (; column < stride; column += 4) AccumulateStrip<kRows, 1>(v, stride, n_keys, group, column);
}

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

// A chunk's work, common to its steps.
struct Chunk {
  const AttentionSpec& spec;
  const KvHeadView& kv;
  const ChunkRows& rows;
  const AttentionScratch& scratch;
  KeyRange all;  // what the rows admit together, from a multiple of 4: place 0 of the scores

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
// kTileKeys keys and each group of query rows that admits some of it: with those.
template <class Body>
HWY_INLINE void ForTileGroups(const Chunk& chunk, CacheType type, const void* cache, size_t stride,
                              const Body& body) {
  for (size_t key = chunk.all.begin; key < chunk.all.end; key += kTileKeys) {
    const KeyRange tile{key, std::min(key + kTileKeys, chunk.all.end)};
    const float* rows = RowsAsF32(type, cache, stride, tile, chunk.scratch.rows);
    ForGroups(chunk.rows.n_rows, [&](size_t row, auto count) {
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

// int8 keys: one product for each group of rows. All keys of a chunk stay in the first-level cache.
void ScoreCodes(const Chunk& chunk) {
  const KvHeadView& kv = chunk.kv;
  const size_t q_stride = RoundUp(chunk.spec.layout.d_qk, 8);
  ReadInOrder(Int8Blocks(kv.k, kv.k_stride, chunk.all.begin), Int8Bytes(chunk.all, kv.k_stride),
              chunk.scratch.rows);
  const float* scales = ScalesAsF32(kv.k_scales, chunk.all, chunk.scratch.rows);
  ForGroups(chunk.rows.n_rows, [&](size_t row, auto count) {
    const KeyRange own = chunk.Keys(row, row + count - 1);
    if (own.begin >= own.end) return;
    const Group group = chunk.GroupAt(row, own.begin);
    CodeProduct product{};
    product.blocks = Int8Blocks(kv.k, kv.k_stride, own.begin);
    product.block_stride = kInt8GroupRows * kv.k_stride;
    product.step_stride = kCodeBlockBytes;
    product.n_blocks = Int8Groups(own);
    product.n_steps = kv.k_stride / kCodeBlockCols;
    product.codes = reinterpret_cast<const uint8_t*>(group.q);
    product.codes_stride = q_stride * sizeof(float);
    product.rows = chunk.scratch.q_rows + row;
    product.block_scales = scales + (own.begin - chunk.all.begin);
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
  if (spec.softcap != 0.0f) SoftcapScores(spec.softcap, scores, n_vecs, 4);
  if (bias.alibi_slope != 0.0f) AddAlibi(bias.alibi_slope, bias.pos, keys.begin, scores, n_vecs);
  if (bias.mask != nullptr) AddMask(bias.mask + keys.begin, scores, n_keys);
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
    std::fill(at(begin), at(own.begin), kMaskedScore);
    std::fill(at(own.end), at(end), kMaskedScore);
    const KeyRange hole = chunk.rows.biases[row].hole;
    if (hole.begin < hole.end) std::fill(at(hole.begin), at(hole.end), kMaskedScore);
  }
  const SoftmaxState state = UpdateSoftmax(at(begin), n_vecs);
  std::fill(at(group.begin), at(begin), 0.0f);
  if (end < group.end) std::fill(at(end), at(RoundUp(group.end, 4)), 0.0f);  // whole vectors
  float* partial = chunk.rows.partials + row * chunk.rows.partial_stride;
  partial[0] = state.max;
  partial[1] = state.sum;
  std::fill_n(partial + kPartialHeader, RoundUp(chunk.spec.layout.d_v, 8), 0.0f);
}

void SoftmaxRows(const Chunk& chunk) {
  ForGroups(chunk.rows.n_rows, [&](size_t first, auto count) {
    const KeyRange group = chunk.Keys(first, first + count - 1);
    for (size_t row = first; row < first + count; ++row) SoftmaxRow(chunk, row, group);
  });
}

// int8 values: weights become codes in their place, then one product for each group of rows.
void AccumulateCodes(const Chunk& chunk) {
  const KvHeadView& kv = chunk.kv;
  const DotForm form = chunk.spec.dot_form;
  ReadInOrder(Int8Blocks(kv.v, kv.v_stride, chunk.all.begin), Int8Bytes(chunk.all, kv.v_stride),
              chunk.scratch.rows);
  const float* scales = ScalesAsF32(kv.v_scales, chunk.all, chunk.scratch.rows);
  ForGroups(chunk.rows.n_rows, [&](size_t row, auto count) {
    const KeyRange own = chunk.Keys(row, row + count - 1);
    if (own.begin >= own.end) return;
    const Group group = chunk.GroupAt(row, own.begin);
    CodedRow coded[count];
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
  ForTileGroups(chunk, kv.format.v, kv.v, kv.v_stride,
                [&](const float* v, size_t n_keys, const Group& group, auto count) {
                  AccumulateTile<count, kValueVecs[count]>(v, kv.v_stride, n_keys, group);
                });
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
  Chunk chunk{spec, kv, rows, scratch, {}};
  chunk.all = chunk.Keys(0, rows.n_rows - 1);
  ScoreKeys(chunk);
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
