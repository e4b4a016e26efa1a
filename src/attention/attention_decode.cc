// Attention of one query (decode): the keys are split into chunks of kDecodeChunk at multiples of it, each (KV head, chunk)
// is a task, and the partial (max, sum, acc) of the chunks are merged in order afterwards, so that neither the thread count
// nor which thread took a task changes a bit (after Flash-Decoding). All query heads of a KV head share each loaded
// key and value. Bound by memory: a row of the cache is read once.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "attention/attention.h"
#include "attention/key_range.h"
#include "attention/online_softmax-inl.h"
#include "attention/scratch.h"
#include "attention/score_transform-inl.h"
#include "kv/f16-inl.h"

namespace headlight {
namespace {

// Values are taken this many rows at a time, in strips of columns that fit in registers: 32 rows stay in the first-level
// cache between strips, and memory is read in address order.
constexpr size_t kValueRows = 32;
constexpr size_t kStripVecs = 4;
// Query heads that share a loaded key in registers.
constexpr size_t kMaxHeads = 3;

// How the inner loops read a cache row, kStep elements at a time; rows are padded to 16 bytes.
struct F32Rows {
  using Element = float;
  static constexpr size_t kStep = 4;
  static HWY_INLINE void Load(const float* p, VecF32* x) { x[0] = hn::Load(F32x4(), p); }
};
struct F16Rows {
  using Element = uint16_t;
  static constexpr size_t kStep = 8;
  static HWY_INLINE void Load(const uint16_t* p, VecF32* x) { LoadF16x8(p, x[0], x[1]); }
};

// Several query heads against the same rows. `weights` are scores before and weights after the softmax.
struct Heads {
  const float* q;        // [n, q_stride]
  size_t q_stride;
  float* weights;        // [n, weight_stride]
  size_t weight_stride;
  float* acc;            // [n, acc_stride]
  size_t acc_stride;

  Heads From(size_t head) const {
    return {q + head * q_stride,   q_stride, weights + head * weight_stride, weight_stride,
            acc + head * acc_stride, acc_stride};
  }
};

// Lane i of the result is the sum of the lanes of a[i].
HWY_INLINE VecF32 SumsOfLanes(const VecF32 (&a)[4]) {
  constexpr F32x4 kF32;
  const VecF32 ab = hn::Add(hn::InterleaveLower(kF32, a[0], a[1]), hn::InterleaveUpper(kF32, a[0], a[1]));
  const VecF32 cd = hn::Add(hn::InterleaveLower(kF32, a[2], a[3]), hn::InterleaveUpper(kF32, a[2], a[3]));
  return hn::Add(hn::ConcatLowerLower(kF32, cd, ab), hn::ConcatUpperUpper(kF32, cd, ab));
}

// weights[h][key..key+4) = keys . q[h] for kHeads heads and four rows of `stride` elements.
template <class Rows, size_t kHeads>
void ScoreFour(const typename Rows::Element* const (&rows)[4], size_t stride, const Heads& heads,
               size_t key) {
  constexpr F32x4 kF32;
  constexpr size_t kVecs = Rows::kStep / 4;
  VecF32 acc[kHeads][4];
  for (auto& head : acc) head[0] = head[1] = head[2] = head[3] = hn::Zero(kF32);
  for (size_t i = 0; i < stride; i += Rows::kStep) {
    for (size_t r = 0; r < 4; ++r) {
      VecF32 x[kVecs];
      Rows::Load(rows[r] + i, x);
      for (size_t h = 0; h < kHeads; ++h) {
        const float* q = heads.q + h * heads.q_stride + i;
        for (size_t j = 0; j < kVecs; ++j) acc[h][r] = MulAdd(x[j], hn::Load(kF32, q + 4 * j), acc[h][r]);
      }
    }
  }
  for (size_t h = 0; h < kHeads; ++h) {
    hn::Store(SumsOfLanes(acc[h]), kF32, heads.weights + h * heads.weight_stride + key);
  }
}

// acc[h][i] += sum over keys [key, key_end) of weights[h][key] * v[key][i] for kHeads heads and kLoads * kStep columns i.
template <class Rows, size_t kHeads, size_t kLoads>
void AccumulateStrip(const typename Rows::Element* v, size_t stride, const Heads& heads, size_t key,
                     size_t key_end, size_t column) {
  constexpr F32x4 kF32;
  constexpr size_t kVecs = kLoads * Rows::kStep / 4;
  VecF32 acc[kHeads][kVecs];
  for (size_t h = 0; h < kHeads; ++h) {
    const float* src = heads.acc + h * heads.acc_stride + column;
    for (size_t j = 0; j < kVecs; ++j) acc[h][j] = hn::Load(kF32, src + 4 * j);
  }
  for (; key < key_end; ++key) {
    VecF32 x[kVecs];
    for (size_t j = 0; j < kLoads; ++j) {
      Rows::Load(v + key * stride + column + j * Rows::kStep, x + j * Rows::kStep / 4);
    }
    for (size_t h = 0; h < kHeads; ++h) {
      const VecF32 weight = hn::Set(kF32, heads.weights[h * heads.weight_stride + key]);
      for (size_t j = 0; j < kVecs; ++j) acc[h][j] = MulAdd(x[j], weight, acc[h][j]);
    }
  }
  for (size_t h = 0; h < kHeads; ++h) {
    float* dst = heads.acc + h * heads.acc_stride + column;
    for (size_t j = 0; j < kVecs; ++j) hn::Store(acc[h][j], kF32, dst + 4 * j);
  }
}

template <class Rows, size_t kHeads>
void AccumulateRows(const typename Rows::Element* v, size_t stride, const Heads& heads, size_t key,
                    size_t key_end) {
  constexpr size_t kLoads = kStripVecs * 4 / Rows::kStep;
  size_t column = 0;
  for (; column + 4 * kStripVecs <= stride; column += 4 * kStripVecs) {
    AccumulateStrip<Rows, kHeads, kLoads>(v, stride, heads, key, key_end, column);
  }
  for (; column < stride; column += Rows::kStep) {
    AccumulateStrip<Rows, kHeads, 1>(v, stride, heads, key, key_end, column);
  }
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
      body(h, std::integral_constant<size_t, kMaxHeads>());
      h += kMaxHeads;
    }
  }
}

// k: rows of keys [0, n_keys).
template <class Rows>
void ScoreKeys(const typename Rows::Element* k, size_t stride, size_t n_keys, size_t n_heads,
               const Heads& heads) {
  for (size_t key = 0; key < n_keys; key += 4) {
    // Past the last key its row is read again: rows that are not live are never touched.
    const typename Rows::Element* rows[4];
    for (size_t r = 0; r < 4; ++r) rows[r] = k + std::min(key + r, n_keys - 1) * stride;
    ForHeads(n_heads, [&](size_t h, auto count) {
      ScoreFour<Rows, decltype(count)::value>(rows, stride, heads.From(h), key);
    });
  }
}

// v: rows of values [0, n_keys).
template <class Rows>
void AccumulateValues(const typename Rows::Element* v, size_t stride, size_t n_keys, size_t n_heads,
                      const Heads& heads) {
  for (size_t key = 0; key < n_keys; key += kValueRows) {
    const size_t key_end = std::min(key + kValueRows, n_keys);
    ForHeads(n_heads, [&](size_t h, auto count) {
      AccumulateRows<Rows, decltype(count)::value>(v, stride, heads.From(h), key, key_end);
    });
  }
}

// Calls body(Rows(), first row of keys.begin as Rows::Element) for the format.
template <class Body>
HWY_INLINE void WithRows(CacheType type, const void* rows, size_t offset, const Body& body) {
  switch (type) {
    case CacheType::kF32:
      return body(F32Rows(), static_cast<const float*>(rows) + offset);
    case CacheType::kF16:
      return body(F16Rows(), static_cast<const uint16_t*>(rows) + offset);
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

// scores [n_keys padded to 4] of one head -> weights, max and sum of its partial.
void SoftmaxChunk(const AttentionSpec& spec, size_t n_keys, float* scores, float* partial) {
  constexpr F32x4 kF32;
  const size_t n_vecs = CeilDiv(n_keys, 4);
  if (spec.softcap != 0.0f) SoftcapScores(spec.softcap, scores, n_vecs, 4);
  std::fill(scores + n_keys, scores + 4 * n_vecs, kMaskedScore);
  SoftmaxState state = EmptySoftmax();
  UpdateSoftmax<SoftmaxLanes::kOneRow>(scores, n_vecs, 4, state);
  partial[0] = hn::GetLane(state.max);
  partial[1] = hn::ReduceSum(kF32, state.sum);
}

// Rows `keys` (of one chunk) against all query heads of kv_head. partials: head h's of this chunk is at
// partials + h * partial_stride: max, sum, -, -, acc.
void AttendChunk(const AttentionSpec& spec, const AttentionArgs& args, size_t kv_head, KeyRange keys,
                 const DecodeScratch& scratch, float* partials, size_t partial_stride) {
  const size_t n_heads = spec.layout.n_q_per_kv();
  const size_t n_keys = keys.end - keys.begin;
  const KvHeadView kv = args.kv->head(kv_head);
  const Heads heads{scratch.q, RoundUp(spec.layout.d_qk, 8), scratch.scores, kDecodeChunk + kKeyGroup,
                    partials + kPartialHeader, partial_stride};
  ScaleQueries(spec, args, kv_head, scratch.q);
  WithRows(kv.format.k, kv.k, keys.begin * kv.k_stride, [&](auto rows, const auto* k) {
    ScoreKeys<decltype(rows)>(k, kv.k_stride, n_keys, n_heads, heads);
  });
  for (size_t h = 0; h < n_heads; ++h) {
    float* partial = partials + h * partial_stride;
    SoftmaxChunk(spec, n_keys, heads.From(h).weights, partial);
    std::fill_n(partial + kPartialHeader, kv.v_stride, 0.0f);
  }
  WithRows(kv.format.v, kv.v, keys.begin * kv.v_stride, [&](auto rows, const auto* v) {
    AccumulateValues<decltype(rows)>(v, kv.v_stride, n_keys, n_heads, heads);
  });
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
