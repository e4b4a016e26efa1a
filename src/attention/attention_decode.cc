// Attention of one query (decode): the keys are split into chunks of kDecodeChunk at multiples of it, each (KV head, chunk)
// is a task, and the partial (max, sum, acc) of the chunks are merged in order afterwards, so that neither the thread count
// nor which thread took a task changes a bit (after Flash-Decoding). The order of every sum is attention_tiled's, so the two
// agree bit for bit. All query heads of a KV head share each loaded
// key and value. Bound by memory: a row of the cache is read once.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "attention/attention.h"
#include "attention/key_range.h"
#include "attention/kv_rows-inl.h"
#include "attention/online_softmax-inl.h"
#include "attention/scratch.h"
#include "attention/score_transform-inl.h"

namespace headlight {
namespace {

// How many keys, and how many vectors of a value, one, two or three query heads take at a time: as many accumulators as
// stay in registers beside the operands (x86 has 16, of which V8 keeps one).
constexpr size_t kScoreKeys[] = {0, 8, 4, 3};
constexpr size_t kValueVecs[] = {0, 8, 4, 3};

// Several query heads against the same rows. `weights` are scores before and weights after the softmax.
struct Heads {
  const float* q;  // [n, q_stride]
  size_t q_stride;
  float* weights;  // [n, weight_stride]
  size_t weight_stride;
  float* acc;      // [n, acc_stride]
  size_t acc_stride;

  Heads From(size_t head, size_t key) const {
    return {q + head * q_stride,     q_stride,  weights + head * weight_stride + key, weight_stride,
            acc + head * acc_stride, acc_stride};
  }
};

// Lane i of the result is SumOfFour of the lanes of the i-th argument.
HWY_INLINE VecF32 SumsOfLanes(VecF32 a0, VecF32 a1, VecF32 a2, VecF32 a3) {
  constexpr F32x4 kF32;
  const VecF32 ab = hn::Add(hn::InterleaveLower(kF32, a0, a1), hn::InterleaveUpper(kF32, a0, a1));
  const VecF32 cd = hn::Add(hn::InterleaveLower(kF32, a2, a3), hn::InterleaveUpper(kF32, a2, a3));
  return hn::Add(hn::ConcatLowerLower(kF32, cd, ab), hn::ConcatUpperUpper(kF32, cd, ab));
}

// weights[h][key] = k[key] . q[h] for kHeads heads and all n_keys rows, kKeys at a time.
template <size_t kHeads, size_t kKeys>
void ScoreRows(const float* k, size_t stride, size_t n_keys, const Heads& heads) {
  constexpr F32x4 kF32;
  for (size_t key = 0; key < n_keys; key += kKeys) {
    // Past the last key its row is read again: rows that are not live are never touched.
    const float* rows[kKeys];
    for (size_t r = 0; r < kKeys; ++r) rows[r] = k + std::min(key + r, n_keys - 1) * stride;
    VecF32 acc[kHeads][RoundUp(kKeys, 4)];
    for (auto& head : acc) {
      for (VecF32& a : head) a = hn::Zero(kF32);
    }
    for (size_t i = 0; i < stride; i += 4) {
      VecF32 q[kHeads];
      for (size_t h = 0; h < kHeads; ++h) q[h] = hn::Load(kF32, heads.q + h * heads.q_stride + i);
      for (size_t r = 0; r < kKeys; ++r) {
        const VecF32 x = hn::Load(kF32, rows[r] + i);
        for (size_t h = 0; h < kHeads; ++h) acc[h][r] = MulAdd(x, q[h], acc[h][r]);
      }
    }
    for (size_t h = 0; h < kHeads; ++h) {
      for (size_t r = 0; r < kKeys; r += 4) {
        hn::StoreU(SumsOfLanes(acc[h][r], acc[h][r + 1], acc[h][r + 2], acc[h][r + 3]), kF32,
                   heads.weights + h * heads.weight_stride + key + r);
      }
    }
  }
}

// acc[h][i] += sum over n_keys rows of weights[h][key] * v[key][i] for kHeads heads and kVecs vectors from column i.
template <size_t kHeads, size_t kVecs>
void AccumulateStrip(const float* v, size_t stride, size_t n_keys, const Heads& heads, size_t column) {
  constexpr F32x4 kF32;
  VecF32 acc[kHeads][kVecs];
  for (size_t h = 0; h < kHeads; ++h) {
    const float* src = heads.acc + h * heads.acc_stride + column;
    for (size_t j = 0; j < kVecs; ++j) acc[h][j] = hn::Load(kF32, src + 4 * j);
  }
  const float* row = v + column;
  for (size_t key = 0; key < n_keys; ++key, row += stride) {
    VecF32 weight[kHeads];
    for (size_t h = 0; h < kHeads; ++h) weight[h] = hn::Set(kF32, heads.weights[h * heads.weight_stride + key]);
    for (size_t j = 0; j < kVecs; ++j) {
      const VecF32 x = hn::Load(kF32, row + 4 * j);
      for (size_t h = 0; h < kHeads; ++h) acc[h][j] = MulAdd(x, weight[h], acc[h][j]);
    }
  }
  for (size_t h = 0; h < kHeads; ++h) {
    float* dst = heads.acc + h * heads.acc_stride + column;
    for (size_t j = 0; j < kVecs; ++j) hn::Store(acc[h][j], kF32, dst + 4 * j);
  }
}

template <size_t kHeads, size_t kVecs>
void AccumulateRows(const float* v, size_t stride, size_t n_keys, const Heads& heads) {
  size_t column = 0;
  for (; column + 4 * kVecs <= stride; column += 4 * kVecs) {
    AccumulateStrip<kHeads, kVecs>(v, stride, n_keys, heads, column);
  }
  for (; column < stride; column += 4) AccumulateStrip<kHeads, 1>(v, stride, n_keys, heads, column);
}

// Calls body(first head, number of heads as a constant) until all n_heads had their turn. Four are two pairs: their
// accumulators fit in registers.
template <class Body>
HWY_INLINE void ForHeads(size_t n_heads, const Body& body) {
  for (size_t h = 0; h < n_heads;) {
    const size_t left = n_heads - h;
    if (left == 1) {
      body(h, std::integral_constant<size_t, 1>());
      h += 1;
    } else if (left == 2 || left == 4) {
      body(h, std::integral_constant<size_t, 2>());
      h += 2;
    } else {
      body(h, std::integral_constant<size_t, 3>());
      h += 3;
    }
  }
}

// q: the query of this KV head's query heads -> scratch, scaled, padded with zeros to the stride that keys may have.
void ScaleQueries(const AttentionSpec& spec, const AttentionArgs& args, size_t kv_head, float* dst) {
  const size_t d_qk = spec.layout.d_qk;
  const size_t n_heads = spec.layout.n_q_per_kv();
  const float* src = args.q + kv_head * n_heads * d_qk;
  const size_t stride = RoundUp(d_qk, 8);
  for (size_t h = 0; h < n_heads; ++h) {
    for (size_t i = 0; i < d_qk; ++i) dst[h * stride + i] = src[h * d_qk + i] * spec.scale;
    std::fill(dst + h * stride + d_qk, dst + (h + 1) * stride, 0.0f);
  }
}

// scores [n_keys padded to 4] of one head, the first n_masked to be ignored -> weights, max and sum of its partial.
void SoftmaxChunk(const AttentionSpec& spec, size_t n_masked, size_t n_keys, float* scores, float* partial) {
  const size_t n_vecs = CeilDiv(n_keys, 4);
  if (spec.softcap != 0.0f) SoftcapScores(spec.softcap, scores, n_vecs, 4);
  std::fill_n(scores, n_masked, kMaskedScore);
  std::fill(scores + n_keys, scores + 4 * n_vecs, kMaskedScore);
  const SoftmaxState state = SoftmaxOfChunk<SoftmaxLanes::kOneRow>(scores, n_vecs, 4);
  partial[0] = hn::GetLane(state.max);
  partial[1] = hn::GetLane(state.sum);
}

// Rows `keys` (of one chunk) against all query heads of kv_head. partials: head h's of this chunk is at
// partials + h * partial_stride: max, sum, -, -, acc.
void AttendChunk(const AttentionSpec& spec, const AttentionArgs& args, size_t kv_head, KeyRange keys,
                 const DecodeScratch& scratch, float* partials, size_t partial_stride) {
  const size_t n_heads = spec.layout.n_q_per_kv();
  // Sums go by place modulo 4, as in prefill; what a window leaves out in front gets weight 0.
  const size_t n_masked = keys.begin % 4;
  keys.begin -= n_masked;
  const size_t n_keys = keys.end - keys.begin;
  const KvHeadView kv = args.kv->head(kv_head);
  const Heads heads{scratch.q, RoundUp(spec.layout.d_qk, 8), scratch.scores, kDecodeChunk + kScorePadding,
                    partials + kPartialHeader, partial_stride};
  ScaleQueries(spec, args, kv_head, scratch.q);
  for (size_t key = 0; key < n_keys; key += kDecodeRows) {
    const KeyRange rows{keys.begin + key, std::min(keys.begin + key + kDecodeRows, keys.end)};
    const float* k = RowsAsF32(kv.format.k, kv.k, kv.k_stride, rows, scratch.rows);
    ForHeads(n_heads, [&](size_t h, auto count) {
      ScoreRows<count, kScoreKeys[count]>(k, kv.k_stride, rows.end - rows.begin, heads.From(h, key));
    });
  }
  for (size_t h = 0; h < n_heads; ++h) {
    float* partial = partials + h * partial_stride;
    SoftmaxChunk(spec, n_masked, n_keys, heads.From(h, 0).weights, partial);
    std::fill_n(partial + kPartialHeader, kv.v_stride, 0.0f);
  }
  for (size_t key = 0; key < n_keys; key += kDecodeRows) {
    const KeyRange rows{keys.begin + key, std::min(keys.begin + key + kDecodeRows, keys.end)};
    const float* v = RowsAsF32(kv.format.v, kv.v, kv.v_stride, rows, scratch.rows);
    ForHeads(n_heads, [&](size_t h, auto count) {
      AccumulateRows<count, kValueVecs[count]>(v, kv.v_stride, rows.end - rows.begin, heads.From(h, key));
    });
  }
}

// Merges a head's n_chunks partials [PartialFloats(d_v)] in order into the first and writes out [d_v].
void MergeChunks(float* partials, size_t n_chunks, size_t d_v, float* out) {
  constexpr F32x4 kF32;
  SoftmaxState state = EmptySoftmax();
  float* acc = partials + kPartialHeader;
  for (size_t c = 0; c < n_chunks; ++c) {
    const float* part = partials + c * PartialFloats(d_v);
    const MergeFactors factors =
        MergeSoftmax({hn::Set(kF32, part[0]), hn::Set(kF32, part[1])}, state);
    if (c == 0) continue;
    for (size_t i = 0; i < d_v; i += 4) {
      const VecF32 added = hn::Mul(hn::Load(kF32, part + kPartialHeader + i), factors.part);
      hn::Store(MulAdd(hn::Load(kF32, acc + i), factors.into, added), kF32, acc + i);
    }
  }
  const float inverse = hn::GetLane(InverseSum(state.sum));
  for (size_t i = 0; i < d_v; ++i) out[i] = n_chunks == 0 ? 0.0f : acc[i] * inverse;
}

}  // namespace

void AttentionDecode(const AttentionSpec& spec, const AttentionArgs& args, AttentionWorkspace& workspace,
                     ThreadPool& pool) noexcept {
  const HeadLayout& layout = spec.layout;
  const KeyRange all = KeysOf(spec, args.pos0, args.n_kv);
  const size_t first_chunk = all.begin / kDecodeChunk;
  const size_t n_chunks = all.begin < all.end ? CeilDiv(all.end, kDecodeChunk) - first_chunk : 0;
  const size_t partial_stride = n_chunks * PartialFloats(layout.d_v);  // from a head to the next
  float* partials = workspace.partials();
  pool.ParallelFor(n_chunks * layout.n_kv_heads, [&](size_t task, size_t thread) {
    const size_t kv_head = task / n_chunks;
    const size_t chunk = task % n_chunks;
    const size_t start = (first_chunk + chunk) * kDecodeChunk;
    const KeyRange keys{std::max(all.begin, start), std::min(all.end, start + kDecodeChunk)};
    AttendChunk(spec, args, kv_head, keys, DecodeScratchOf(layout, workspace.thread_scratch(thread)),
                partials + kv_head * layout.n_q_per_kv() * partial_stride +
                    chunk * PartialFloats(layout.d_v),
                partial_stride);
  });
  // A few thousand floats a chunk at most: not worth waking threads for.
  for (size_t h = 0; h < layout.n_q_heads; ++h) {
    MergeChunks(partials + h * partial_stride, n_chunks, layout.d_v, args.out + h * layout.d_v);
  }
}

}  // namespace headlight
