// One layer's rows: where they are, how they are written and read.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "base/error.h"
#include "kv/int8_rows.h"
#include "kv/kv_cache.h"
#include "simd/f16-inl.h"

namespace headlight {
namespace {

constexpr size_t kRowBytes = 16;  // rows are padded to a multiple of one vector

// On wasm32 a cache of more than 4 GiB must fail to allocate, not wrap around and be written out of
// bounds.
size_t SaturatingMul(size_t a, size_t b) {
  constexpr size_t kMax = std::numeric_limits<size_t>::max();
  return b != 0 && a > kMax / b ? kMax : a * b;
}

size_t SaturatingAdd(size_t a, size_t b) {
  return a > std::numeric_limits<size_t>::max() - b ? std::numeric_limits<size_t>::max() : a + b;
}

// Bytes of one row of K (or V) of one head, the scale included.
size_t RowBytes(CacheType type, size_t d) {
  const size_t row_bytes = SaturatingMul(KvRowStride(type, d), CacheTypeBytes(type));
  return type == CacheType::kInt8 ? SaturatingAdd(row_bytes, sizeof(uint16_t)) : row_bytes;
}

// Rows that a head has room for: whole groups of four for int8.
size_t RowsOf(CacheType type, size_t n_ctx) {
  if (type != CacheType::kInt8) return n_ctx;
  return SaturatingAdd(n_ctx, kInt8GroupRows - 1) / kInt8GroupRows * kInt8GroupRows;
}

// Bytes of K (or V) of one layer, all KV heads. int8: all codes, then all scales.
size_t PlaneBytes(CacheType type, size_t n_kv_heads, size_t n_ctx, size_t d) {
  return SaturatingMul(SaturatingMul(RowBytes(type, d), n_kv_heads), RowsOf(type, n_ctx));
}

void CheckNonZero(const char* name, size_t value) {
  if (value != 0) return;
  throw Error(ErrorCode::kBadOption, std::string(name) + " is 0; a head layout needs at least 1",
              {{"option", name}, {"value", "0"}});
}

const HeadLayout& Checked(const HeadLayout& layout) {
  CheckNonZero("n_q_heads", layout.n_q_heads);
  CheckNonZero("n_kv_heads", layout.n_kv_heads);
  CheckNonZero("d_qk", layout.d_qk);
  CheckNonZero("d_v", layout.d_v);
  if (layout.n_q_heads % layout.n_kv_heads != 0) {
    throw Error(ErrorCode::kBadOption,
                "n_q_heads = " + std::to_string(layout.n_q_heads) +
                    " is no multiple of n_kv_heads = " + std::to_string(layout.n_kv_heads) +
                    "; every KV head has to serve the same number of query heads",
                {{"option", "n_kv_heads"}, {"value", std::to_string(layout.n_kv_heads)}});
  }
  return layout;
}

// src [d] -> dst [KvRowStride(kF32, d)]; the padding stays as it is (zero).
void StoreF32(const float* src, size_t d, float* dst) { std::memcpy(dst, src, d * sizeof(float)); }

// The largest finite binary16.
inline constexpr float kMaxF16 = 65504.0f;

// x limited to what binary16 can hold; NaN stays. An outlier of a key or value then costs its own
// precision, where an infinity would turn every later output into NaN.
inline VecF32 ClampToF16(VecF32 x) {
  constexpr F32x4 kF32;
  const VecF32 low = hn::Set(kF32, -kMaxF16);
  const VecF32 high = hn::Set(kF32, kMaxF16);
  const VecF32 below = hn::IfThenElse(hn::Gt(x, high), high, x);
  return hn::IfThenElse(hn::Lt(below, low), low, below);
}

// src [d] -> dst [KvRowStride(kF16, d)]; the padding stays as it is (zero).
void StoreF16(const float* src, size_t d, uint16_t* dst) {
  constexpr F32x4 kF32;
  constexpr U16x4 kU16;
  size_t i = 0;
  for (; i + 4 <= d; i += 4) {
    hn::Store(F16FromF32Vector(ClampToF16(hn::LoadU(kF32, src + i))), kU16, dst + i);
  }
  if (i == d) return;
  const auto last = F16FromF32Vector(ClampToF16(hn::LoadN(kF32, src + i, d - i)));
  hn::StoreN(last, kU16, dst + i, d - i);
}

// K or V of a layer: [n_kv_heads, n_ctx, KvRowStride(type, d)].
struct Plane {
  CacheType type;
  size_t n_kv_heads;
  size_t n_ctx;
  size_t d;
  Int8Placement placement;
  uint8_t* data;
};

size_t Int8ScalesOffset(size_t n_kv_heads, size_t n_ctx, size_t stride) {
  return n_kv_heads * RowsOf(CacheType::kInt8, n_ctx) * stride;
}

Int8Rows Int8RowsOf(const Plane& plane, size_t head) {
  const size_t stride = KvRowStride(CacheType::kInt8, plane.d);
  const size_t n_rows = RowsOf(CacheType::kInt8, plane.n_ctx);
  uint8_t* scales = plane.data + Int8ScalesOffset(plane.n_kv_heads, plane.n_ctx, stride);
  return {plane.placement, stride, plane.data + head * n_rows * stride,
          reinterpret_cast<uint16_t*>(scales) + head * n_rows};
}

// src [n_kv_heads, d] -> row `row` of each head.
void StoreHeads(const Plane& plane, const float* src, size_t row) {
  const size_t d = plane.d;
  const size_t row_bytes = KvRowStride(plane.type, d) * CacheTypeBytes(plane.type);
  for (size_t head = 0; head < plane.n_kv_heads; ++head) {
    uint8_t* dst = plane.data + (head * plane.n_ctx + row) * row_bytes;
    switch (plane.type) {
      case CacheType::kF32:
        StoreF32(src + head * d, d, reinterpret_cast<float*>(dst));
        break;
      case CacheType::kF16:
        StoreF16(src + head * d, d, reinterpret_cast<uint16_t*>(dst));
        break;
      case CacheType::kInt8:
        StoreInt8Row(Int8RowsOf(plane, head), row, src + head * d, d);
        break;
    }
  }
}

void MoveInPlane(const Plane& plane, size_t head, size_t from, size_t to) {
  if (plane.type != CacheType::kInt8) {
    const size_t row_bytes = KvRowStride(plane.type, plane.d) * CacheTypeBytes(plane.type);
    uint8_t* rows = plane.data + head * plane.n_ctx * row_bytes;
    std::memcpy(rows + to * row_bytes, rows + from * row_bytes, row_bytes);
    return;
  }
  const Int8Rows rows = Int8RowsOf(plane, head);
  for (size_t i = 0; i < rows.stride; ++i) {
    rows.codes[Int8At(rows.placement, rows.stride, to, i)] =
        rows.codes[Int8At(rows.placement, rows.stride, from, i)];
  }
  rows.scales[to] = rows.scales[from];
}

// Element i of f32 or f16 rows.
float FloatAt(CacheType type, const void* rows, size_t i) {
  return type == CacheType::kF16 ? F32FromF16(static_cast<const uint16_t*>(rows)[i])
                                 : static_cast<const float*>(rows)[i];
}

// Whether values are stored as parts of the keys.
bool SharesValues(const HeadLayout& layout, KvCacheFormat format) {
  return layout.values_in_keys && format.k == format.v && format.k != CacheType::kInt8;
}

size_t ValueBytes(const HeadLayout& layout, KvCacheFormat format, size_t n_rows) {
  if (SharesValues(layout, format)) return 0;
  return PlaneBytes(format.v, layout.n_kv_heads, n_rows, layout.d_v);
}

}  // namespace

size_t KvRowStride(CacheType type, size_t d) {
  const size_t n_vector = kRowBytes / CacheTypeBytes(type);
  return d > std::numeric_limits<size_t>::max() - n_vector ? d : RoundUp(d, n_vector);
}

KvLayer::KvLayer(const HeadLayout& layout, KvCacheFormat format, const KvPlacement& placement)
    : layout_(Checked(layout)),
      format_(format),
      placement_(placement),
      k_(PlaneBytes(format.k, layout.n_kv_heads, placement.n_rows, layout.d_qk)),
      v_(ValueBytes(layout, format, placement.n_rows)) {}

size_t KvLayer::Bytes(const HeadLayout& layout, KvCacheFormat format, size_t n_ctx) {
  return SaturatingAdd(PlaneBytes(format.k, layout.n_kv_heads, n_ctx, layout.d_qk),
                       ValueBytes(layout, format, n_ctx));
}

size_t KvLayer::BytesPerToken(const HeadLayout& layout, KvCacheFormat format) {
  const size_t v_bytes = SharesValues(layout, format) ? 0 : RowBytes(format.v, layout.d_v);
  return SaturatingAdd(SaturatingMul(RowBytes(format.k, layout.d_qk), layout.n_kv_heads),
                       SaturatingMul(v_bytes, layout.n_kv_heads));
}

void KvLayer::WriteRow(size_t pos, const float* k, const float* v) noexcept {
  const size_t n_heads = layout_.n_kv_heads;
  const size_t n_rows = placement_.n_rows;
  const size_t row = placement_.Row(pos);
  StoreHeads({format_.k, n_heads, n_rows, layout_.d_qk, Int8Placement::kKeys, k_.data()}, k, row);
  if (SharesValues(layout_, format_)) return;
  StoreHeads({format_.v, n_heads, n_rows, layout_.d_v, Int8Placement::kValues, v_.data()}, v, row);
}

void KvLayer::MoveRow(size_t kv_head, size_t from, size_t to) noexcept {
  const size_t n_heads = layout_.n_kv_heads;
  const size_t n_rows = placement_.n_rows;
  MoveInPlane({format_.k, n_heads, n_rows, layout_.d_qk, Int8Placement::kKeys, k_.data()}, kv_head,
              from, to);
  if (SharesValues(layout_, format_)) return;
  MoveInPlane({format_.v, n_heads, n_rows, layout_.d_v, Int8Placement::kValues, v_.data()}, kv_head,
              from, to);
}

KvHeadView KvLayer::head(size_t kv_head) const noexcept {
  const size_t n_heads = layout_.n_kv_heads;
  // Where the head's rows are and, for int8, its scales.
  const auto place = [&](CacheType type, size_t stride, const uint8_t* data, const void*& rows,
                         const uint16_t*& scales) {
    const size_t n_rows = RowsOf(type, placement_.n_rows);
    rows = data + kv_head * n_rows * stride * CacheTypeBytes(type);
    if (type != CacheType::kInt8) return;
    const uint8_t* first = data + Int8ScalesOffset(n_heads, placement_.n_rows, stride);
    scales = reinterpret_cast<const uint16_t*>(first) + kv_head * n_rows;
  };
  KvHeadView view;
  view.format = format_;
  view.placement = placement_;
  view.k_stride = KvRowStride(format_.k, layout_.d_qk);
  view.v_stride = KvRowStride(format_.v, layout_.d_v);
  place(format_.k, view.k_stride, k_.data(), view.k, view.k_scales);
  if (SharesValues(layout_, format_)) {
    view.v = view.k;
    view.v_stride = view.k_stride;
  } else {
    place(format_.v, view.v_stride, v_.data(), view.v, view.v_scales);
  }
  return view;
}

std::vector<KvLayer::RowSpan> KvLayer::RowSpans(size_t n_positions) {
  const size_t n_rows = std::min(n_positions, placement_.n_rows);
  std::vector<RowSpan> spans;
  const size_t n_heads = layout_.n_kv_heads;
  const auto add = [&](CacheType type, size_t d, uint8_t* data) {
    const size_t stride = KvRowStride(type, d);
    const size_t row_bytes = stride * CacheTypeBytes(type);
    const size_t n_room = RowsOf(type, placement_.n_rows);
    const size_t float_bytes = type == CacheType::kInt8 ? 0 : CacheTypeBytes(type);
    for (size_t head = 0; head < n_heads; ++head) {
      uint8_t* first = data + head * n_room * row_bytes;
      spans.push_back({{first, RowsOf(type, n_rows) * row_bytes}, float_bytes, false});
    }
    if (type != CacheType::kInt8) return;
    uint8_t* scales = data + Int8ScalesOffset(n_heads, placement_.n_rows, stride);
    for (size_t head = 0; head < n_heads; ++head) {
      const size_t scale_bytes = sizeof(uint16_t);
      uint8_t* first = scales + head * n_room * scale_bytes;
      spans.push_back({{first, RowsOf(type, n_rows) * scale_bytes}, scale_bytes, true});
    }
  };
  add(format_.k, layout_.d_qk, k_.data());
  if (!SharesValues(layout_, format_)) add(format_.v, layout_.d_v, v_.data());
  return spans;
}

void KvLayer::ClearGroupRest(size_t n_positions) noexcept {
  const size_t n_rows = std::min(n_positions, placement_.n_rows);
  const auto clear = [&](CacheType type, size_t d, Int8Placement placement, uint8_t* data) {
    if (type != CacheType::kInt8) return;
    const Plane plane = {type, layout_.n_kv_heads, placement_.n_rows, d, placement, data};
    for (size_t head = 0; head < layout_.n_kv_heads; ++head) {
      const Int8Rows rows = Int8RowsOf(plane, head);
      for (size_t row = n_rows; row < RowsOf(type, n_rows); ++row) {
        for (size_t i = 0; i < rows.stride; ++i) {
          rows.codes[Int8At(placement, rows.stride, row, i)] = kInt8Offset;
        }
        rows.scales[row] = 0;
      }
    }
  };
  clear(format_.k, layout_.d_qk, Int8Placement::kKeys, k_.data());
  clear(format_.v, layout_.d_v, Int8Placement::kValues, v_.data());
}

float KvHeadView::KeyAt(size_t pos, size_t i) const noexcept {
  const size_t row = placement.Row(pos);
  if (format.k != CacheType::kInt8) return FloatAt(format.k, k, row * k_stride + i);
  const uint8_t* codes = static_cast<const uint8_t*>(k);
  const int code = codes[Int8At(Int8Placement::kKeys, k_stride, row, i)] - kInt8Offset;
  return static_cast<float>(code) * F32FromF16(k_scales[row]);
}

float KvHeadView::ValueAt(size_t pos, size_t i) const noexcept {
  const size_t row = placement.Row(pos);
  if (format.v != CacheType::kInt8) return FloatAt(format.v, v, row * v_stride + i);
  const uint8_t* codes = static_cast<const uint8_t*>(v);
  const int code = codes[Int8At(Int8Placement::kValues, v_stride, row, i)] - kInt8Offset;
  return static_cast<float>(code) * F32FromF16(v_scales[row]);
}

KvHeadView KvHeadView::ByPosition(size_t pos) const noexcept {
  if (!placement.is_ring()) return *this;
  const size_t start = pos / kRingChunk * kRingChunk;
  // Where row 0 would be if rows were numbered by position: maybe outside of the array, so as an
  // integer, whose wrapping around is defined.
  const size_t shift = placement.Row(start) - start;
  const auto moved = [&](auto* p, size_t row_bytes) {
    return reinterpret_cast<decltype(p)>(reinterpret_cast<uintptr_t>(p) + shift * row_bytes);
  };
  KvHeadView view = *this;
  view.placement = {};
  view.k = moved(k, k_stride * CacheTypeBytes(format.k));
  view.v = moved(v, v_stride * CacheTypeBytes(format.v));
  if (k_scales != nullptr) view.k_scales = moved(k_scales, sizeof(uint16_t));
  if (v_scales != nullptr) view.v_scales = moved(v_scales, sizeof(uint16_t));
  return view;
}

}  // namespace headlight
