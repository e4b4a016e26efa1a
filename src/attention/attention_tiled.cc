// Attention of many queries (prefill): query block x key tile with online softmax, after FlashAttention (arXiv 2205.14135).
//
// A block is kTileQ rows of one KV head, a row being one query head at one token (the heads that share a KV head are
// adjacent rows), held in panels of kPanel rows with lane = row. Then scores, weights and sums need no horizontal step and
// keys and values are read as the cache holds them, one element broadcast at a time:
//   scores[key, row] += k[key, i] * q[i, row]        out[i, row] += v[key, i] * weight[key, row]
// A row's arithmetic depends on its own position alone: key tiles are the chunks of attention_decode whatever the block, masked
// scores inside a tile get weight 0 exactly, and every sum is in attention_decode's order. Thread count, batching and
// appended tokens change no bit of a row, nor does it matter which of the two kernels computed it.
#include <algorithm>
#include <cstdint>

#include "attention/attention.h"
#include "attention/key_range.h"
#include "attention/kv_rows-inl.h"
#include "attention/online_softmax-inl.h"
#include "attention/scratch.h"
#include "attention/score_transform-inl.h"

namespace headlight {
namespace {

// A block's share of the work and where it stands.
struct Block {
  const AttentionSpec& spec;
  const AttentionArgs& args;
  size_t kv_head;
  size_t first_row;  // of n_tokens * n_q_per_kv
  size_t n_rows;     // 1..kTileQ

  size_t n_panels() const { return CeilDiv(n_rows, kPanel); }
  // Rows past the end repeat the last one, so that they widen no mask; they are never written out.
  size_t Row(size_t i) const { return first_row + std::min(i, n_rows - 1); }
  size_t Token(size_t i) const { return Row(i) / spec.layout.n_q_per_kv(); }
  size_t QHead(size_t i) const {
    return kv_head * spec.layout.n_q_per_kv() + Row(i) % spec.layout.n_q_per_kv();
  }
  size_t Pos(size_t i) const { return args.pos0 + Token(i); }
  // Keys that rows first..last (of the block) admit together.
  KeyRange Keys(size_t first, size_t last) const {
    return {KeysOf(spec, Pos(first), args.n_kv).begin, KeysOf(spec, Pos(last), args.n_kv).end};
  }
  // The same, from a multiple of 4: sums go by place modulo 4.
  KeyRange WholeKeys(size_t first, size_t last) const {
    const KeyRange keys = Keys(first, last);
    return {keys.begin / 4 * 4, keys.end};
  }
};

// Keys and values of rows [first, first + n) of the cache as f32.
struct KvTile {
  const float* k;  // [n, k_stride]
  const float* v;  // [n, v_stride], d_v rounded up to 4 readable
  size_t k_stride;
  size_t v_stride;
  size_t first;
};

void PackQueries(const Block& block, float* q) {
  const size_t d_qk = block.spec.layout.d_qk;
  for (size_t i = 0; i < block.n_panels() * kPanel; ++i) {
    const float* src = block.args.q + block.Token(i) * block.args.q_stride + block.QHead(i) * d_qk;
    float* dst = q + i / kPanel * d_qk * kPanel + i % kPanel;
    for (size_t j = 0; j < d_qk; ++j) dst[j * kPanel] = src[j] * block.spec.scale;
  }
}

void StoreOutputs(const Block& block, const TiledScratch& scratch) {
  constexpr F32x4 kF32;
  const size_t d_v = block.spec.layout.d_v;
  for (size_t panel = 0; panel < block.n_panels(); ++panel) {
    float* sums = scratch.state + panel * 2 * kPanel + kPanel;
    for (size_t lane = 0; lane < kPanel; lane += 4) {
      hn::Store(InverseSum(hn::Load(kF32, sums + lane)), kF32, sums + lane);
    }
    const float* src = scratch.out + panel * RoundUp(d_v, 4) * kPanel;
    for (size_t lane = 0; lane < kPanel && panel * kPanel + lane < block.n_rows; ++lane) {
      const size_t i = panel * kPanel + lane;
      float* dst = block.args.out + block.Token(i) * block.args.out_stride + block.QHead(i) * d_v;
      for (size_t j = 0; j < d_v; ++j) dst[j] = src[j * kPanel + lane] * sums[lane];
    }
  }
}

KvTile LoadTile(const KvHeadView& kv, KeyRange keys, const TiledScratch& scratch) {
  return {RowsAsF32(kv.format.k, kv.k, kv.k_stride, keys, scratch.k),
          RowsAsF32(kv.format.v, kv.v, kv.v_stride, keys, scratch.v), kv.k_stride, kv.v_stride,
          keys.begin};
}

// How a sum of products is written: the first of two overwrites, the second adds to it.
enum class Store { kSet, kAdd };

// out[key, row] = or += the sum of k[key, i] * q[row, i] over i = first, first + 4, ... for kKeyGroup keys and one panel.
template <Store kStore>
HWY_INLINE void ScoreQuarter(const float* q, size_t d_qk, const float* const (&rows)[kKeyGroup],
                             size_t first, float* out) {
  constexpr F32x4 kF32;
  VecF32 sum[kKeyGroup][2];
  for (auto& pair : sum) pair[0] = pair[1] = hn::Zero(kF32);
  for (size_t i = first; i < d_qk; i += 4) {
    const VecF32 q0 = hn::Load(kF32, q + i * kPanel);
    const VecF32 q1 = hn::Load(kF32, q + i * kPanel + 4);
    for (size_t r = 0; r < kKeyGroup; ++r) {
      const VecF32 element = hn::Set(kF32, rows[r][i]);
      sum[r][0] = MulAdd(element, q0, sum[r][0]);
      sum[r][1] = MulAdd(element, q1, sum[r][1]);
    }
  }
  for (size_t r = 0; r < kKeyGroup; ++r) {
    for (size_t half = 0; half < 2; ++half) {
      float* s = out + r * kPanel + half * 4;
      hn::Store(kStore == Store::kSet ? sum[r][half] : hn::Add(hn::Load(kF32, s), sum[r][half]), kF32, s);
    }
  }
}

// scores[key, row] = k[key] . q[row] for n_keys keys of a tile and one panel. q [d_qk, kPanel], k [n_keys, k_stride].
// Products are added in four parts by i modulo 4, and the parts by SumOfFour: the order that a vector of four elements
// gives attention_decode. A part at a time keeps the accumulators in registers; it costs 5 to 10 % of this kernel (V8,
// x86) against one sum over all i.
void ScorePanel(const float* q, size_t d_qk, const float* k, size_t k_stride, size_t n_keys,
                float* scores) {
  constexpr F32x4 kF32;
  HWY_ALIGN float odd[kKeyGroup * kPanel];
  for (size_t key = 0; key < n_keys; key += kKeyGroup) {
    // Past the last key its row is read again: rows that are not live are never touched.
    const float* rows[kKeyGroup];
    for (size_t r = 0; r < kKeyGroup; ++r) rows[r] = k + std::min(key + r, n_keys - 1) * k_stride;
    float* even = scores + key * kPanel;
    ScoreQuarter<Store::kSet>(q, d_qk, rows, 0, even);
    ScoreQuarter<Store::kAdd>(q, d_qk, rows, 2, even);
    ScoreQuarter<Store::kSet>(q, d_qk, rows, 1, odd);
    ScoreQuarter<Store::kAdd>(q, d_qk, rows, 3, odd);
    for (size_t i = 0; i < kKeyGroup * kPanel; i += 4) {
      hn::Store(hn::Add(hn::Load(kF32, even + i), hn::Load(kF32, odd + i)), kF32, even + i);
    }
  }
}

// Adds a chunk: out[i, row] = out[i, row] * into[row] + part[row] * sum over keys of v[key, i] * weight[key, row].
// out [d_v rounded up to 4, kPanel], weights [n_keys, kPanel], v [n_keys, v_stride], factors: lanes = rows.
void AccumulatePanel(const float* weights, size_t n_keys, const float* v, size_t v_stride, size_t d_v,
                     const MergeFactors (&factors)[2], float* out) {
  constexpr F32x4 kF32;
  for (size_t i = 0; i < d_v; i += 4) {
    VecF32 acc[4][2];
    for (auto& pair : acc) pair[0] = pair[1] = hn::Zero(kF32);
    const float* column = v + i;
    for (size_t key = 0; key < n_keys; ++key) {
      const VecF32 w0 = hn::Load(kF32, weights + key * kPanel);
      const VecF32 w1 = hn::Load(kF32, weights + key * kPanel + 4);
      for (size_t r = 0; r < 4; ++r) {
        const VecF32 element = hn::Set(kF32, column[key * v_stride + r]);
        acc[r][0] = MulAdd(element, w0, acc[r][0]);
        acc[r][1] = MulAdd(element, w1, acc[r][1]);
      }
    }
    for (size_t r = 0; r < 4; ++r) {
      for (size_t half = 0; half < 2; ++half) {
        float* sum = out + (i + r) * kPanel + half * 4;
        const VecF32 added = hn::Mul(acc[r][half], factors[half].part);
        hn::Store(MulAdd(hn::Load(kF32, sum), factors[half].into, added), kF32, sum);
      }
    }
  }
}

// Masks scores [keys, kPanel] of keys that a row of the panel does not admit although the panel as a whole does.
void MaskPanel(const Block& block, size_t panel, KeyRange keys, float* scores) {
  constexpr F32x4 kF32;
  const VecF32 masked = hn::Set(kF32, kMaskedScore);
  for (size_t lane = 0; lane < kPanel; lane += 4) {
    // Bounds relative to the tile: small, so 32 bits hold them whatever the context.
    HWY_ALIGN int32_t begins[4];
    HWY_ALIGN int32_t ends[4];
    for (size_t j = 0; j < 4; ++j) {
      const size_t i = panel * kPanel + lane + j;
      const KeyRange own = KeysOf(block.spec, block.Pos(i), block.args.n_kv);
      begins[j] = static_cast<int32_t>(std::clamp(own.begin, keys.begin, keys.end) - keys.begin);
      ends[j] = static_cast<int32_t>(std::clamp(own.end, keys.begin, keys.end) - keys.begin);
    }
    const VecI32 begin = hn::Load(I32x4(), begins);
    const VecI32 end = hn::Load(I32x4(), ends);
    for (size_t key = 0; key < keys.end - keys.begin; ++key) {
      float* s = scores + key * kPanel + lane;
      const VecI32 index = hn::Set(I32x4(), static_cast<int32_t>(key));
      const auto out = hn::Or(hn::Lt(index, begin), hn::Ge(index, end));
      hn::Store(hn::IfThenElse(hn::RebindMask(kF32, out), masked, hn::Load(kF32, s)), kF32, s);
    }
  }
}

// Everything that turns dot products into the scores that the softmax sees: score modifiers join here.
void TransformPanel(const Block& block, size_t panel, KeyRange keys, float* scores) {
  const size_t n_keys = keys.end - keys.begin;
  if (block.spec.softcap != 0.0f) {
    SoftcapScores(block.spec.softcap, scores, n_keys * kPanel / 4, 4);
  }
  const KeyRange first = block.Keys(panel * kPanel, panel * kPanel);
  const KeyRange last = block.Keys(panel * kPanel + kPanel - 1, panel * kPanel + kPanel - 1);
  const bool all_admit = last.begin <= keys.begin && keys.end <= first.end;
  if (!all_admit) MaskPanel(block, panel, keys, scores);
}

// One panel meets rows `keys` of the cache, all inside `tile`.
void AttendPanel(const Block& block, size_t panel, KeyRange keys, const KvTile& tile,
                 const TiledScratch& scratch) {
  constexpr F32x4 kF32;
  const HeadLayout& layout = block.spec.layout;
  const size_t n_keys = keys.end - keys.begin;
  const size_t offset = keys.begin - tile.first;
  ScorePanel(scratch.q + panel * layout.d_qk * kPanel, layout.d_qk, tile.k + offset * tile.k_stride,
             tile.k_stride, n_keys, scratch.scores);
  TransformPanel(block, panel, keys, scratch.scores);
  float* max = scratch.state + panel * 2 * kPanel;
  float* sum = max + kPanel;
  MergeFactors factors[2];
  for (size_t half = 0; half < 2; ++half) {
    const SoftmaxState part =
        SoftmaxOfChunk<SoftmaxLanes::kRows>(scratch.scores + half * 4, n_keys, kPanel);
    SoftmaxState state{hn::Load(kF32, max + half * 4), hn::Load(kF32, sum + half * 4)};
    factors[half] = MergeSoftmax(part, state);
    hn::Store(state.max, kF32, max + half * 4);
    hn::Store(state.sum, kF32, sum + half * 4);
  }
  AccumulatePanel(scratch.scores, n_keys, tile.v + offset * tile.v_stride, tile.v_stride, layout.d_v,
                  factors, scratch.out + panel * RoundUp(layout.d_v, 4) * kPanel);
}

void AttendBlock(const Block& block, const TiledScratch& scratch) {
  constexpr F32x4 kF32;
  const KvHeadView kv = block.args.kv->head(block.kv_head);
  PackQueries(block, scratch.q);
  std::fill_n(scratch.out, block.n_panels() * RoundUp(block.spec.layout.d_v, 4) * kPanel, 0.0f);
  const SoftmaxState empty = EmptySoftmax();
  for (size_t i = 0; i < block.n_panels() * 2 * kPanel; i += 4) {
    hn::Store(i / kPanel % 2 == 0 ? empty.max : empty.sum, kF32, scratch.state + i);
  }
  const KeyRange all = block.WholeKeys(0, block.n_rows - 1);
  KeyRange keys{all.begin, 0};
  for (; keys.begin < all.end; keys.begin = keys.end) {
    keys.end = std::min((keys.begin / kTileK + 1) * kTileK, all.end);
    const KvTile tile = LoadTile(kv, keys, scratch);
    for (size_t panel = 0; panel < block.n_panels(); ++panel) {
      const KeyRange own = block.WholeKeys(panel * kPanel, panel * kPanel + kPanel - 1);
      const KeyRange both{std::max(keys.begin, own.begin), std::min(keys.end, own.end)};
      if (both.begin < both.end) AttendPanel(block, panel, both, tile, scratch);
    }
  }
  StoreOutputs(block, scratch);
}

}  // namespace

void AttentionTiled(const AttentionSpec& spec, const AttentionArgs& args, AttentionWorkspace& workspace,
                    ThreadPool& pool) noexcept {
  const size_t n_rows = args.n_tokens * spec.layout.n_q_per_kv();
  const size_t n_blocks = CeilDiv(n_rows, kTileQ);
  const size_t n_kv_heads = spec.layout.n_kv_heads;
  pool.ParallelFor(n_blocks * n_kv_heads, [&](size_t task, size_t thread) {
    // Under a causal mask the last blocks have the most keys: they go first, so that threads end together.
    const size_t first_row = (n_blocks - 1 - task / n_kv_heads) * kTileQ;
    const Block block{spec, args, task % n_kv_heads, first_row, std::min(kTileQ, n_rows - first_row)};
    AttendBlock(block, TiledScratchOf(spec.layout, workspace.thread_scratch(thread)));
  });
}

}  // namespace headlight
