// The KV cache of one session: rows of rotated keys and of values per layer and KV head, in the
// formats chosen for K and for V. It stores, hands out views, rolls back; what attends to it is in
// attention/.
#ifndef HEADLIGHT_KV_KV_CACHE_H_
#define HEADLIGHT_KV_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned.h"
#include "base/dtype.h"
#include "base/head_layout.h"

namespace headlight {

struct KvCacheFormat {
  CacheType k = CacheType::kF32;
  CacheType v = CacheType::kF32;
  bool operator==(const KvCacheFormat&) const = default;
};

// Rows [0, n_ctx) of one KV head. f32 and f16: row r of K starts at k + r * k_stride elements, of V
// at v + r * v_stride. A row starts on a 16-byte boundary and is padded with zeros to a multiple of
// 16 bytes, so kernels read whole vectors of live rows. int8: groups of four rows (int8_rows.h).
struct KvHeadView {
  KvCacheFormat format;
  const void* k = nullptr;  // [n_ctx, k_stride] of format.k, d_qk used
  const void* v = nullptr;  // [n_ctx, v_stride] of format.v, d_v used
  size_t k_stride = 0;      // elements
  size_t v_stride = 0;
  const uint16_t* k_scales = nullptr;  // [n_ctx] binary16, int8 only
  const uint16_t* v_scales = nullptr;

  // What the cache holds of row `row`, column i. For the definition and for tests: slow.
  float KeyAt(size_t row, size_t i) const noexcept;
  float ValueAt(size_t row, size_t i) const noexcept;
};

// Elements from one row of width d to the next: d rounded up to 16 bytes.
size_t KvRowStride(CacheType type, size_t d);

// One layer: placement [n_kv_heads, n_ctx, stride] so that a head's rows are contiguous for the
// kernels.
class KvLayer {
 public:
  // Throws Error(kBadOption) for a layout with a zero or with n_q_heads no multiple of n_kv_heads,
  // Error(kOutOfMemory). A layout whose values are in the keys has them there alone, if both
  // formats are the same and not int8 (whose values lie in another order).
  KvLayer(const HeadLayout& layout, KvCacheFormat format, size_t n_ctx);
  // BytesPerToken * n_ctx, with n_ctx rounded up to a multiple of 4 for int8: exactly what the
  // layer allocates. Saturates instead of wrapping around (wasm32).
  static size_t Bytes(const HeadLayout& layout, KvCacheFormat format, size_t n_ctx);
  // Bytes that one token adds: n_kv_heads * (d_qk + d_v) * element, each row padded to 16 bytes;
  // int8 rows have a scale of 2 bytes more.
  static size_t BytesPerToken(const HeadLayout& layout, KvCacheFormat format);

  // Stores row `row` < n_ctx of every KV head: k [n_kv_heads, d_qk] already rotated, v [n_kv_heads,
  // d_v]. f16 rounds to nearest even and stores what is beyond +-65504 as +-65504; int8 as
  // int8_rows.h says. Threads may write different rows at the same time.
  void WriteRow(size_t row, const float* k, const float* v) noexcept;
  KvHeadView head(size_t kv_head) const noexcept;
  // A piece of memory that holds rows.
  struct RowSpan {
    std::span<uint8_t> bytes;
    size_t float_bytes;  // 4: f32; 2: binary16; 0: codes
    bool is_scale;       // of int8: never negative
  };
  // Where rows [0, n_rows) are, n_rows <= n_ctx, in an order that depends on the layout, the format
  // and n_rows alone: copied in this order they are another layer's rows. int8: whole groups.
  std::vector<RowSpan> RowSpans(size_t n_rows);
  // Clears the dead rows that RowSpans(n_rows) includes (int8).
  void ClearGroupRest(size_t n_rows) noexcept;
  const HeadLayout& layout() const { return layout_; }
  KvCacheFormat format() const { return format_; }
  size_t n_ctx() const { return n_ctx_; }

 private:
  HeadLayout layout_;
  KvCacheFormat format_;
  size_t n_ctx_;
  AlignedArray<uint8_t> k_;
  AlignedArray<uint8_t> v_;
};

// All layers. Row r holds position r (no eviction yet); rows at and above n_rows() are dead.
class KvCache {
 public:
  // Throws as KvLayer does.
  KvCache(const std::vector<HeadLayout>& layers, KvCacheFormat format, size_t n_ctx);
  // The sum over the layers; saturates.
  static size_t Bytes(const std::vector<HeadLayout>& layers, KvCacheFormat format, size_t n_ctx);

  size_t n_layers() const { return layers_.size(); }
  KvLayer& layer(size_t i) { return layers_[i]; }
  const KvLayer& layer(size_t i) const { return layers_[i]; }
  size_t n_ctx() const { return n_ctx_; }
  size_t n_rows() const { return n_rows_; }
  // Marks rows below n_rows as live (after every layer wrote them), or rolls back to fewer.
  void SetRows(size_t n_rows) { n_rows_ = n_rows; }
  // Takes over the live rows of a cache of the same layers, format and n_ctx: a copy of n_rows *
  // BytesPerToken of each layer.
  void CopyRows(KvCache& from);
  KvCacheFormat format() const { return format_; }
  size_t bytes() const { return bytes_; }

 private:
  std::vector<KvLayer> layers_;
  KvCacheFormat format_;
  size_t n_ctx_;
  size_t n_rows_ = 0;
  size_t bytes_ = 0;
};

}  // namespace headlight

#endif  // HEADLIGHT_KV_KV_CACHE_H_
