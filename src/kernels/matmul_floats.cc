// Weights of every family against f32 activations: y += w * x, one column after the other, in the
// same order for every tile. Families other than f32 are widened panel by panel, once for all
// tokens.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/rows-inl.h"
#include "kernels/tiles.h"
#include "kernels/widen.h"
#include "simd/part.h"

namespace headlight {
namespace {

constexpr size_t kTileGroups = 2;
static_assert(kStripGroups % kTileGroups == 0, "a tile is part of one strip");
constexpr size_t kTileTokens = 4;
// Columns widened at a time: two groups of them as floats are 4 KiB, well inside a first-level
// cache.
constexpr size_t kPanelCols = 128;

struct Panel {
  const float* w;          // [n_cols][groups][4]
  size_t w_column_stride;  // elements from a column to the next
  size_t n_cols;
  const float* x;  // first token's activations at the panel's first column
  size_t x_stride;
  float* y;  // first token, first row
  size_t y_stride;
  size_t n_rows;  // rows from y on, at least one
  bool is_first;  // of the row: sums start at zero
};

template <size_t kGroups, size_t kTokens>
void RunTile(const Panel& panel) {
  const F32x4 df;
  VecF32 sums[kGroups][kTokens];
  for (size_t g = 0; g < kGroups; ++g) {
    for (size_t t = 0; t < kTokens; ++t) {
      const float* y = panel.y + t * panel.y_stride + g * kRowGroup;
      sums[g][t] = panel.is_first ? hn::Zero(df) : LoadPart(y, panel.n_rows - g * kRowGroup);
    }
  }
  for (size_t c = 0; c < panel.n_cols; ++c) {
    VecF32 w[kGroups];
    for (size_t g = 0; g < kGroups; ++g) {
      w[g] = hn::Load(df, panel.w + c * panel.w_column_stride + g * kRowGroup);
    }
    for (size_t t = 0; t < kTokens; ++t) {
      const VecF32 x = hn::Set(df, panel.x[t * panel.x_stride + c]);
      for (size_t g = 0; g < kGroups; ++g) sums[g][t] = MulAdd(w[g], x, sums[g][t]);
    }
  }
  for (size_t g = 0; g < kGroups; ++g) {
    for (size_t t = 0; t < kTokens; ++t) {
      const size_t row = g * kRowGroup;
      StorePart(sums[g][t], panel.y + t * panel.y_stride + row, panel.n_rows - row);
    }
  }
}

template <size_t kGroups>
void RunTokens(Panel panel, size_t n_tokens) {
  for (; n_tokens >= kTileTokens; n_tokens -= kTileTokens) {
    RunTile<kGroups, kTileTokens>(panel);
    panel.x += kTileTokens * panel.x_stride;
    panel.y += kTileTokens * panel.y_stride;
  }
  if (n_tokens == 3) RunTile<kGroups, 3>(panel);
  if (n_tokens == 2) RunTile<kGroups, 2>(panel);
  if (n_tokens == 1) RunTile<kGroups, 1>(panel);
}

// Four rows of one column of a plain family, as floats.
struct F32Source {
  static constexpr size_t kColumnBytes = kRowGroup * sizeof(float);
  HWY_INLINE VecF32 Load(const uint8_t* at) const {
    return hn::Load(F32x4(), reinterpret_cast<const float*>(at));
  }
};
struct F16Source {
  static constexpr size_t kColumnBytes = kRowGroup * sizeof(uint16_t);
  F16Constants constants;
  HWY_INLINE VecF32 Load(const uint8_t* at) const { return LoadF16x4(at, constants); }
};
struct BF16Source {
  static constexpr size_t kColumnBytes = kRowGroup * sizeof(uint16_t);
  HWY_INLINE VecF32 Load(const uint8_t* at) const { return LoadBF16x4(at); }
};

// One token against kGroups row groups of a strip of a plain family, straight from the packed
// weights: the tiles' sums in the tiles' order.
template <class Source, size_t kGroups>
HWY_NOINLINE void RunVector(const RowRange& range, size_t group) {
  const PackedShape& shape = range.w->shape;
  const size_t column_bytes = StripOf(shape, group).n_groups * Source::kColumnBytes;
  const Source source;
  const float* x = range.x->row(0);
  const uint8_t* w =
      range.w->data + StripOffset(shape, group) + group % kStripGroups * Source::kColumnBytes;
  VecF32 sums[kGroups];
  for (size_t g = 0; g < kGroups; ++g) sums[g] = hn::Zero(F32x4());
  for (size_t c = 0; c < shape.n_cols; ++c) {
    const VecF32 splat = hn::Set(F32x4(), x[c]);
    for (size_t g = 0; g < kGroups; ++g) {
      sums[g] = MulAdd(source.Load(w + g * Source::kColumnBytes), splat, sums[g]);
    }
    w += column_bytes;
  }
  for (size_t g = 0; g < kGroups; ++g) {
    const size_t row = (group + g) * kRowGroup;
    StorePart(sums[g], range.y + row, shape.n_rows - row);
  }
}

template <class Source>
void RunVectors(const RowRange& range) {
  size_t group = range.group_begin;
  for (; group + kStripGroups <= range.group_end; group += kStripGroups) {
    RunVector<Source, kStripGroups>(range, group);
  }
  for (; group < range.group_end; ++group) RunVector<Source, 1>(range, group);
}

// Where the row groups of a tile stand in their strip, and where their floats go: [columns][4],
// columns out_stride elements apart.
struct Widening {
  const PackedShape& shape;
  const uint8_t* strip;
  StripLayout layout;
  size_t strip_group;
  float* out;
  size_t out_stride;
};

// Columns [begin, begin + n_cols) of a group of a plain 16-bit family.
template <class Source>
void WidenPlain(const Widening& to, size_t begin, size_t n_cols) {
  const Source source;
  const size_t column_bytes = to.layout.n_groups * Source::kColumnBytes;
  const uint8_t* src = to.strip + begin * column_bytes + to.strip_group * Source::kColumnBytes;
  for (size_t c = 0; c < n_cols; ++c) {
    hn::Store(source.Load(src + c * column_bytes), F32x4(), to.out + c * to.out_stride);
  }
}

// A block of codes: integers, times their scales, less their minima.
void WidenBlock(const Widening& to, size_t block, float* out) {
  const F32x4 df;
  const CodeGroup from{to.shape, to.layout, to.strip, to.strip_group};
  const bool has_mins = to.shape.code.has_mins;
  alignas(kVectorBytes) uint8_t panel[kPanelBlockBytes];
  alignas(kVectorBytes) float scales[kRowGroup];
  alignas(kVectorBytes) float mins[kBlockHalves * kRowGroup];
  WidenCodes(from, 1, block, 1, panel);
  WidenScales(from, block, 1, scales, kRowGroup);
  if (has_mins) WidenMins(from, block, 1, mins);
  const VecF32 scale = hn::Load(df, scales);
  // Vector 2 w + odd has bytes `odd` and 2 + odd of word w, the first in the lower 16 bits of
  // lanes.
  const auto store = [&](VecI32 codes, size_t word, size_t byte) {
    const size_t column = WordColumn(to.shape.form, word, byte);
    VecF32 value = hn::Mul(hn::ConvertTo(df, codes), scale);
    if (has_mins) value = hn::Sub(value, hn::Load(df, mins + column / kHalfCols * kRowGroup));
    hn::Store(value, df, out + column * to.out_stride);
  };
  for (size_t v = 0; v < 2 * kBlockWords; ++v) {
    const uint8_t* at = panel + v * kVectorBytes;
    const VecI32 pairs = hn::Load(I32x4(), reinterpret_cast<const int32_t*>(at));
    store(hn::ShiftRight<16>(hn::ShiftLeft<16>(pairs)), v / 2, v % 2);
    store(hn::ShiftRight<16>(pairs), v / 2, v % 2 + 2);
  }
}

void WidenPanel(const Widening& to, size_t begin, size_t n_cols) {
  if (to.shape.family == PackedFamily::kF16) {
    WidenPlain<F16Source>(to, begin, n_cols);
  } else if (to.shape.family == PackedFamily::kBF16) {
    WidenPlain<BF16Source>(to, begin, n_cols);
  } else {
    for (size_t c = 0; c < n_cols; c += kBlockCols) {
      WidenBlock(to, (begin + c) / kBlockCols, to.out + c * to.out_stride);
    }
  }
}

// One tile of row groups, all of one strip, against all tokens.
template <size_t kGroups>
void RunGroups(const RowRange& range, size_t group) {
  const PackedShape& shape = range.w->shape;
  const Activations& x = *range.x;
  alignas(kAlignment) float widened[kGroups * kPanelCols * kRowGroup];
  Widening widening{shape,
                    range.w->data + StripOffset(shape, group),
                    StripOf(shape, group),
                    group % kStripGroups,
                    widened,
                    kGroups * kRowGroup};
  Panel panel{};
  panel.x_stride = x.n_tokens() > 1 ? static_cast<size_t>(x.row(1) - x.row(0)) : 0;
  panel.y = range.y + group * kRowGroup;
  panel.y_stride = range.y_stride;
  panel.n_rows = shape.n_rows - group * kRowGroup;
  const bool is_f32 = shape.family == PackedFamily::kF32;
  const size_t panel_cols = is_f32 ? shape.n_cols : kPanelCols;
  for (size_t begin = 0; begin < shape.n_cols; begin += panel_cols) {
    panel.n_cols = std::min(panel_cols, shape.n_cols - begin);
    panel.is_first = begin == 0;
    panel.x = x.row(0) + begin;
    if (is_f32) {
      panel.w = reinterpret_cast<const float*>(widening.strip) + widening.strip_group * kRowGroup;
      panel.w_column_stride = widening.layout.n_groups * kRowGroup;
    } else {
      for (size_t g = 0; g < kGroups; ++g) {
        Widening one = widening;
        one.strip_group += g;
        one.out += g * kRowGroup;
        WidenPanel(one, begin, panel.n_cols);
      }
      panel.w = widened;
      panel.w_column_stride = kGroups * kRowGroup;
    }
    RunTokens<kGroups>(panel, x.n_tokens());
  }
}

}  // namespace

void MatMulFloats(const RowRange& range) noexcept {
  if (range.x->n_tokens() == 1) {
    const PackedFamily family = range.w->shape.family;
    if (family == PackedFamily::kF32) return RunVectors<F32Source>(range);
    if (family == PackedFamily::kF16) return RunVectors<F16Source>(range);
    if (family == PackedFamily::kBF16) return RunVectors<BF16Source>(range);
  }
  size_t group = range.group_begin;
  // Ranges begin with a strip, and a strip's groups are a multiple of a tile's.
  for (; group + kTileGroups <= range.group_end; group += kTileGroups) {
    RunGroups<kTileGroups>(range, group);
  }
  if (group < range.group_end) RunGroups<1>(range, group);
}

}  // namespace headlight
