// The KV cache of one session: rows of rotated keys and of values per layer and KV head, in the
// formats chosen for K and for V. It stores, hands out views, rolls back; what attends to it is in
// attention/.
#ifndef HEADLIGHT_KV_KV_CACHE_H_
#define HEADLIGHT_KV_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned.h"
#include "base/dtype.h"
#include "base/head_layout.h"
#include "kv/kept_rows.h"
#include "kv/kv_placement.h"

namespace headlight {

struct KvCacheFormat {
  CacheType k = CacheType::kF32;
  CacheType v = CacheType::kF32;
  bool operator==(const KvCacheFormat&) const = default;
};

// Rows of one KV head. f32 and f16: row r of K starts at k + r * k_stride elements, of V at v + r *
// v_stride; position p is in row placement.Row(p). A row starts on a 16-byte boundary and is padded
// with zeros to a multiple of 16 bytes, so kernels read whole vectors of live rows. int8: groups of
// four rows (int8_rows.h).
struct KvHeadView {
  KvCacheFormat format;
  const void* k = nullptr;  // [n_ctx, k_stride] of format.k, d_qk used
  const void* v = nullptr;  // [n_ctx, v_stride] of format.v, d_v used
  size_t k_stride = 0;      // elements
  size_t v_stride = 0;
  const uint16_t* k_scales = nullptr;  // [n_ctx] binary16, int8 only
  const uint16_t* v_scales = nullptr;
  KvPlacement placement;

  // What the cache holds of position `pos`, column i. For the definition and for tests: slow.
  float KeyAt(size_t pos, size_t i) const noexcept;
  float ValueAt(size_t pos, size_t i) const noexcept;

  // The same head with its rows numbered by position, for positions of the chunk of kRingChunk that
  // holds `pos`: no others may be read through it.
  KvHeadView ByPosition(size_t pos) const noexcept;
};

// Elements from one row of width d to the next: d rounded up to 16 bytes.
size_t KvRowStride(CacheType type, size_t d);

// One layer: [n_kv_heads, rows, stride] so that a head's rows are contiguous for the
// kernels.
class KvLayer {
 public:
  // Throws Error(kBadOption) for a layout with a zero or with n_q_heads no multiple of n_kv_heads,
  // Error(kOutOfMemory). A layout whose values are in the keys has them there alone, if both
  // formats are the same and not int8 (whose values lie in another order).
  KvLayer(const HeadLayout& layout, KvCacheFormat format, size_t n_ctx)
      : KvLayer(layout, format, KvPlacement{n_ctx, 0, 0}) {}
  KvLayer(const HeadLayout& layout, KvCacheFormat format, const KvPlacement& placement);
  // Of `n_ctx` rows. BytesPerToken * n_ctx, with n_ctx rounded up to a multiple of 4 for int8:
  // exactly what the layer allocates. Saturates instead of wrapping around (wasm32).
  static size_t Bytes(const HeadLayout& layout, KvCacheFormat format, size_t n_ctx);
  // Bytes that one token adds: n_kv_heads * (d_qk + d_v) * element, each row padded to 16 bytes;
  // int8 rows have a scale of 2 bytes more.
  static size_t BytesPerToken(const HeadLayout& layout, KvCacheFormat format);

  // Stores position `pos` of every KV head, in row placement().Row(pos): k [n_kv_heads, d_qk]
  // already rotated, v [n_kv_heads, d_v]. f16 rounds to nearest even and stores what is beyond
  // +-65504 as +-65504; int8 as int8_rows.h says. Threads may write different rows at the same
  // time.
  void WriteRow(size_t pos, const float* k, const float* v) noexcept;
  // Copies row `from` of one head to row `to`, bit for bit.
  void MoveRow(size_t kv_head, size_t from, size_t to) noexcept;
  KvHeadView head(size_t kv_head) const noexcept;
  // A piece of memory that holds rows.
  struct RowSpan {
    std::span<uint8_t> bytes;
    size_t float_bytes;  // 4: f32; 2: binary16; 0: codes
    bool is_scale;       // of int8: never negative
  };
  // Where the rows are that hold positions [0, n_positions), or what a ring keeps of them, in an
  // order that depends on the layout, placement, format and n_positions alone: copied in this order
  // they are another layer's rows. int8: whole groups.
  std::vector<RowSpan> RowSpans(size_t n_positions);
  // Clears the dead rows that RowSpans(n_positions) includes (int8).
  void ClearGroupRest(size_t n_positions) noexcept;
  const HeadLayout& layout() const { return layout_; }
  KvCacheFormat format() const { return format_; }
  const KvPlacement& placement() const { return placement_; }
  size_t n_rows() const { return placement_.n_rows; }

 private:
  HeadLayout layout_;
  KvCacheFormat format_;
  KvPlacement placement_;
  AlignedArray<uint8_t> k_;
  AlignedArray<uint8_t> v_;
};

// A layer's heads and where its rows stand.
struct KvLayerPlan {
  HeadLayout layout;
  KvPlacement placement;
  bool chooses_rows = false;  // a position may stand in any row, and in none (kept_rows.h)
};

// All layers. Positions at and above n_rows() are dead.
class KvCache {
 public:
  // Every layer contiguous. Throws as KvLayer does.
  KvCache(const std::vector<HeadLayout>& layers, KvCacheFormat format, size_t n_ctx);
  KvCache(const std::vector<KvLayerPlan>& layers, KvCacheFormat format, size_t n_ctx);
  // The sum over the layers; saturates.
  static size_t Bytes(const std::vector<HeadLayout>& layers, KvCacheFormat format, size_t n_ctx);
  static size_t Bytes(const std::vector<KvLayerPlan>& layers, KvCacheFormat format);

  size_t n_layers() const { return layers_.size(); }
  KvLayer& layer(size_t i) { return layers_[i]; }
  const KvLayer& layer(size_t i) const { return layers_[i]; }
  // Of a layer that chooses its rows, else null.
  KeptRows* kept(size_t i) { return kept_[i].has_value() ? &*kept_[i] : nullptr; }
  size_t n_ctx() const { return n_ctx_; }
  size_t n_rows() const { return n_rows_; }
  // To be called before layers store positions n_rows() to n_written - 1: from then on rings may
  // have lost what those overwrite.
  void BeginChunk(size_t n_written);
  // Marks them as live, after every layer wrote them.
  void CommitChunk(size_t n_written);
  // Gives up the rows that the policy gives up now, between chunks.
  void Evict(const EvictionOptions& options, bool at_prompt_end);
  // What a new prompt's queries attend to is what counts from now on (kSnapKv).
  void ClearMass() noexcept;
  // Marks positions below n_rows as live, whatever was there: for callers without layers that
  // choose.
  void SetRows(size_t n_rows) {
    n_rows_ = n_rows;
    n_written_ = n_rows > n_written_ ? n_rows : n_written_;
  }
  // n, at most n_rows(), if every layer still holds what a query at position n looks back on; else
  // 0: the sequence has to be computed again from its start.
  size_t Restorable(size_t n) const;
  // Goes back to Restorable(n).
  void RollBack(size_t n);
  // Takes over the live rows of a cache of the same layers, placements, format and n_ctx: a copy of
  // at most n_rows * BytesPerToken of each layer.
  void CopyRows(KvCache& from);
  // Rows that were stored elsewhere, by way of RowSpans: as SetRows, but rings may have lost
  // anything that the next position does not look back on.
  void SetRestoredRows(size_t n_rows);
  KvCacheFormat format() const { return format_; }
  size_t bytes() const { return bytes_; }

 private:
  std::vector<KvLayer> layers_;
  std::vector<std::optional<KeptRows>> kept_;  // [layers]
  KvCacheFormat format_;
  size_t n_ctx_;
  size_t n_rows_ = 0;
  size_t n_written_ = 0;  // highest position ever stored since the cache was last empty, exclusive
  size_t bytes_ = 0;
};

}  // namespace headlight

#endif  // HEADLIGHT_KV_KV_CACHE_H_
